package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A forged journal has a line for each thing that was written down, times in seconds:
//
//	process NAME FROM TO|- [killed]
//	stop NAME FROM TO|-
//	fault KIND PART PROCESS|all FROM TO|- INFLIGHT
//	= QUEUE/ID [reject|exhaust]                          the lines below are about this ID
//	pub AT [unconfirmed] [conflict]
//	claim AT ATTEMPT TOKEN [unknown]
//	wait AT [unknown] | done AT | dead AT [unknown] | absent
//	send AT PROCESS ATTEMPT [flagged] nowhere
//	send AT PROCESS ATTEMPT [flagged] BEGAN ENDED|- STATUS [worked]
//	letter REASON ATTEMPTS [changed|conflict]
//	left QUEUE
//
// All queues have a timeout of 10 s, a lease of 5 s and three attempts. The run ends at 1000.

type journal struct {
	History
	id      ID
	destiny Destiny
}

func parse(t *testing.T, text string) *History {
	t.Helper()
	j := &journal{}
	j.End = seconds("1000")
	j.Queues = map[string]Queue{}
	for _, p := range []Policy{Retry, DeadLetter, Lookup} {
		j.Queues[string(p)] = Queue{Policy: p, Timeout: 10 * time.Second, Lease: 5 * time.Second, MaxAttempts: 3}
	}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			j.add(words[0], words[1:])
		}
	}
	slices.SortStableFunc(j.Requests, func(a, b Request) int { return a.Sent.Compare(b.Sent) })
	return &j.History
}

func (j *journal) add(kind string, words []string) {
	has := func(word string) bool { return slices.Contains(words, word) }
	switch kind {
	case "process":
		p := Process{Name: words[0], Life: span(words[1:]), Killed: has("killed")}
		j.Processes = append(j.Processes, p)
	case "stop":
		i := slices.IndexFunc(j.Processes, func(p Process) bool { return p.Name == words[0] })
		j.Processes[i].Stops = append(j.Processes[i].Stops, span(words[1:]))
	case "fault":
		f := Fault{Kind: words[0], Part: Part(words[1]), Process: words[2], Span: span(words[3:]), InFlight: number(words[5])}
		if f.Process == "all" {
			f.Process = ""
		}
		j.Faults = append(j.Faults, f)
	case "=":
		queue, value, _ := strings.Cut(words[0], "/")
		j.id, j.destiny = ID{queue, value}, ToBeDone
		if has("reject") {
			j.destiny = ToBeRejected
		} else if has("exhaust") {
			j.destiny = ToExhaust
		}
	case "pub":
		p := Publication{ID: j.id, At: seconds(words[0]), Confirmed: !has("unconfirmed"), Payload: j.payload(""), Destiny: j.destiny}
		if has("conflict") {
			p.Conflict, p.Payload = true, j.payload("conflict")
		}
		j.Publications = append(j.Publications, p)
	case "claim":
		j.write(Write{At: seconds(words[0]), State: Processing, Attempts: number(words[1]), Token: words[2], Unknown: has("unknown")})
	case "wait":
		j.write(Write{At: seconds(words[0]), State: Waiting, Unknown: has("unknown")})
	case "done":
		j.write(Write{At: seconds(words[0]), State: Done})
	case "dead":
		j.write(Write{At: seconds(words[0]), State: Dead, Unknown: has("unknown")})
	case "absent":
		j.write(Write{State: Absent})
	case "send":
		j.send(words)
	case "letter":
		l := Letter{ID: j.id, Reason: words[0], Attempts: number(words[1]), Payload: j.payload(strings.Join(words[2:], " "))}
		j.Letters = append(j.Letters, l)
	case "left":
		j.Left = append(j.Left, Left{ID: j.id, In: words[0]})
	default:
		panic("no such line: " + kind)
	}
}

func (j *journal) payload(other string) Payload {
	return Payload{Body: j.id.Value + other, Properties: "properties"}
}

func (j *journal) write(w Write) {
	w.ID = j.id
	if n := len(j.Writes); w.State != Absent && w.Attempts == 0 && n > 0 && j.Writes[n-1].ID == j.id {
		w.Attempts = j.Writes[n-1].Attempts
	}
	j.Writes = append(j.Writes, w)
}

func (j *journal) send(words []string) {
	r := Request{ID: j.id, Sent: seconds(words[0]), Process: words[1], Attempt: number(words[2])}
	rest := words[3:]
	if rest[0] == "flagged" {
		r.Unknown, rest = true, rest[1:]
	}
	if rest[0] != "nowhere" {
		r.Began, r.Status, r.Worked = seconds(rest[0]), number(rest[2]), slices.Contains(rest, "worked")
		if rest[1] != "-" {
			r.Ended = seconds(rest[1])
		}
	}
	j.Requests = append(j.Requests, r)
}

func span(words []string) Span {
	s := Span{From: seconds(words[0])}
	if words[1] != "-" {
		s.To = seconds(words[1])
	}
	return s
}

func seconds(word string) time.Time {
	s, err := strconv.ParseFloat(word, 64)
	if err != nil {
		panic(err)
	}
	return time.UnixMilli(1_700_000_000_000 + int64(s*1000+0.5)).UTC()
}

func number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return n
}

// swap replaces a text that must be there once.
func swap(t *testing.T, text, from, to string) string {
	t.Helper()
	if n := strings.Count(text, from); n != 1 {
		t.Fatalf("%q is there %d times, want once", from, n)
	}
	return strings.Replace(text, from, to, 1)
}

// broken is the rules that a report says are broken, in order.
func broken(r Report) []Rule {
	var rules []Rule
	for _, v := range r.Violations {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return rules
}

func text(r Report) string {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, v)
	}
	return b.String()
}
