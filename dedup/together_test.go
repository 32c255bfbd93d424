package dedup

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Operations of one command are carried out in order, each for itself: one on a key that holds something else fails alone,
// and one on a key that came before finds what that left.
func TestOperationsTogether(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		options, err := redisOptions(shared.config())
		if err != nil {
			t.Fatal(err)
		}
		b := newRedisWith(shared.config(), options)
		t.Cleanup(func() { _ = b.close() })
		ctx := t.Context()
		fresh, list, text := testKey(t)+"fresh", testKey(t)+"list", testKey(t)+"text"
		if err := b.single.LPush(ctx, list, "x").Err(); err != nil {
			t.Fatal(err)
		}
		b.single.Expire(ctx, list, time.Hour)
		if err := b.single.Set(ctx, text, "no record", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		claim := func(key string) *call {
			return &call{op: operation{word: wordClaim, key: key, token: NewToken(), fingerprint: payload, compare: true, lease: 30_000, deadline: 60_000, retention: 60_000}}
		}
		first, second, onList, onText := claim(fresh), claim(fresh), claim(list), claim(text)
		done := &call{op: operation{word: wordSucceed, key: fresh, status: 200, fingerprint: payload, retention: 60_000}}
		third := claim(fresh)
		group := []*call{onList, first, onText, second, done, third}
		if reverse { // the failures last
			group = []*call{first, second, done, third, onList, onText}
		}
		b.run(ctx, group)
		for name, want := range map[string]struct {
			call   *call
			letter letter
			failed string
		}{
			"a claim":                  {first, letterClaimed, ""},
			"a second claim":           {second, letterBusy, ""},
			"a success":                {done, letterApplied, ""},
			"a claim after it":         {third, letterDone, ""},
			"a key of another type":    {onList, 0, "WRONGTYPE Operation against a key holding the wrong kind of value"},
			"a key of another program": {onText, 0, "NORECORD the key holds no rabbitonce record"},
		} {
			got := want.call
			if got.answer.letter != want.letter || (got.err == nil) != (want.failed == "") || (got.err != nil && !strings.HasPrefix(got.err.Error(), want.failed)) {
				t.Errorf("%s: letter %q, error %v", name, got.answer.letter, got.err)
			}
			if got.err != nil && wrongServer(got.err) {
				t.Errorf("%s: %v is taken for the wrong server's", name, got.err)
			}
		}
	}
}

// An answer that is not understood is an error of its operation.
func TestAnswersThatAreNone(t *testing.T) {
	for _, answers := range [][]any{nil, {}, {nil}, {int64(1)}, {"c"}, {redis.Nil}} {
		if a, err := readAnswer(answers, 0); err == nil {
			t.Errorf("%v: %+v", answers, a)
		}
	}
}
