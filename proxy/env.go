package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sethvargo/go-envconfig"
)

// environment reads variables the way section 9 of the configuration reference says: RABBITONCE_NAME wins over NAME,
// NAME_FILE names a file that holds the value, set-but-empty counts as unset. It collects problems instead of
// stopping at the first.
type environment struct {
	vars     map[string]string
	prefix   string // "QUEUE_ORDERS_" while one queue's settings are read: looked up before the plain name
	last     string // variable that answered the latest lookup, or the plain name when none did
	masked   map[string]bool
	problems []string
}

func newEnvironment(environ []string) *environment {
	e := &environment{vars: map[string]string{}, masked: map[string]bool{}}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && value != "" {
			e.vars[name] = value
		}
	}
	return e
}

// Lookup implements envconfig.Lookuper.
func (e *environment) Lookup(name string) (string, bool) {
	candidates := []string{"RABBITONCE_" + name, name}
	if e.prefix != "" {
		candidates = append([]string{"RABBITONCE_" + e.prefix + name, e.prefix + name}, candidates...)
	}
	for _, c := range candidates {
		value, found := e.value(c)
		if found && !e.masked[c] {
			e.last = c
			return value, true
		}
	}
	e.last = name
	return "", false
}

// value reads one variable by its exact name, or the file that NAME_FILE points at.
func (e *environment) value(name string) (string, bool) {
	value, set := e.vars[name]
	file, fileSet := e.vars[name+"_FILE"]
	switch {
	case set && fileSet:
		e.problem(name, "is set, and so is %s_FILE: keep one of the two", name)
		return value, true
	case set:
		return value, true
	case !fileSet:
		return "", false
	}
	b, err := os.ReadFile(file)
	if err != nil {
		e.problem(name+"_FILE", "read file: %v", err)
		return "", false
	}
	value = strings.TrimRight(string(b), "\r\n")
	return value, value != ""
}

// problem notes what is wrong with a variable, once.
func (e *environment) problem(name, format string, args ...any) {
	text := name + ": " + fmt.Sprintf(format, args...)
	if !slices.Contains(e.problems, text) {
		e.problems = append(e.problems, text)
	}
}

// decode fills target's `env` fields. A value that does not decode becomes a problem, its field keeps the default,
// and decoding goes on with the next: the user sees every mistake at once. envconfig itself stops at the first error.
func (e *environment) decode(target any) {
	durations := durationVariables(reflect.TypeOf(target).Elem())
	for range 1000 {
		err := envconfig.ProcessWith(context.Background(), &envconfig.Config{
			Target: target, Lookuper: e, DefaultOverwrite: true,
			Mutators: []envconfig.Mutator{envconfig.MutatorFunc(func(_ context.Context, key, _, _, value string) (string, bool, error) {
				if durations[key] {
					return days(value), false, nil
				}
				return value, false, nil
			})},
		})
		if err == nil {
			return
		}
		e.problem(e.last, "%s", decodeProblem(err))
		if e.masked[e.last] {
			return
		}
		e.masked[e.last] = true
	}
}

// decodeProblem says what is wrong with a value, without the library's path of Go field names.
func decodeProblem(err error) string {
	var number *strconv.NumError
	if errors.As(err, &number) && number.Func == "ParseBool" {
		return fmt.Sprintf("%q is neither true nor false", number.Num)
	}
	if errors.As(err, &number) {
		if number.Func == "ParseFloat" {
			return fmt.Sprintf("%q is not a number", number.Num)
		}
		return fmt.Sprintf("%q is not a whole number", number.Num)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	text := err.Error()
	if strings.Contains(text, "duration") && strings.HasPrefix(text, "time: ") {
		return strings.TrimPrefix(text, "time: ") + ": a duration needs a number and a unit, like 500ms, 30s, 5m, 24h or 7d"
	}
	return text
}

var dayDuration = regexp.MustCompile(`^([0-9]{1,6})d$`)

// days turns "7d" into "168h"; anything else passes through.
func days(value string) string {
	m := dayDuration.FindStringSubmatch(strings.TrimSpace(value))
	if m == nil {
		return strings.TrimSpace(value)
	}
	n, _ := strconv.Atoi(m[1])
	return strconv.Itoa(n*24) + "h"
}

// parseDuration reads a duration in Go's syntax or in days.
func parseDuration(value string) (time.Duration, error) { return time.ParseDuration(days(value)) }

// variable is one environment variable as a config struct declares it.
type variable struct {
	name, fallback string
	kind           reflect.Type
}

// variables lists the `env` tags of a config struct, nested structs included.
func variables(t reflect.Type) []variable {
	var all []variable
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("env")
		if tag == "" {
			if f.Type.Kind() == reflect.Struct {
				all = append(all, variables(f.Type)...)
			}
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		_, fallback, _ := strings.Cut(options, "default=")
		all = append(all, variable{name: name, fallback: fallback, kind: f.Type})
	}
	return all
}

func durationVariables(t reflect.Type) map[string]bool {
	set := map[string]bool{}
	for _, v := range variables(t) {
		if v.kind == reflect.TypeFor[time.Duration]() {
			set[v.name] = true
		}
	}
	return set
}
