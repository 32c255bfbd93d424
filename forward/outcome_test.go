package forward

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOutcomeNames(t *testing.T) {
	var names []string
	for _, o := range Outcomes() {
		names = append(names, o.String())
	}
	want := []string{"done", "defer", "fail", "reject", "unknown", "unreachable"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := Outcome(200).String(); got != "unknown" {
		t.Errorf("a value outside the set is %q, want unknown", got)
	}
	var zero Outcome
	if zero != Unknown {
		t.Errorf("zero value is %s, want unknown", zero)
	}
}
