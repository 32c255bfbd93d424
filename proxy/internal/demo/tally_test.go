package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCount(t *testing.T) {
	rejected := letter{id: "b", reason: "rejected", status: "400"}
	unknown := letter{id: "b", reason: reasonUnknown}
	for _, test := range []struct {
		name string
		books
		want tally
		kept bool
	}{
		{name: "nothing", kept: true},
		{
			name:  "each charged once, a copy among them",
			books: books{confirmed: []string{"a", "b", "a"}, charges: []string{"b", "a"}},
			want:  tally{published: 3, distinct: 2, charges: 2},
			kept:  true,
		},
		{
			name:  "lost",
			books: books{confirmed: []string{"a", "b", "b"}, charges: []string{"a"}},
			want:  tally{published: 3, distinct: 2, charges: 1, lost: []string{"b"}},
		},
		{
			name:  "charged twice and three times, as published",
			books: books{confirmed: []string{"a", "b", "c"}, charges: []string{"c", "c", "a", "b", "b", "b"}},
			want:  tally{published: 3, distinct: 3, charges: 6, twice: []string{"b", "c"}},
		},
		{
			name:  "charged twice though nobody published it",
			books: books{charges: []string{"x", "x"}},
			want:  tally{charges: 2, twice: []string{"x"}},
		},
		{
			name:  "one charged twice does not make up for one lost",
			books: books{confirmed: []string{"a", "b"}, charges: []string{"a", "a"}},
			want:  tally{published: 2, distinct: 2, charges: 2, twice: []string{"a"}, lost: []string{"b"}},
		},
		{
			name:  "a dead letter is not lost",
			books: books{confirmed: []string{"a", "b"}, charges: []string{"a"}, letters: []letter{rejected}},
			want:  tally{published: 2, distinct: 2, charges: 1, letters: []letter{rejected}},
			kept:  true,
		},
		{
			name:  "another's dead letter does not help",
			books: books{confirmed: []string{"a"}, letters: []letter{rejected}},
			want:  tally{published: 1, distinct: 1, lost: []string{"a"}, letters: []letter{rejected}},
		},
		{
			name: "an unknown outcome needs a person, once, whether it was charged",
			books: books{
				confirmed: []string{"a", "b"}, charges: []string{"a", "b"}, letters: []letter{unknown, unknown},
			},
			want: tally{
				published: 2, distinct: 2, charges: 2, letters: []letter{unknown}, person: []doubt{{id: "b", charges: 1}},
			},
			kept: true,
		},
		{
			name:  "or not",
			books: books{confirmed: []string{"b"}, letters: []letter{unknown}},
			want:  tally{published: 1, distinct: 1, letters: []letter{unknown}, person: []doubt{{id: "b"}}},
			kept:  true,
		},
		{
			name:  "a dead letter does not excuse a second charge",
			books: books{confirmed: []string{"b"}, charges: []string{"b", "b"}, letters: []letter{unknown}},
			want: tally{
				published: 1, distinct: 1, charges: 2, twice: []string{"b"}, letters: []letter{unknown},
				person: []doubt{{id: "b", charges: 2}},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := count(test.books)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(tally{}, letter{}, doubt{})); diff != "" {
				t.Errorf("tally (-want +got):\n%s", diff)
			}
			if got.kept() != test.kept {
				t.Errorf("kept = %v, want %v", got.kept(), test.kept)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		name   string
		result tally
		err    error
		want   int
	}{
		{name: "kept", result: tally{letters: []letter{{id: "a", reason: "rejected"}}}, want: exitOK},
		{name: "charged twice", result: tally{twice: []string{"a"}}, want: exitFailed},
		{name: "lost", result: tally{lost: []string{"a"}}, want: exitFailed},
		{name: "no table", err: errors.New("no broker"), want: exitFailed},
		{name: "usage", err: fmt.Errorf("prepare: %w", usageError{"RABBITMQ_URL: no"}), want: exitUsage},
		{name: "interrupted", err: errInterrupted, want: exitInterrupted},
	} {
		if got := exitCode(test.result, test.err); got != test.want {
			t.Errorf("%s: exit code %d, want %d", test.name, got, test.want)
		}
	}
}
