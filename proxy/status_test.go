package proxy

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// Catches: a part that is down and that `missing` does not name.
func TestStatusNamesEachPartThatIsDown(t *testing.T) {
	p, err := New(mustLoad(t, four()), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	q := p.queues[0]
	parts := map[string]*part{
		"store": p.storeGate.part, "consumer of queue orders": q.sessionPart, "service of queue orders": q.serviceGate.part,
		"dead letters of queue orders": q.letters, "wait queues of queue orders": q.parking.part,
	}
	for _, part := range parts {
		part.up()
	}
	if s := p.Status(); s.State != "consuming" || len(s.Missing) > 0 {
		t.Errorf("with everything up: %s, %v", s.State, s.Missing)
	}
	for name, part := range parts {
		part.down(errors.New("broken"))
		s := p.Status()
		named := slices.ContainsFunc(s.Missing, func(m string) bool { return strings.HasPrefix(m, name+": broken") })
		if s.State != "waiting" || !named || len(s.Missing) != 1 {
			t.Errorf("without %s: %s, %v", name, s.State, s.Missing)
		}
		part.up()
	}
}
