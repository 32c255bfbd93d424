package main

import "testing"

func TestJudge(t *testing.T) {
	b := books{
		charges: []string{"once", "twice", "twice", "thrice", "thrice", "thrice", "doubtful", "worse", "worse"},
		letters: []letter{
			{id: "poison", reason: "rejected"},
			{id: "doubtful", reason: reasonUnknown},
			{id: "worse", reason: reasonUnknown},
		},
	}
	for _, test := range []struct {
		id    string
		again bool
		want  result
	}{
		{"once", false, resultCharged},
		{"once", true, resultSkipped},
		{"twice", true, resultChargedTwice},
		{"twice", false, resultChargedTwice},
		{"thrice", true, resultChargedTwice},
		{"poison", false, resultDead},
		{"doubtful", true, resultPerson},
		{"worse", true, resultChargedTwice},
		{"absent", false, resultLost},
		{"absent", true, resultLost},
	} {
		if got := judge(b, test.id, test.again); got != test.want {
			t.Errorf("judge %s, again %v: %v, want %v", test.id, test.again, got, test.want)
		}
	}
}

func TestJudgeAll(t *testing.T) {
	b := books{charges: []string{"a", "b", "b", "c"}}
	for _, test := range []struct {
		ids   []string
		again bool
		want  verdict
	}{
		{ids: []string{"a"}, want: verdict{"charged", resultCharged}},
		{ids: []string{"a", "c"}, want: verdict{"2 charged", resultCharged}},
		{ids: []string{"a", "c"}, again: true, want: verdict{"2 skipped", resultSkipped}},
		{ids: []string{"a", "b", "c", "d"}, want: verdict{"1 LOST, 1 CHARGED TWICE, 2 charged", resultLost}},
		{ids: []string{"b"}, again: true, want: verdict{"CHARGED TWICE", resultChargedTwice}},
	} {
		if got := judgeAll(b, test.ids, test.again); got != test.want {
			t.Errorf("judge %v, again %v: %v, want %v", test.ids, test.again, got, test.want)
		}
	}
}
