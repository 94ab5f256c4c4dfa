// Package turns bounds how much is done at once, in all and of each name.
//
// In comes the name of what is to be done and of who asks for it, out comes a turn, or an error
// where the context ends before. What waits for something slow keeps only what has its name
// waiting, and who asks for much leaves room for others.
//
// A name is known as long as somebody waits for it or has a turn.
//
// Start at Turns.Take, then shares.go.
package turns

import (
	"context"
	"errors"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Why there is no turn: too much of the name, or too much in all.
var (
	ErrOfName = errors.New("too much of one name is under way")
	ErrInAll  = errors.New("too much is under way")
)

// Turns are a number of turns, shared among those who ask.
type Turns struct {
	all   *Shares
	share int64 // of one name, for each who asks
	most  int   // of such a name that have a turn or wait for one

	mu    sync.Mutex
	names map[string]*named
}

type named struct {
	*semaphore.Weighted
	users int
}

// New makes turns, of which one name has a share at most.
func New(all, share int64) *Turns { return NewBounded(all, share, math.MaxInt32) }

// NewBounded makes turns for which so many of one name wait at most: more get none.
func NewBounded(all, share int64, waiting int) *Turns {
	return &Turns{all: NewShares(all, 0), share: share, most: int(share) + waiting, names: map[string]*named{}}
}

// Take waits for a turn of a name for who asks, which ends with a call of done.
func (t *Turns) Take(ctx context.Context, who, name string) (done func(), err error) {
	name = who + " " + name
	one := t.join(name)
	if one == nil {
		return nil, ErrOfName
	}
	if one.Acquire(ctx, 1) != nil {
		t.leave(name)
		return nil, ErrOfName
	}
	turn := t.all.Of(who)
	done = func() {
		turn.Free()
		one.Release(1)
		t.leave(name)
	}
	if turn.Take(ctx, 1) != nil {
		done()
		return nil, ErrInAll
	}
	return done, nil
}

// join is nil where too many wait.
func (t *Turns) join(name string) *named {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.names[name]
	if one == nil {
		one = &named{Weighted: semaphore.NewWeighted(t.share)}
	}
	if one.users >= t.most {
		return nil
	}
	one.users++
	t.names[name] = one
	return one
}

func (t *Turns) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[name].users--; t.names[name].users == 0 {
		delete(t.names, name)
	}
}
