package controller

import (
	"testing"
	"time"
)

// What is late for a moment is looked at again soon, and what stays late ever more rarely;
// what has just become late does not wait for that.
func TestLateness(t *testing.T) {
	l := &lateBackoff{}
	now := time.Unix(1e9, 0)
	next := func(after time.Duration, late ...string) time.Duration {
		now = now.Add(after)
		return l.next(late, now)
	}
	for _, tt := range []struct {
		after time.Duration
		late  []string
		want  time.Duration
	}{
		{0, nil, 0},
		{0, []string{"never"}, retryAfter},
		{retryAfter, []string{"never"}, retryAfter},
		{20 * time.Second, []string{"never"}, 5500 * time.Millisecond},
		{time.Hour, []string{"never"}, longestRetry},
		{time.Second, []string{"never", "soon"}, retryAfter},
		{retryAfter, []string{"never"}, longestRetry},
		{time.Second, nil, 0},
		{time.Second, []string{"never"}, retryAfter},
	} {
		if got := next(tt.after, tt.late...); got != tt.want {
			t.Errorf("%v later, with %v: %v, want %v", tt.after, tt.late, got, tt.want)
		}
	}
}

// Each kind has its turn, be it after others that nobody ever knows.
func TestKindsTakeTurns(t *testing.T) {
	a, b, c := paramKind{"a/v1", "A"}, paramKind{"b/v1", "B"}, paramKind{"c/v1", "C"}
	for _, tt := range []struct{ last, first paramKind }{{paramKind{}, a}, {a, b}, {b, c}, {c, a}, {paramKind{"b/v1", "Gone"}, c}} {
		if got := inTurn([]paramKind{a, b, c}, tt.last); got[0] != tt.first || len(got) != 3 {
			t.Errorf("after %v: %v, want %v first", tt.last, got, tt.first)
		}
	}
}
