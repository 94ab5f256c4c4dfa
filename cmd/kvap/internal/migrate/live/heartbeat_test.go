package live

import (
	"testing"
	"time"
)

// A Kyverno whose lease is old does not judge, unless the lease is seen to move: then
// only the clocks differ.
func TestHeartbeat(t *testing.T) {
	now := time.Unix(10000, 0)
	at := func(age time.Duration) heartbeat {
		return heartbeat{lease: "kyverno/kyverno-health", said: now.Add(-age).UTC().Format(time.RFC3339)}
	}
	for name, one := range map[string]struct {
		beat   heartbeat
		silent bool
	}{
		"no lease": {heartbeat{}, false}, "fresh": {at(5 * time.Second), false}, "old": {at(time.Hour), true},
		"of the future": {at(-time.Hour), true}, "old, and it moves": {at(time.Hour).after(at(2 * time.Hour)), false},
		"old, and it does not": {at(time.Hour).after(at(time.Hour)), true}, "no time": {heartbeat{said: "soon"}, false},
	} {
		if got := one.beat.silent(now); (got != "") != one.silent {
			t.Errorf("%s: %q", name, got)
		}
	}
}
