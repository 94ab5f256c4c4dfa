package world

import (
	"context"
	"fmt"
	"sync"

	"github.com/kvap/kvap/interp"
)

// How many questions are asked of registries at once, by all requests, and how many of one
// registry: who does not answer keeps those waiting that ask it.
const (
	maxAsking = 64
	maxOfHost = 16
)

// asking bounds what registries are asked at once.
type asking struct {
	all chan struct{}

	mu    sync.Mutex
	hosts map[string]*askers
}

// askers are those who ask one registry. They are there as long as somebody does.
type askers struct {
	turns chan struct{}
	count int
}

func newAsking() *asking {
	return &asking{all: make(chan struct{}, maxAsking), hosts: map[string]*askers{}}
}

// take waits for a turn to ask a registry, which ends with a call of done.
func (a *asking) take(ctx context.Context, host string) (done func(), err error) {
	one := a.join(host)
	select {
	case one.turns <- struct{}{}:
	case <-ctx.Done():
		a.leave(host)
		return nil, fmt.Errorf("%w: too much is asked of %s already", interp.ErrUnreachable, host)
	}
	select {
	case a.all <- struct{}{}:
	case <-ctx.Done():
		<-one.turns
		a.leave(host)
		return nil, fmt.Errorf("%w: too many are asked already", interp.ErrUnreachable)
	}
	return func() {
		<-a.all
		<-one.turns
		a.leave(host)
	}, nil
}

func (a *asking) join(host string) *askers {
	a.mu.Lock()
	defer a.mu.Unlock()
	one := a.hosts[host]
	if one == nil {
		one = &askers{turns: make(chan struct{}, maxOfHost)}
		a.hosts[host] = one
	}
	one.count++
	return one
}

func (a *asking) leave(host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hosts[host].count--; a.hosts[host].count == 0 {
		delete(a.hosts, host)
	}
}
