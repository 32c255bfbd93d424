package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// outcomes are made up, one for each scenario.
func outcomes() []outcome {
	var all []outcome
	for _, sc := range allScenarios() {
		o := outcome{Name: sc.name, Machine: "2 cores, a CPU", Rounds: 3}
		for i, st := range sc.steps {
			made := map[program][]sample{}
			for j, p := range sc.programs {
				f := figures{}
				for _, m := range sc.columns {
					f[m] = float64(1000*(i+1) + 100*j)
				}
				one := sample{figures: f}
				if st.load.tenths {
					one.tenths = []figures{{speed: 1000, peak: 20}, {speed: 900, peak: 21}}
				}
				made[p] = append(made[p], one)
			}
			o.Steps = append(o.Steps, summarize(sc, st, made)...)
		}
		for _, b := range sc.bounds {
			o.Verdicts = append(o.Verdicts, b.judge(o.Steps[0].by()))
		}
		all = append(all, o)
	}
	return all
}

func TestDrawingIsWellFormed(t *testing.T) {
	for name, all := range map[string][]outcome{"everything": outcomes(), "nothing": nil} {
		text := drawAll(all, allScenarios())
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Errorf("%s: a coordinate is no number", name)
		}
	}
}

func TestDrawingLeavesOutWhatWasNotMeasured(t *testing.T) {
	p := panel{title: `"a" < b & c`, axis: "x", labels: []string{"1", "2"}, format: speed.format, lines: []line{
		{program: programBaseline, values: []float64{math.NaN(), 5}},
		{program: programRabbitonce, values: []float64{math.NaN(), math.NaN()}},
	}}
	text := draw([]panel{p})
	if got := strings.Count(text, "<circle"); got != 1 {
		t.Errorf("%d points, want 1", got)
	}
	if !strings.Contains(text, "&quot;a&quot; &lt; b &amp; c") {
		t.Error("the title is not escaped")
	}
}

func TestTopOfAnAxis(t *testing.T) {
	for largest, want := range map[float64]float64{0: 1, 7: 8, 0.013: 0.015, 101: 150, 8000: 8000, 9999: 10000} {
		p := panel{axis: "x", lines: []line{{values: []float64{largest, math.NaN()}}}}
		if got := p.top(); math.Abs(got-want) > 1e-9 {
			t.Errorf("top for %v is %v, want %v", largest, got, want)
		}
	}
}

func TestLabelsDoNotRunIntoEachOther(t *testing.T) {
	for _, c := range []struct {
		labels []string
		want   int
	}{
		{[]string{"baseline", "floor", "rabbitonce"}, 1},
		{[]string{"1", "4", "16", "64", "256"}, 1},
		{[]string{"64 B", "256 B", "1 KiB", "4 KiB", "16 KiB", "64 KiB"}, 2},
		{[]string{"10%", "20%", "30%", "40%", "50%", "60%", "70%", "80%", "90%", "100%"}, 2},
	} {
		if got := (panel{labels: c.labels}).stride(); got != c.want {
			t.Errorf("%v: every %d, want %d", c.labels, got, c.want)
		}
	}
}

// TestRecordKeepsOtherScenarios records everything, and then one scenario anew, on another machine.
func TestRecordKeepsOtherScenarios(t *testing.T) {
	folder := t.TempDir()
	page := "# Benchmarks\n\n" + generatedBegin + "\nold\n" + generatedEnd + "\n\nThe end.\n"
	must(t, os.WriteFile(filepath.Join(folder, pageFile), []byte(page), 0o644))
	all := outcomes()
	must(t, record(folder, all))
	anew := all[0]
	anew.Machine = "64 cores"
	failed := all[1]
	failed.Machine, failed.failures = "broken", 1
	must(t, record(folder, []outcome{anew, failed}))

	kept, err := readOutcomes(filepath.Join(folder, figureFile))
	must(t, err)
	all[0] = anew
	if diff := cmp.Diff(all, kept, cmpopts.IgnoreUnexported(outcome{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(folder, pageFile))
	must(t, err)
	for _, want := range []string{
		"# Benchmarks\n\n" + generatedBegin, generatedEnd + "\n\nThe end.\n", "Measured on: `standard`: 64 cores", "\n`growth-records`: ", "2 cores, a CPU",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"\nold\n", "broken"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the page has %q", not)
		}
	}
}

func TestPageWithoutMarkersIsLeftAlone(t *testing.T) {
	for _, page := range []string{"", generatedBegin, generatedEnd + generatedBegin} {
		if _, err := replaceGenerated(page, "new"); err == nil {
			t.Errorf("%q is taken", page)
		}
	}
}

// TestPageOfThisRepository can be recorded into.
func TestPageOfThisRepository(t *testing.T) {
	page, err := os.ReadFile("../../../docs/" + pageFile)
	must(t, err)
	if _, err := replaceGenerated(string(page), "new"); err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	want := "| a | b |\n|---|---|\n| 1 | 2 |\n"
	if got := table([]string{"a", "b"}, [][]string{{"1", "2"}}); got != want {
		t.Errorf("table %q, want %q", got, want)
	}
}
