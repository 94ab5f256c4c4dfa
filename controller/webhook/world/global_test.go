package world

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that is away for a moment costs an entry a moment, not an interval.
func TestPersist(t *testing.T) {
	down := errors.New("nobody answers")
	for _, c := range []struct {
		name  string
		away  time.Duration
		tries int64
		asked int
		err   error
	}{
		{"there", 0, 3, 1, nil},
		{"away for a moment", 1500 * time.Millisecond, 3, 3, nil},
		{"away for long", time.Hour, 3, 3, down},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := time.Now().Add(c.away)
				asked := 0
				_, err := persist(t.Context(), c.tries, func() (any, error) {
					asked++
					if time.Now().Before(back) {
						return nil, down
					}
					return "answer", nil
				})
				if asked != c.asked || !errors.Is(err, c.err) {
					t.Errorf("asked %d times, got %v; want %d, %v", asked, err, c.asked, c.err)
				}
			})
		})
	}
}

// The entries that are there at first are waited for, until each was read or cannot be. Those that
// are made later end nobody's readiness.
func TestGlobalsReady(t *testing.T) {
	g := newGlobals(nil)
	if g.ready() == nil {
		t.Error("ready before the entries were looked for")
	}
	asked := &global{err: errNotYet}
	g.followed, g.entries["asked"] = true, asked
	if err := g.ready(); err == nil || !strings.Contains(err.Error(), "asked") {
		t.Errorf("ready before an entry has its answer: %v", err)
	}
	asked.err = errors.New("nobody answers")
	if err := g.ready(); err != nil {
		t.Errorf("an entry that nobody answers is waited for: %v", err)
	}
	g.entries["later"] = &global{err: errNotYet}
	if err := g.ready(); err != nil {
		t.Errorf("an entry that came later is waited for: %v", err)
	}
}

func TestPersistEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := persist(ctx, 10, func() (any, error) {
		cancel()
		return nil, errors.New("nobody answers")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
