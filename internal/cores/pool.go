package cores

import "sync"

// A Pool has a tool for each of those who work at once: for tools that are dear to
// make and serve one at a time.
type Pool[T any] struct {
	mu   sync.Mutex
	idle []T
	make func() T
}

// NewPool is a pool whose tools are made when none is idle.
func NewPool[T any](make func() T) *Pool[T] { return &Pool[T]{make: make} }

// Take is a tool that nobody else has until it is given back.
func (p *Pool[T]) Take() T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		tool := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return tool
	}
	return p.make()
}

// Give gives a tool back.
func (p *Pool[T]) Give(tool T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, tool)
}
