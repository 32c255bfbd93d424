package proxy

import (
	"errors"
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
	why     string // of the problem, where it has a reason out of a closed set
	since   time.Time
	logged  time.Time // when a reason was last logged
	said    string    // and which
}

// quietFor is how long a part that is down says nothing more when the words of its problem change, as they do with
// each operation that fails.
const quietFor = 10 * time.Second

// PartStatus is a part in /status.
type PartStatus struct {
	Up      bool   `json:"up"`
	Problem string `json:"problem,omitempty"`
	// Why is the problem's reason out of a closed set, for parts that have one.
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since"`
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
	p.isUp, p.problem, p.why, p.since = true, "", "", time.Now()
	p.gauge.Set(1)
}

// down notes the reason. It is logged when the part goes down and, not too often, when it changes.
func (p *part) down(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	words, why := err.Error(), ""
	if reason, ok := errors.AsType[interface {
		error
		Why() string
	}](err); ok {
		why = reason.Why()
	}
	if p.isUp {
		p.since = time.Now()
	}
	if p.isUp || p.said != words && time.Since(p.logged) > quietFor {
		p.logged, p.said = time.Now(), words
		attributes := []any{"part", p.name, "error", words}
		if why != "" {
			attributes = append(attributes, "why", why)
		}
		p.log.Warn("waiting", attributes...)
	}
	p.isUp, p.problem, p.why = false, words, why
	p.gauge.Set(0)
}

func (p *part) status() PartStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	return PartStatus{Up: p.isUp, Problem: p.problem, Why: p.why, Since: p.since.UTC()}
}
