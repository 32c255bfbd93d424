package proxy

import (
	"fmt"
	"time"
)

// Status is what /status answers: each part, up or what is missing.
type Status struct {
	Version string   `json:"version"`
	State   string   `json:"state"` // consuming, waiting (something is missing) or draining
	Missing []string `json:"missing,omitempty"`
	// Warnings are what was odd about the configuration at start.
	Warnings []string      `json:"warnings,omitempty"`
	Started  time.Time     `json:"started"`
	Store    PartStatus    `json:"store"`
	Queues   []QueueStatus `json:"queues"`
}

// QueueStatus is one queue in /status.
type QueueStatus struct {
	Name            string     `json:"name"`
	Consumer        PartStatus `json:"consumer"`
	Service         PartStatus `json:"service"`
	DeadLetters     PartStatus `json:"dead_letter_publishing"`
	WaitQueues      PartStatus `json:"wait_queue_publishing"`
	DeadLetterQueue string     `json:"dead_letter_queue"`
	Prefetch        int        `json:"prefetch"`
	Concurrency     int        `json:"concurrency"`
	InFlight        int64      `json:"posts_in_flight"`
	Waiting         int64      `json:"waiting"`
	// Brake is set while the queue goes on with one message at a time.
	Brake *BrakeStatus `json:"brake,omitempty"`
	// Hint is what the answers of the service suggest to change.
	Hint string `json:"hint,omitempty"`
}

func (q *queue) status() QueueStatus {
	hint := ""
	if h := q.hint.Load(); h != nil {
		hint = *h
	}
	return QueueStatus{
		Brake: q.brakeStatus(), Hint: hint,
		Name: q.cfg.Name, Consumer: q.sessionPart.status(), Service: q.serviceGate.part.status(), DeadLetters: q.letters.status(),
		WaitQueues:      q.parking.part.status(),
		DeadLetterQueue: q.cfg.DeadLetterQueue, Prefetch: q.cfg.Prefetch, Concurrency: q.cfg.Forward.Concurrency,
		InFlight: q.inFlight.Load(), Waiting: q.waiting.Load(),
	}
}

// Status is safe for concurrent use.
func (p *Proxy) Status() Status {
	s := Status{Warnings: p.cfg.Warnings, Version: p.cfg.Version, State: "consuming", Started: p.started.UTC(), Store: p.storeGate.part.status()}
	need := func(name string, part PartStatus) {
		if !part.Up {
			s.Missing = append(s.Missing, name+": "+part.Problem)
		}
	}
	need("store", s.Store)
	for _, q := range p.queues {
		qs := q.status()
		s.Queues = append(s.Queues, qs)
		need("consumer of queue "+qs.Name, qs.Consumer)
		need("service of queue "+qs.Name, qs.Service)
		need("dead letters of queue "+qs.Name, qs.DeadLetters)
		need("wait queues of queue "+qs.Name, qs.WaitQueues)
		if qs.Brake != nil {
			s.Missing = append(s.Missing, fmt.Sprintf("queue %s: %d messages in a row did not end done, the last %s: %s", qs.Name, qs.Brake.InARow, qs.Brake.Last, qs.Brake.Hint))
		}
	}
	switch {
	case p.draining.Load():
		s.State = "draining"
	case len(s.Missing) > 0:
		s.State = "waiting"
	}
	return s
}
