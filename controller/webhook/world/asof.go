package world

import (
	"context"
	"net/http"
	"sync"

	"github.com/kvap/kvap/interp"
)

// About is the World of rules about some resources. What they read of these by API calls is as
// of the call, and not as late as a watch is: of two objects that may not both be there, the one
// that was written a moment ago decides on the other.
func (w *World) About(resources func(group, resource string) bool) interp.World {
	return &own{w, resources}
}

// An own is the World of rules about some resources.
type own struct {
	*World
	about func(group, resource string) bool
}

// API asks the API server for a path; data, if not nil, is POSTed.
func (o *own) API(ctx context.Context, path string, data []byte) ([]byte, error) {
	if at, plain := placeOf(path); data == nil && plain && o.about(at.resource.Group, at.resource.Resource) {
		return o.readNow(ctx, path)
	}
	return o.World.API(ctx, path, data)
}

// readNow is what the API server has at a path.
func (w *World) readNow(ctx context.Context, path string) ([]byte, error) {
	if err := lawful(path); err != nil {
		return nil, err
	}
	return w.readings.read(ctx, path, func() ([]byte, error) {
		w.options.Called(ByServer)
		return w.ask(context.WithoutCancel(ctx), http.MethodGet, path, nil) // it ends with its own time: others wait for it
	})
}

// Readings are what is read of paths, shared by those who ask at once. Who asks gets what was
// begun to be read after that, so it has all that was written before. One reading of a path is
// under way at a time, and all who ask meanwhile share the next one: however many requests there
// are, the API server writes an answer once, and then the next.
type readings struct {
	called func(by string)

	mu sync.Mutex
	of map[string]*pair // by path, where one is under way
}

// A pair is the reading of a path that is under way, and the one after that, if somebody waits
// for it.
type pair struct{ next *reading }

// A reading is read until done is closed.
type reading struct {
	read   func() ([]byte, error)
	done   chan struct{}
	answer []byte
	err    error
}

func newReadings(called func(by string)) *readings {
	return &readings{called: called, of: map[string]*pair{}}
}

func (r *readings) read(ctx context.Context, path string, read func() ([]byte, error)) ([]byte, error) {
	mine := r.join(path, &reading{read: read, done: make(chan struct{})})
	select {
	case <-mine.done:
		return mine.answer, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join is the reading that begins next.
func (r *readings) join(path string, one *reading) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch p := r.of[path]; {
	case p == nil:
		r.of[path] = &pair{}
		go r.run(path, one)
	case p.next == nil:
		p.next = one
	default:
		r.called(ByAnother)
		return p.next
	}
	return one
}

// run reads a path until nobody waits for more.
func (r *readings) run(path string, one *reading) {
	for one != nil {
		one.answer, one.err = one.read()
		close(one.done)
		one = r.after(path)
	}
}

// after is the reading that is to begin now; nil where nobody waits.
func (r *readings) after(path string) (next *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next, r.of[path].next = r.of[path].next, nil; next == nil {
		delete(r.of, path)
	}
	return next
}
