package images

import (
	"fmt"
	"io"
	"sync/atomic"
)

// A Budget bounds the bytes of signatures and attestations that are held at once, by all who share
// it. What is beyond it is an error at once, and ErrUnreachable: it says nothing of an image. Bytes
// count when they arrive, so that who announces many and sends none keeps nobody from reading.
type Budget struct{ left atomic.Int64 }

// NewBudget is one of so many bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.left.Store(bytes)
	return b
}

func (b *Budget) take(n int64) bool {
	if b == nil || b.left.Add(-n) >= 0 {
		return true
	}
	b.left.Add(n)
	return false
}

func (b *Budget) give(n int64) {
	if b != nil {
		b.left.Add(n)
	}
}

// A counted reader takes what it reads from a budget, until done.
type counted struct {
	io.Reader
	budget *Budget
	taken  int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if !c.budget.take(int64(n)) {
		return 0, fmt.Errorf("%w: too many bytes of signatures and attestations are held already", ErrUnreachable)
	}
	c.taken += int64(n)
	return n, err
}

func (c *counted) done() {
	c.budget.give(c.taken)
	c.taken = 0
}
