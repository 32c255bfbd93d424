package proxy

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/dedup"
)

// levels are the findings' levels and, for those that are not ok, a word of each.
func levels(all []finding) (l []level) {
	for _, f := range all {
		l = append(l, f.Level)
	}
	return l
}

func refusalWith(words string) error {
	return &closing{Code: preconditionFailed, Server: true, Recover: true, Reason: "PRECONDITION_FAILED - " + words}
}

func TestParseDifference(t *testing.T) {
	for words, want := range map[string]difference{
		`inequivalent arg 'x-delivery-limit' for queue 'orders' in vhost '/': received none but current is the value '5' of type 'signedint'`:                                                         {"x-delivery-limit", int64(5)},
		`inequivalent arg 'x-queue-type' for queue 'orders' in vhost '/': received 'classic' but current is 'quorum'`:                                                                                 {"x-queue-type", "quorum"},
		`inequivalent arg 'x-expires' for queue 'a' in vhost '/': received the value '?' of type 'longstr' but current is none`:                                                                       {"x-expires", nil},
		`inequivalent arg 'durable' for queue 'orders' in vhost '/': received 'true' but current is 'false'`:                                                                                          {"durable", "false"},
		`inequivalent arg 'x-single-active-consumer' for queue 'o' in vhost '/': received none but current is the value 'true' of type 'bool'`:                                                        {"x-single-active-consumer", true},
		`inequivalent arg 'x-dead-letter-exchange' for queue 'it's: received none but current is none' in vhost '/': received none but current is the value 'a' but current is 'b' of type 'longstr'`: {"x-dead-letter-exchange", "a' but current is 'b"},
		"inequivalent arg 'x-dead-letter-exchange' for queue 'o\n' in vhost '/': received none but current is the value 'x\ny' of type 'longstr'":                                                     {"x-dead-letter-exchange", "x\ny"},
	} {
		got, ok := parseDifference(refusalWith(words))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(difference{})); !ok || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", words, ok, diff)
		}
	}
	for _, err := range []error{
		nil, errors.New("x"),
		refusalWith(`invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue`),
		refusalWith(`inequivalent arg 'x-delivery-limit' for queue 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`),
		refusalWith(`inequivalent arg 'x-delivery-limit' for queue 'q' in vhost '/': received none but current is the value '[1]' of type 'array'`),
		&closing{Code: accessRefused, Reason: `inequivalent arg 'a' for queue 'q' in vhost '/': received none but current is none`},
	} {
		if d, ok := parseDifference(err); ok {
			t.Errorf("%v: %+v", err, d)
		}
	}
}

func TestReadFactsEnds(t *testing.T) {
	asked := 0
	same := refusalWith(`inequivalent arg 'x-expires' for queue 'q' in vhost '/': received the value '1' of type 'long' but current is the value '1' of type 'long'`)
	if facts, err := readFacts(typeQuorum, func(bool, bool, table) error { asked++; return same }); err == nil || asked != 2 {
		t.Errorf("the same difference again and again: asked %d times, %v, %v", asked, facts, err)
	}
	none := refusalWith(`inequivalent arg 'x-queue-mode' for queue 'q' in vhost '/': received the value '1' of type 'long' but current is none`)
	if _, err := readFacts(typeQuorum, func(bool, bool, table) error { return none }); err == nil {
		t.Error("an argument that neither has")
	}
}

func TestAdviseSource(t *testing.T) {
	good := queueFacts{durable: true, arguments: table{"x-delivery-limit": int64(returnsLimit)}}
	for name, c := range map[string]struct {
		kind  string
		facts queueFacts
		words []string
	}{
		"good":          {typeQuorum, good, nil},
		"no limit":      {typeQuorum, queueFacts{durable: true, arguments: table{"x-delivery-limit": int64(-1)}}, nil},
		"low limit":     {typeQuorum, queueFacts{durable: true, arguments: table{"x-delivery-limit": int64(1)}}, []string{"x-delivery-limit to 2"}},
		"not a quorum":  {typeClassic, queueFacts{durable: true, arguments: table{"x-delivery-limit": int64(1)}}, nil},
		"not durable":   {typeClassic, queueFacts{}, []string{"not durable"}},
		"all of it":     {typeQuorum, queueFacts{autoDelete: true, arguments: table{"x-delivery-limit": int64(0)}}, []string{"not durable", "auto-delete", "x-delivery-limit"}},
		"text as limit": {typeQuorum, queueFacts{durable: true, arguments: table{"x-delivery-limit": "?"}}, nil},
	} {
		t.Run(name, func(t *testing.T) { wantWarnings(t, adviseSource("queue", c.kind, c.facts), c.words) })
	}
}

func TestAdviseDemands(t *testing.T) {
	with := func(arguments table) queueFacts { return queueFacts{durable: true, arguments: arguments} }
	active := table{"x-single-active-consumer": true}
	for name, c := range map[string]struct {
		kind    string
		facts   queueFacts
		demands demands
		version int
		words   []string // of the warnings
	}{
		"none":             {typeQuorum, with(table{}), demands{}, 400, nil},
		"no exchange":      {typeQuorum, with(table{}), demands{reject: true}, 310, []string{"dead-letter exchange"}},
		"default exchange": {typeQuorum, with(table{"x-dead-letter-exchange": ""}), demands{reject: true}, 310, nil},
		"in order, 3.10":   {typeQuorum, with(active), demands{order: true}, 310, nil},
		"in order, 4.0":    {typeQuorum, with(active), demands{order: true}, 400, []string{"delivery-limit -1"}},
		"in order, 4.3":    {typeQuorum, with(active), demands{order: true}, 403, nil},
		"classic, 4.0":     {typeClassic, with(active), demands{order: true}, 400, nil},
		"limit off": {
			typeQuorum, with(table{"x-single-active-consumer": true, "x-delivery-limit": int64(-1)}), demands{order: true}, 400, nil,
		},
		"limit": {typeQuorum, with(table{"x-delivery-limit": int64(50)}), demands{order: true}, 403, []string{"one replica", "delivery limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := adviseDemands("queue", c.kind, c.facts, c.demands, c.version)
			if c.demands.order {
				if last := all[len(all)-1]; last.Level != levelInfo || !strings.Contains(last.Message, "consumer_timeout") {
					t.Errorf("no word on the consumer timeout: %+v", all)
				}
				all = all[:len(all)-1]
			}
			wantWarnings(t, all, c.words)
		})
	}
}

func TestAdviseLetters(t *testing.T) {
	with := func(arguments table) queueFacts { return queueFacts{durable: true, arguments: arguments} }
	for name, c := range map[string]struct {
		facts queueFacts
		words []string
	}{
		"good":           {with(table{"x-queue-type": "quorum", "x-delivery-limit": int64(-1)}), nil},
		"not durable":    {queueFacts{}, []string{"not durable"}},
		"auto-delete":    {queueFacts{durable: true, autoDelete: true}, []string{"last consumer"}},
		"limit":          {with(table{"x-max-length": int64(10)}), []string{"oldest letters"}},
		"limit in bytes": {with(table{"x-max-length-bytes": int64(10), "x-overflow": "drop-head"}), []string{"oldest letters"}},
		"safe limit":     {with(table{"x-max-length": int64(10), "x-overflow": "reject-publish"}), nil},
		"time to live":   {with(table{"x-message-ttl": int64(10)}), []string{"x-message-ttl"}},
		"expiry":         {with(table{"x-expires": int64(10)}), []string{"x-expires"}},
	} {
		t.Run(name, func(t *testing.T) { wantWarnings(t, adviseLetters("letters", c.facts), c.words) })
	}
}

func wantWarnings(t *testing.T, all []finding, words []string) {
	t.Helper()
	if len(all) != len(words) {
		t.Fatalf("%d findings, want %d: %+v", len(all), len(words), all)
	}
	for i, w := range words {
		if all[i].Level != levelWarn || all[i].Remedy == "" || !strings.Contains(all[i].Message+all[i].Remedy, w) {
			t.Errorf("want a warning that says %q: %+v", w, all[i])
		}
	}
}

func TestAdviseServer(t *testing.T) {
	good := dedup.Server{
		RoundTrip: time.Millisecond, Told: true, Product: "Redis", Version: "7.0.15", Role: "master", Replicas: 1, Eviction: "noeviction", AppendOnly: true,
	}
	for name, c := range map[string]struct {
		change   func(*dedup.Server)
		replicas int
		want     []level
		word     string
	}{
		"good":            {func(*dedup.Server) {}, 1, []level{levelOK}, "Redis 7.0.15, master, 1 replica(s), round trip 1ms, memory 0.0 MB, no limit"},
		"valkey":          {func(s *dedup.Server) { s.Product, s.Version = "Valkey", "8.1.1" }, 0, []level{levelOK}, "Valkey 8.1.1"},
		"just new enough": {func(s *dedup.Server) { s.Version = "6.2.0" }, 0, []level{levelOK}, "6.2.0"},
		"too old":         {func(s *dedup.Server) { s.Version = "6.0.16" }, 0, []level{levelOK, levelFail}, "6.2"},
		"odd version":     {func(s *dedup.Server) { s.Version = "unstable" }, 0, []level{levelOK}, "unstable"},
		"replica":         {func(s *dedup.Server) { s.Role = "slave" }, 0, []level{levelOK, levelFail}, "REDIS_URL at the primary"},
		"evicts":          {func(s *dedup.Server) { s.Eviction = "volatile-ttl" }, 0, []level{levelOK, levelWarn}, "volatile-ttl"},
		"forgets":         {func(s *dedup.Server) { s.AppendOnly = false }, 0, []level{levelOK, levelWarn}, "appendonly yes"},
		"cannot save":     {func(s *dedup.Server) { s.SavingFailed = true }, 0, []level{levelOK, levelWarn}, "save failed"},
		"slow":            {func(s *dedup.Server) { s.RoundTrip = 30 * time.Millisecond }, 0, []level{levelOK, levelWarn}, "30ms"},
		"clock behind":    {func(s *dedup.Server) { s.Ahead = -2 * time.Minute }, 0, []level{levelOK, levelWarn}, "2m0s"},
		"few replicas":    {func(*dedup.Server) {}, 2, []level{levelOK, levelFail}, "DEDUP_WAIT_REPLICAS=2"},
		"says nothing":    {func(s *dedup.Server) { *s = dedup.Server{RoundTrip: time.Millisecond} }, 0, []level{levelOK, levelInfo}, "+info"},
		"limited":         {func(s *dedup.Server) { s.UsedMemory, s.MaxMemory = 12_340_000, 200_000_000 }, 0, []level{levelOK}, "memory 12 MB, of 200 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			c.change(&s)
			all := adviseServer("store", s, dedup.Config{WaitReplicas: c.replicas})
			if diff := cmp.Diff(c.want, levels(all)); diff != "" {
				t.Errorf("levels (-want +got):\n%s\n%+v", diff, all)
			}
			if last := all[len(all)-1]; !strings.Contains(last.Message+last.Remedy, c.word) {
				t.Errorf("does not say %q: %+v", c.word, last)
			}
		})
	}
}

func TestForecast(t *testing.T) {
	cfg := mustLoad(t, four("QUEUES=orders,bills", "QUEUE_BILLS_DEDUP_RETENTION=96h"))
	with := func(limits ...int64) (all []dedup.Server) {
		for _, l := range limits {
			all = append(all, dedup.Server{MaxMemory: l})
		}
		return all
	}
	const need = 100 * 96 * 3600 * recordBytes // 6.9 GB
	for name, c := range map[string]struct {
		servers []dedup.Server
		rate    float64
		want    []level
	}{
		"not asked":    {with(1), 0, nil},
		"no limit":     {with(0), 100, []level{levelInfo}},
		"room":         {with(need), 100, []level{levelInfo}},
		"too little":   {with(need - 1), 100, []level{levelWarn}},
		"of a cluster": {with(need/2, need/2), 100, []level{levelInfo}},
		"store away":   {nil, 100, []level{levelInfo}},
	} {
		all := forecast(cfg, c.servers, c.rate)
		if diff := cmp.Diff(c.want, levels(all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(all) > 0 && !strings.Contains(all[0].Message, "100 a second x DEDUP_RETENTION 96h x 200 bytes a record = 6912 MB") {
			t.Errorf("%s: %s", name, all[0].Message)
		}
	}
}

func TestFindingsAreLines(t *testing.T) {
	var b strings.Builder
	all := []finding{about("a").ok("fine"), about("longer").warn("what\nhappened", "do it"), about("b").failed(errors.New("broken"))}
	if err := printFindings(&b, all); err != nil {
		t.Fatal(err)
	}
	want := "ok    a       fine\nwarn  longer  what happened: do it\nFAIL  b       broken\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w := worst(all); w != levelFail {
		t.Errorf("worst is %v", w)
	}
}
