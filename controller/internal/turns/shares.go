package turns

import (
	"context"
	"slices"
	"sync"
)

// Shares are an amount of something of which each name has a share. A name that has much leaves
// room for others: none has more than three times what is left then. What waits is given to the
// name that has least, in the order in which it asked.
type Shares struct {
	mu     sync.Mutex
	left   int64
	beyond int // how many names may yet have a share that takes more than it may
	asked  int64
	names  map[string]*holder // that have something, or wait
}

// A holder is what is known of a name.
type holder struct {
	held    int64
	beyond  *Share // which takes what it needs
	waiting []*waiter
}

// A Share is what one thing has.
type Share struct {
	of    *Shares
	name  string
	taken int64
}

type waiter struct {
	share  *Share
	amount int64
	asked  int64
	given  chan struct{}
}

// NewShares makes shares of an amount. Where shares take more and more, all might wait for each
// other: one of a name then takes more than it may, of so many names at once, so that always one
// comes to its end and gives back what it has.
func NewShares(amount int64, beyond int) *Shares {
	return &Shares{left: amount, beyond: beyond, names: map[string]*holder{}}
}

// Of is a share of the name, which has nothing yet.
func (s *Shares) Of(name string) *Share { return &Share{of: s, name: name} }

// Left is how much nobody has.
func (s *Shares) Left() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// Waiting is how many wait.
func (s *Shares) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.names {
		n += len(h.waiting)
	}
	return n
}

// Take takes more, and waits where it may not.
func (s *Share) Take(ctx context.Context, amount int64) error {
	of := s.of
	of.mu.Lock()
	h := of.names[s.name]
	if h == nil {
		h = &holder{}
		of.names[s.name] = h
	}
	first := of.next()
	if inTurn := first == nil || len(h.waiting) == 0 && h.held < first.held; (inTurn || h.beyond == s) && of.give(h, s, amount) {
		of.mu.Unlock()
		return nil
	}
	of.asked++
	w := &waiter{s, amount, of.asked, make(chan struct{})}
	h.waiting = append(h.waiting, w)
	of.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
		of.mu.Lock()
		defer of.mu.Unlock()
		h.waiting = slices.DeleteFunc(h.waiting, func(o *waiter) bool { return o == w })
		of.serve(s.name)
		return ctx.Err()
	}
}

// Free gives back all that was taken.
func (s *Share) Free() {
	of := s.of
	of.mu.Lock()
	defer of.mu.Unlock()
	h := of.names[s.name]
	if h == nil {
		return // it took nothing, or has given it back
	}
	of.left += s.taken
	h.held -= s.taken
	s.taken = 0
	if h.beyond == s {
		h.beyond = nil
		of.beyond++
	}
	of.serve(s.name)
}

// serve gives to those that wait, after something of the name has changed.
func (s *Shares) serve(name string) {
	for h := s.next(); h != nil; h = s.next() {
		w := h.waiting[0]
		if !s.give(h, w.share, w.amount) {
			break
		}
		h.waiting = h.waiting[1:]
		close(w.given)
	}
	if h := s.names[name]; h != nil && h.held == 0 && h.beyond == nil && len(h.waiting) == 0 {
		delete(s.names, name)
	}
}

// next is the name that waits and has least; nil where none waits.
func (s *Shares) next() (out *holder) {
	for _, h := range s.names {
		if len(h.waiting) > 0 && (out == nil || h.held < out.held || h.held == out.held && h.waiting[0].asked < out.waiting[0].asked) {
			out = h
		}
	}
	return out
}

func (s *Shares) give(h *holder, to *Share, amount int64) bool {
	if left := s.left - amount; h.beyond != to && (left < 0 || h.held > 0 && h.held+amount > 3*left) {
		if s.beyond == 0 || h.beyond != nil {
			return false
		}
		s.beyond--
		h.beyond = to
	}
	s.left -= amount
	h.held += amount
	to.taken += amount
	return true
}
