package dedup

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// TestRedisAndMemoryAgree drives the script and the Go protocol with the same
// random operations, time jumps and late arrivals, and compares every answer
// and every stored byte. Redis keeps its own clock: after each operation the
// memory store runs the same one at the time that Redis answered with.
func TestRedisAndMemoryAgree(t *testing.T) {
	ctx := context.Background()
	real := openStore(t, shared.config()).backend.(*redisBackend)
	client := newClient(t, shared)

	rapid.Check(t, func(t *rapid.T) {
		key := "test:model:" + NewDeadID()
		twin := newMemory()
		var now int64
		twin.clock = func() int64 { return now }

		for range rapid.IntRange(1, 25).Draw(t, "operations") {
			if jump := rapid.SampledFrom([]int64{0, 0, 0, 50, 5_000, 100_000}).Draw(t, "jump"); jump > 0 {
				travelBoth(t, client, twin, key, jump)
			}
			op := drawOperation(t, key)
			op.expected = drawExpected(t, twin.entries[key].value)
			first := &call{op: op}
			real.run(ctx, []*call{first})
			if first.err != nil {
				t.Fatal(first.err)
			}
			now = first.answer.now
			second := &call{op: op}
			twin.run(ctx, []*call{second})
			if diff := cmp.Diff(first.answer, second.answer, cmp.AllowUnexported(answer{}, record{})); diff != "" {
				t.Fatalf("%+v: answers differ (-redis +memory):\n%s", op, diff)
			}
			stored, _, err := real.get(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if twinStored := twin.entries[key].value; stored != twinStored {
				t.Fatalf("%+v: redis stores %x, memory %x", op, stored, twinStored)
			}
			if first.answer.record != nil && string(appendRecord(nil, first.answer.record)) != stored {
				t.Fatalf("%+v: answered %+v, but stores %x", op, first.answer.record, stored)
			}
		}
	})
}

// travelBoth moves the key's times into the past in both stores.
func travelBoth(t *rapid.T, client *redis.Client, twin *memory, key string, ms int64) {
	now := time.Now().UnixMilli()
	e, found := twin.entries[key]
	if !found {
		return
	}
	r, err := parseRecord(e.value, now)
	if err != nil {
		t.Fatal(err)
	}
	r.shift(ms)
	e.value = string(appendRecord(nil, r))
	twin.entries[key] = e
	if err := client.Set(context.Background(), key, e.value, redis.KeepTTL).Err(); err != nil {
		t.Fatal(err)
	}
}

// drawOperation draws from few tokens, payloads and dead-ids, so that they
// meet often.
func drawOperation(t *rapid.T, key string) operation {
	return operation{
		word:        rapid.SampledFrom(append(words(), wordClaim, wordClaim, wordClaim, wordWait)).Draw(t, "operation"),
		key:         key,
		token:       Token{rapid.ByteRange(0, 3).Draw(t, "token")},
		fingerprint: rapid.SampledFrom([]Fingerprint{payload, payload, payload, otherPayload}).Draw(t, "payload"),
		compare:     rapid.Bool().Draw(t, "compare"),
		lease:       rapid.SampledFrom([]int64{1_000, 30_000}).Draw(t, "lease"),
		deadline:    rapid.SampledFrom([]int64{0, 10_000, 60_000}).Draw(t, "deadline"),
		retention:   time.Hour.Milliseconds(),
		delay:       rapid.SampledFrom([]int64{0, 1_000, 70_000}).Draw(t, "delay"),
		class:       WaitClass(rapid.IntRange(0, 2).Draw(t, "class")),
		status:      rapid.Uint16Range(0, 599).Draw(t, "status"),
		reason:      Reason(rapid.Byte().Draw(t, "reason")),
		unknown:     rapid.Bool().Draw(t, "unknown"),
		deadID:      deadID{rapid.ByteRange(0, 2).Draw(t, "dead-id")},
		hasDeadID:   rapid.Bool().Draw(t, "has dead-id"),
	}
}

// TestTheProtocolKeepsItsPromises checks, over random histories, what the
// guarantees say about any two neighbouring states of a record.
func TestTheProtocolKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var found *record
		now := int64(1_000_000)
		for range rapid.IntRange(1, 40).Draw(t, "operations") {
			now += rapid.SampledFrom([]int64{0, 1, 500, 20_000, 80_000}).Draw(t, "passes")
			op := drawOperation(t, "key")
			op.expected = drawExpected(t, stored(found))
			before := copied(found)
			d := decide(found, &op, now)
			if diff := cmp.Diff(before, found, cmp.AllowUnexported(record{})); diff != "" {
				t.Fatalf("decide changed its argument:\n%s", diff)
			}
			checkPromises(t, before, &op, d, now)
			if d.write {
				found = d.record
			}
		}
	})
}

// drawExpected draws what an operator was shown: often what there is, else something older.
func drawExpected(t *rapid.T, stored string) string {
	older := string(appendRecord(nil, &record{state: StateWaiting, attempts: 1}))
	return rapid.SampledFrom([]string{stored, stored, older, ""}).Draw(t, "expected")
}

func stored(r *record) string {
	if r == nil {
		return ""
	}
	return string(appendRecord(nil, r))
}

func copied(r *record) *record {
	if r == nil {
		return nil
	}
	c := *r
	c.previous = copied(r.previous)
	return &c
}

func checkPromises(t *rapid.T, before *record, op *operation, d decision, now int64) {
	after := before
	if d.write {
		after = d.record
	}
	granted := d.letter == letterClaimed
	own := before != nil && before.state == StateProcessing && before.token == op.token
	switch {
	case op.word == wordForget && d.write != (before != nil && stored(before) == op.expected):
		t.Fatal("forget deletes what was seen, and nothing else")
	case before == nil:
		return
	case op.word == wordForget && d.write:
		return // an operator may forget anything
	case before.state == StateDone && d.write && !cmp.Equal(before, d.record, cmp.AllowUnexported(record{})):
		t.Fatalf("%s changed a done record", op.word)
	case granted && before.state == StateProcessing && !own && now < before.leaseUntil:
		t.Fatal("claim granted under a living lease")
	case granted && before.state == StateProcessing && !own && now < before.deadline:
		t.Fatal("claim granted while a request may be at work")
	case granted && before.state == StateProcessing && !own && !after.everUnknown:
		t.Fatal("a takeover is not flagged")
	case granted && (before.state == StateWaiting || before.state == StateDead) && now < before.notBefore:
		t.Fatal("claim granted before its time")
	case granted && before.state == StateDead && op.deadID != before.deadID:
		t.Fatal("a dead record was opened without its dead-id")
	case granted && op.compare && !own && op.fingerprint != before.fingerprint:
		t.Fatal("claim granted for another payload")
	case d.write && !granted && op.word != wordSucceed && op.word != wordUndead && !own:
		t.Fatalf("%s changed what is not its own", op.word)
	case op.word == wordClear && d.write && (after.everUnknown || after.state != StateProcessing || after.attempts != before.attempts || after.deadline != before.deadline):
		t.Fatal("clear did more, or less, than clear the flag")
	case before.everUnknown && op.word != wordRelease && op.word != wordClear && (after == nil || !after.everUnknown):
		t.Fatalf("%s forgot an unknown outcome", op.word)
	case op.word == wordRelease && d.write && after != nil && after.everUnknown != before.previous.everUnknown:
		t.Fatal("release did not restore")
	}
}
