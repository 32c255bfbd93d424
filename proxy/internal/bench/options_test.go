package main

import (
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(scenarios []scenario) []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return all
}

func TestScenariosAreChosenByWholeName(t *testing.T) {
	for pattern, want := range map[string][]string{
		"dups|classic":    {"dups", "classic"},
		"growth-(d|s).*":  {"growth-size", "growth-dups"},
		"(dups|standard)": {"standard", "dups"},
		".*":              names(allScenarios()),
		"":                {"standard", "dups", "classic", "slow-service", "latency", "idle", "start"},
	} {
		o, err := parseOptions([]string{"-scenario", pattern}, noEnvironment, io.Discard)
		must(t, err)
		if diff := cmp.Diff(want, names(o.scenarios)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", pattern, diff)
		}
	}
}

func TestServersComeFromTheEnvironment(t *testing.T) {
	env := map[string]string{"RABBITMQ_URL": "amqp://broker/", "REDIS_URL": "redis://store/"}
	o, err := parseOptions(nil, func(name string) string { return env[name] }, io.Discard)
	must(t, err)
	if o.brokerURL != "amqp://broker/" || o.redisURL != "redis://store/" {
		t.Errorf("broker %q, store %q", o.brokerURL, o.redisURL)
	}
}

// TestScenariosMakeSense holds what the code takes for granted.
func TestScenariosMakeSense(t *testing.T) {
	all := allScenarios()
	if unique := slices.Compact(slices.Sorted(slices.Values(names(all)))); len(unique) != len(all) {
		t.Errorf("names are not unique: %q", names(all))
	}
	for _, s := range all {
		if len(s.steps) == 0 || len(s.columns) == 0 || !slices.Contains(s.programs, programRabbitonce) {
			t.Errorf("%s lacks steps, columns or rabbitonce", s.name)
		}
		if (s.axis != "") != (len(s.steps) > 1) {
			t.Errorf("%s: an axis is for several steps, and several steps have one", s.name)
		}
		for _, b := range s.bounds {
			if b.other != "" && !slices.Contains(s.programs, b.other) {
				t.Errorf("%s has a bound against %s, which it does not run", s.name, b.other)
			}
		}
		for _, st := range s.steps {
			// More would be lowered by rabbitonce: see PREFETCH in docs/configuration.md.
			if st.load.prefetch > 15*st.load.concurrency {
				t.Errorf("%s %s: prefetch %d is too much for concurrency %d", s.name, st.label, st.load.prefetch, st.load.concurrency)
			}
		}
	}
}
