package webhook

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// errBusy is a request that got no turn in its time.
var errBusy = errors.New("too many requests are being judged")

// judgeLimit bounds how many requests are judged at once, and how many of one crowd: those
// about one kind that come in at one path. So a policy that waits for something slow
// keeps only such requests waiting that it is about.
type judgeLimit struct {
	all   chan struct{}
	share int // of a crowd

	mu    sync.Mutex
	kinds map[string]*kindLimit
}

// A kindLimit is there as long as somebody is of it.
type kindLimit struct {
	turns chan struct{}
	of    int
}

func newJudgeLimit(n int) *judgeLimit {
	return &judgeLimit{all: make(chan struct{}, n), share: max(1, n/2), kinds: map[string]*kindLimit{}}
}

// take waits for a turn, which ends with a call of done.
func (t *judgeLimit) take(ctx context.Context, name string) (done func(), err error) {
	c := t.join(name)
	select {
	case c.turns <- struct{}{}:
	case <-ctx.Done():
		t.leave(name)
		return nil, errBusy
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-c.turns
		t.leave(name)
		return nil, errBusy
	}
	return func() {
		<-t.all
		<-c.turns
		t.leave(name)
	}, nil
}

func (t *judgeLimit) join(name string) *kindLimit {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.kinds[name]
	if c == nil {
		c = &kindLimit{turns: make(chan struct{}, t.share)}
		t.kinds[name] = c
	}
	c.of++
	return c
}

func (t *judgeLimit) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.kinds[name]; c.of > 1 {
		c.of--
	} else {
		delete(t.kinds, name)
	}
}

// A purse bounds the bytes of reviews that are in memory at once. Read, they take
// several times as many.
type purse struct {
	bytes *semaphore.Weighted
	all   int64
}

func newPurse(bytes int64) *purse { return &purse{semaphore.NewWeighted(bytes), bytes} }

// take waits for so many bytes, which are given back with a call of done.
func (p *purse) take(ctx context.Context, bytes int64) (done func(), err error) {
	want := min(bytes, p.all)
	if p.bytes.Acquire(ctx, want) != nil {
		return nil, errBusy
	}
	return func() { p.bytes.Release(want) }, nil
}
