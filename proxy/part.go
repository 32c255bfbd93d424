package proxy

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// part is one thing that the program depends on, up or down with a reason, as /status, the log and a gauge show it.
// A part starts down. Safe for concurrent use.
type part struct {
	name  string // "store", "broker", "service of queue orders": in log lines
	log   *slog.Logger
	gauge prometheus.Gauge // 1 while up

	mu      sync.Mutex
	isUp    bool
	problem string
	since   time.Time
	logged  time.Time // when a reason was last logged
}

// quietFor is how long a part that is down says nothing more when the words of its problem change, as they do with
// each operation that fails.
const quietFor = 10 * time.Second

// PartStatus is a part in /status.
type PartStatus struct {
	Up      bool      `json:"up"`
	Problem string    `json:"problem,omitempty"`
	Since   time.Time `json:"since"`
}

// newQuietPart makes a part that is taken as up until it fails, without a word.
func newQuietPart(name string, log *slog.Logger, gauge prometheus.Gauge) *part {
	gauge.Set(1)
	return &part{name: name, log: log, gauge: gauge, isUp: true, since: time.Now()}
}

func newPart(name string, log *slog.Logger, gauge prometheus.Gauge) *part {
	return &part{name: name, log: log, gauge: gauge, problem: "not reached yet", since: time.Now()}
}

func (p *part) up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isUp {
		return
	}
	p.log.Info("up", "part", p.name, "after", time.Since(p.since).Round(time.Millisecond).String())
	p.isUp, p.problem, p.since = true, "", time.Now()
	p.gauge.Set(1)
}

// down notes the reason. It is logged when the part goes down and, not too often, when it changes.
func (p *part) down(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isUp && p.problem == err.Error() {
		return
	}
	if p.isUp {
		p.since = time.Now()
	}
	if p.isUp || time.Since(p.logged) > quietFor {
		p.logged = time.Now()
		p.log.Warn("waiting", "part", p.name, "error", err.Error())
	}
	p.isUp, p.problem = false, err.Error()
	p.gauge.Set(0)
}

func (p *part) status() PartStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PartStatus{Up: p.isUp, Problem: p.problem, Since: p.since.UTC()}
}
