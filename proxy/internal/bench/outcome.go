package main

// outcome is what a session found out about a scenario. It is what is kept in docs/benchmarks.json.
type outcome struct {
	Name     string        `json:"name"`
	Machine  string        `json:"machine"`
	Rounds   int           `json:"rounds"`
	Steps    []stepOutcome `json:"steps"`
	Verdicts []verdict     `json:"verdicts,omitempty"`

	failures int // runs that did not finish, or lost or doubled a message
}

// stepOutcome has the medians of a step, or what a tenth of a run came to.
type stepOutcome struct {
	Label    string           `json:"label,omitempty"`
	Programs []programOutcome `json:"programs"`
}

type programOutcome struct {
	Program program `json:"program"`
	Figures figures `json:"figures"`
}

// by are the figures of a step by program.
func (s stepOutcome) by() map[program]figures {
	all := map[program]figures{}
	for _, p := range s.Programs {
		all[p.Program] = p.Figures
	}
	return all
}

// missed are the bounds that were not met.
func (o outcome) missed() []verdict {
	var all []verdict
	for _, v := range o.Verdicts {
		if !v.Met {
			all = append(all, v)
		}
	}
	return all
}

// merge returns the kept outcomes with those that were measured now in their places. Scenarios that are no more are
// dropped, and so is what has failed runs.
func merge(kept, measured []outcome, scenarios []scenario) []outcome {
	latest := map[string]outcome{}
	for _, o := range kept {
		latest[o.Name] = o
	}
	for _, o := range measured {
		if o.failures == 0 {
			latest[o.Name] = o
		}
	}
	var all []outcome
	for _, s := range scenarios {
		if o, found := latest[s.name]; found {
			all = append(all, o)
		}
	}
	return all
}
