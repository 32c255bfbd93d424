package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// write prints an event of each kind and a table.
func write(color palette) string {
	var out bytes.Buffer
	p := &printer{out: &out, color: color}
	plain := books{
		confirmed: []string{"a", "b", "c", "d", "a"}, charges: []string{"a", "a", "c", "d", "d"},
	}
	rabbitonce := books{
		confirmed: plain.confirmed, charges: []string{"a", "c", "d"},
		letters: []letter{{id: "b", reason: "rejected", status: "400"}, {id: "d", reason: reasonUnknown}},
	}
	scene := func(begin func(string), title, id string, again bool) {
		begin(title)
		p.results(judgeAll(plain, []string{id}, again), judgeAll(rabbitonce, []string{id}, again))
	}
	scene(p.event, "an order", "c", false)
	scene(p.event, "a copy", "a", true)
	scene(p.trouble, "a kill", "d", true)
	p.event("broken off")
	p.breakOff()
	p.breakOff()
	p.table(count(plain), count(rabbitonce))
	return out.String()
}

const written = `
an order                                      plain: charged         | rabbitonce: charged
a copy                                        plain: CHARGED TWICE   | rabbitonce: skipped
a kill                                        plain: CHARGED TWICE   | rabbitonce: needs a person
broken off                                   

                       plain    rabbitonce
published                  5             5
distinct orders            4             4
charges                    5             3
charged twice              2             0
lost                       1             0
dead letters               0             2
  rejected                 0             1
  unknown-outcome          0             1
needs a person             0             1

plain charged twice: a, d
plain lost: b
dead letter: b, reason rejected, the service answered 400
dead letter: d, reason unknown-outcome
needs a person: d: its outcome is unknown; the service's journal has 1 charge(s) of it
rabbitonce charged no order twice and lost none.
`

func TestPrint(t *testing.T) {
	if diff := cmp.Diff(strings.TrimPrefix(written, "\n"), write(false)); diff != "" {
		t.Errorf("plain text (-want +got):\n%s", diff)
	}
	colored := write(true)
	for _, want := range []string{
		green + "charged" + reset, cyan + "skipped" + reset, red + "CHARGED TWICE" + reset, red + "a kill" + reset,
	} {
		if !strings.Contains(colored, want) {
			t.Errorf("%q is not in the coloured text:\n%s", want, colored)
		}
	}
	if diff := cmp.Diff(write(false), strings.NewReplacer(green, "", cyan, "", red, "", reset, "").Replace(colored)); diff != "" {
		t.Errorf("the colours change more than the colour (-plain +coloured):\n%s", diff)
	}
}

// TestPrintFaultsOfRabbitonce: what must not happen is said in words too, not praised.
func TestPrintFaultsOfRabbitonce(t *testing.T) {
	var out bytes.Buffer
	p := &printer{out: &out}
	p.table(tally{}, count(books{confirmed: []string{"a", "b"}, charges: []string{"a", "a"}}))
	for _, want := range []string{"rabbitonce charged twice: a\n", "rabbitonce lost: b\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "no order twice") {
		t.Errorf("praise for a failure:\n%s", out.String())
	}
}

func TestWantsColor(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer file.Close()
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	must(t, err)
	defer device.Close()
	for _, test := range []struct {
		name string
		out  *os.File
		env  map[string]string
		want bool
	}{
		{name: "terminal", out: device, want: true},
		{name: "NO_COLOR", out: device, env: map[string]string{"NO_COLOR": "1"}},
		{name: "dumb terminal", out: device, env: map[string]string{"TERM": "dumb"}},
		{name: "file", out: file},
	} {
		if got := wantsColor(test.out, func(name string) string { return test.env[name] }); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
