package webhook

import (
	"context"
	"errors"
	"sync"
)

// errBusy is a request that got no turn in its time.
var errBusy = errors.New("too many requests are being judged")

// turns bound how many requests are judged at once, and how many of one crowd: those
// about one kind that come in at one path. So a policy that waits for something slow
// keeps only such requests waiting that it is about.
type turns struct {
	all   chan struct{}
	share int // of a crowd

	mu     sync.Mutex
	crowds map[string]*crowd
}

// A crowd is there as long as somebody is of it.
type crowd struct {
	turns chan struct{}
	of    int
}

func newTurns(n int) *turns {
	return &turns{all: make(chan struct{}, n), share: max(1, n/2), crowds: map[string]*crowd{}}
}

// take waits for a turn, which ends with a call of done.
func (t *turns) take(ctx context.Context, name string) (done func(), err error) {
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

func (t *turns) join(name string) *crowd {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.crowds[name]
	if c == nil {
		c = &crowd{turns: make(chan struct{}, t.share)}
		t.crowds[name] = c
	}
	c.of++
	return c
}

func (t *turns) leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.crowds[name]; c.of > 1 {
		c.of--
	} else {
		delete(t.crowds, name)
	}
}

// A purse bounds the bytes of reviews that are in memory at once. Read, they take
// several times as many.
type purse struct {
	door  chan struct{} // one takes at a time, so that nobody waits with half of his
	coins chan struct{}
}

// coin is how many bytes are counted as one.
const coin = 16 << 10

func newPurse(bytes int64) *purse {
	return &purse{door: make(chan struct{}, 1), coins: make(chan struct{}, coins(bytes))}
}

func coins(bytes int64) int { return int((bytes + coin - 1) / coin) }

// take waits for so many bytes, which are given back with a call of done.
func (p *purse) take(ctx context.Context, bytes int64) (done func(), err error) {
	want, have := min(coins(bytes), cap(p.coins)), 0
	done = func() {
		for range have {
			<-p.coins
		}
	}
	select {
	case p.door <- struct{}{}:
	case <-ctx.Done():
		return nil, errBusy
	}
	defer func() { <-p.door }()
	for have < want {
		select {
		case p.coins <- struct{}{}:
			have++
		case <-ctx.Done():
			done()
			return nil, errBusy
		}
	}
	return done, nil
}
