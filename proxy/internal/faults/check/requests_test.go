package check

import "testing"

const (
	worksOn = `
= retry/x
pub 40
send 40 c 1 40 55 0
send 49.9 b 2 flagged 49.9 50 200 worked
done 50.1`
	neverEnds = `
= retry/x
pub 40
send 40 c 1 40 - 0
send 51 b 2 flagged 51 51.1 200 worked
done 51.2`
	arrivesAfterItsRepeat = `
= retry/x
pub 40
send 40 c 1 52 60 0
send 51.2 b 2 flagged 51.2 55 200 worked
done 55.1`
	oneAfterTheOther = `
= retry/x
pub 40
send 40 c 1 40 51 0
send 51 b 2 flagged 51 51.1 200 worked
done 51.2`
	lookupArrivesLate = `
= lookup/x
pub 40
send 40 c 1 49.9 55 0
send 51 b 2 51 51.1 200 worked
done 51.2`
)

func TestAtOnce(t *testing.T) {
	accepted(t, []excuse{
		{"the service works on past its deadline", worksOn, []Remark{AtOncePastDeadline}, []forgery{
			{"not yet past", "", "send 49.9 b 2 flagged 49.9", "send 49.89 b 2 flagged 49.89", []Rule{AtOnce}},
			{"not flagged", "", "send 49.9 b 2 flagged", "send 49.9 b 2", []Rule{AtOnce, Unflagged}},
		}},
		{"the service never ends", neverEnds, []Remark{AtOncePastDeadline}, nil},
		{"the network delays the first", arrivesAfterItsRepeat, []Remark{AtOncePastDeadline}, nil},
		{"one after the other", oneAfterTheOther, nil, nil},
		{"the network delays the first until the second has ended", swap(t, swap(t, arrivesAfterItsRepeat, "51.2 55 200", "51.2 51.3 200"), "done 55.1", "done 51.4"), nil, nil},
		{"at the moment of the answer", "= retry/x\npub 40\nsend 40 c 1 40 41 500\nsend 41 b 2 41 42 200 worked\ndone 43", nil, nil},
		{"a lookup cannot know of a request that arrives after its deadline", lookupArrivesLate, []Remark{AtOncePastDeadline}, []forgery{
			{"it arrived in time", "", "send 40 c 1 49.9", "send 40 c 1 49.89", []Rule{AtOnce}},
			{"without a lookup", "", "= lookup/x", "= retry/x", []Rule{AtOnce, Unflagged}},
		}},
	})
	rejected(t, []forgery{
		{"the third meets the first", worksOn + "\nsend 45 d 2 flagged nowhere", "send 49.9 b 2 flagged 49.9", "send 49.85 b 3 flagged 49.85", []Rule{AtOnce, TooEarly, TooEarly}},
	})
}

func TestUnflagged(t *testing.T) {
	second := "\nsend 60 c 2 60 60.1 200 worked\ndone 60.2"
	rejected(t, []forgery{
		{"after work", "= retry/x\npub 40\nsend 40 c 1 40 40.1 200 worked" + second, "", "", []Rule{Unflagged}},
		{"after work that answers failed", "= retry/x\npub 40\nsend 40 c 1 40 40.1 500 worked" + second, "", "", []Rule{Unflagged}},
		{"after done without work", "= retry/x\npub 40\nsend 40 c 1 40 40.1 200" + second, "", "", []Rule{Unflagged}},
		{"after no answer", "= retry/x\npub 40\nsend 40 c 1 40 40.1 0" + second, "", "", []Rule{Unflagged}},
		{"after one that never arrived", "= retry/x\npub 40\nsend 40 c 1 nowhere" + second, "", "", []Rule{Unflagged}},
		{"after 502", "= retry/x\npub 40\nsend 40 c 1 40 40.1 502" + second, "", "", []Rule{Unflagged}},
		{"after 504", "= retry/x\npub 40\nsend 40 c 1 40 40.1 504" + second, "", "", []Rule{Unflagged}},
		{"while one is open", "= retry/x\npub 40\nsend 40 c 1 40 50.2 500\nsend 50 c 2 nowhere\nsend 60 c 3 flagged 60 60.1 200 worked\ndone 60.2", "", "", []Rule{Unflagged}},
		{"the flag sticks", "= retry/x\npub 40\nsend 40 c 1 nowhere\nsend 50 c 2 flagged 50 50.1 500\nsend 60 c 3 60 60.1 200 worked\ndone 60.2", "", "", []Rule{Unflagged}},
		{"the flag sticks, whatever it was for", "= retry/x\npub 40\nsend 40 c 1 40 40.1 500\nsend 50 c 2 flagged 50 50.1 500\nsend 60 c 3 60 60.1 200 worked\ndone 60.2", "", "", []Rule{Unflagged}},
		{"the record says unknown", "= retry/x\npub 40\nsend 40 c 1 40 40.1 500\nclaim 59.9 2 B unknown" + second, "", "", []Rule{Unflagged}},
		{"the record says unknown, by a clock a little ahead", "= retry/x\npub 40\nsend 40 c 1 40 40.1 500\nclaim 60.05 2 B unknown" + second, "", "", []Rule{Unflagged}},
		{"the record says unknown, under lookup", "", "claim 61.6 2 B", "", []Rule{Unflagged}},
	})
	accepted(t, []excuse{
		{"the record of another attempt says unknown", "= retry/x\npub 40\nclaim 40 1 A unknown\nsend 40.1 c 1 flagged 40.1 40.2 200 worked\ndone 40.3\n= retry/y\npub 40\nclaim 40 1 A\nsend 40.1 c 1 40.1 40.2 200 worked\nclaim 40.151 1 A unknown\ndone 40.3", nil, nil},
		{"the record says unknown afterwards", "= retry/x\npub 40\nclaim 39.9 1 A\nsend 40 c 1 nowhere\nwait 40.04 unknown\nclaim 50.1 2 B unknown\nsend 50.2 b 2 flagged 50.2 50.3 200 worked\ndone 50.4", nil, nil},
		{"no lookup says that the work was not done", "= lookup/x\npub 40\nsend 40 c 1 40 40.1 502" + second, nil, nil},
	})
}

func TestSecondPost(t *testing.T) {
	second := "\nsend 60 c 2 60 60.1 200 worked\ndone 60.2"
	rejected(t, []forgery{
		{"flagged", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 500\nsend 60 c 2 flagged 60 60.1 200 worked\ndone 60.2", "", "", []Rule{SecondPost}},
		{"after no answer", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 0" + second, "", "", []Rule{SecondPost}},
		{"after done", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 200" + second, "", "", []Rule{SecondPost}},
		{"after work", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 500 worked" + second, "", "", []Rule{SecondPost}},
		{"after 502", "= deadletter/x\npub 40\nsend 40 c 1 40 40.1 502" + second, "", "", []Rule{SecondPost}},
		{"after one that never arrived", "= deadletter/x\npub 40\nsend 40 c 1 nowhere" + second, "", "", []Rule{SecondPost}},
		{"while one is open", "= deadletter/x\npub 40\nsend 40 c 1 40 60.1 500\nsend 60 c 2 61 61.1 200 worked\ndone 61.2", "", "", []Rule{SecondPost}},
		{"the record says unknown", "= deadletter/x\npub 40\nclaim 40 1 A\nclaim 59.9 1 B unknown\nsend 60 c 1 60 60.1 200 worked\ndone 60.2", "", "", []Rule{SecondPost}},
	})
}

func TestOnceUnderLookup(t *testing.T) {
	rejected(t, []forgery{
		{"sent after work", "= lookup/x\npub 40\nsend 40 c 1 40 40.1 0 worked\nsend 60 c 2 60 60.1 500\ndone 61", "", "", []Rule{TwiceLookup}},
		{"worked twice", "= lookup/x\npub 40\nsend 40 c 1 40 55 0 worked\nsend 51 b 2 56 57 200 worked\ndone 58", "", "", []Rule{TwiceLookup}},
		{"each is said once", "= lookup/x\npub 40\nsend 40 c 1 40 40.1 0 worked\nsend 60 c 2 60 60.1 0 worked\nsend 80 c 3 80 80.1 500\ndone 81", "", "", []Rule{TwiceLookup, TwiceLookup}},
		{"the third after the first", "= lookup/x\npub 40\nsend 40 c 1 40 40.1 0 worked\nsend 40.05 b 2 nowhere\nsend 60 c 3 60 60.1 500\ndone 61", "", "", []Rule{TooEarly, TwiceLookup}},
	})
	accepted(t, []excuse{
		{"sent at the moment of its end, and did nothing", "= lookup/x\npub 40\nsend 40 c 1 40 55 0 worked\nsend 55 b 2 55 55.1 500\ndone 58", nil, nil},
		{"sent while it worked, and did nothing", "= lookup/x\npub 40\nsend 40 c 1 40 55 0 worked\nsend 51 b 2 nowhere\ndone 58", nil, nil},
		{
			"a lookup cannot know of what arrives after its deadline", "= lookup/x\npub 40\nsend 40 c 1 49.9 50 0 worked\nsend 50.89 b 2 50.89 51 200 worked\ndone 51.1",
			[]Remark{LookupTooSoon},
			[]forgery{
				{"it arrived in time", "", "send 40 c 1 49.9 50 0 worked\nsend 50.89 b 2 50.89", "send 40 c 1 49.89 50 0 worked\nsend 50.8 b 2 50.8", []Rule{TwiceLookup}},
				{"the lookup was later", "", "send 50.89 b 2 50.89", "send 50.9 b 2 50.9", []Rule{TwiceLookup}},
			},
		},
	})
}

const (
	sendsWhenItWakes = `
process e 0 -
stop e 38 39.9
= retry/x
pub 37
claim 37.9 1 A
claim 39.97 1 A
send 40 e 1 40 40.1 0
send 47.8 b 2 flagged 47.8 47.9 200 worked
done 48`
)

func TestTooEarly(t *testing.T) {
	rest := "\nsend 49.8 b 2 flagged 49.8 49.9 200 worked\ndone 50"
	early := func(name string) forgery {
		return forgery{name, "", "send 49.8 b 2 flagged 49.8", "send 49.79 b 2 flagged 49.79", []Rule{TooEarly}}
	}
	accepted(t, []excuse{
		{"after no answer", "= retry/x\npub 40\nsend 40 c 1 40 40.1 0" + rest, nil, []forgery{early("too early")}},
		{"after one that never arrived", "= retry/x\npub 40\nsend 40 c 1 nowhere" + rest, nil, []forgery{early("too early")}},
		{"after an answer that did not come back", "= retry/x\npub 40\nsend 40 c 1 40 40.1 500" + rest, nil, []forgery{early("too early")}},
		{"after a lookup", "= lookup/x\npub 40\nsend 40 c 1 40 40.1 0\nsend 49.8 b 2 49.8 49.9 200 worked\ndone 50", nil, []forgery{
			{"too early", "", "send 49.8 b 2 49.8", "send 49.79 b 2 49.79", []Rule{TooEarly}},
		}},
		{"its deadline counts from before a stop, whose end was written down a little later", swap(t, sendsWhenItWakes, "stop e 38 39.9", "stop e 38 40.05"), nil, nil},
		{"its deadline counts from before a stop, and the store's clock is a little ahead", swap(t, sendsWhenItWakes, "claim 37.9 1 A", "claim 39.95 1 A"), nil, nil},
		{"its deadline counts from before a stop", sendsWhenItWakes, nil, []forgery{
			{"too early", "", "send 47.8 b 2 flagged 47.8", "send 47.79 b 2 flagged 47.79", []Rule{TooEarly}},
			{"claimed after the stop", "", "claim 37.9 1 A", "claim 39.96 1 A", []Rule{TooEarly}},
			{"another claimed before the stop", "", "claim 37.9 1 A", "claim 36 1 Z\nabsent", []Rule{TooEarly}},
			{"no claim", "", "claim 37.9 1 A\nclaim 39.97 1 A", "", []Rule{TooEarly}},
			{"claimed for another attempt", "", "claim 37.9 1 A\nclaim 39.97 1 A", "claim 37.9 2 A", []Rule{TooEarly}},
			{"sent long after the stop", "", "stop e 38 39.9", "stop e 38 38.99", []Rule{TooEarly}},
			{"sent before the stop", "", "stop e 38 39.9", "stop e 38 40.06", []Rule{TooEarly}},
		}},
	})
}
