package incluster

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// replicas knows which processes are gone that have written what they said in shadow. A process
// has the name of its Pod; where this one has none, nothing is known of others.
type replicas struct {
	self    string                                       // "" where it is not known
	get     func(ctx context.Context, name string) error // a Pod
	changed func()

	mu    sync.Mutex
	known map[string]bool // those that were asked about: whether they are gone
}

// replicasEvery is how often Pods are looked for.
const replicasEvery = 10 * time.Second

func newReplicas(self string, get func(ctx context.Context, name string) error, changed func()) *replicas {
	return &replicas{self: self, get: get, changed: changed, known: map[string]bool{}}
}

// gone tells of a process that its Pod is not there any more. Of one that nobody has asked about
// that is found out afterwards.
func (r *replicas) gone(by string) bool {
	if r.self == "" {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := r.known[by]
	r.known[by] = gone
	return gone
}

// run looks for Pods until the context ends.
func (r *replicas) run(ctx context.Context) error {
	wait.UntilWithContext(ctx, r.look, replicasEvery)
	return nil
}

// look forgets those that it has found gone before: what they wrote was removed.
func (r *replicas) look(ctx context.Context) {
	r.mu.Lock()
	var names []string
	for name, gone := range r.known {
		switch {
		case gone:
			delete(r.known, name)
		case name != r.self:
			names = append(names, name)
		}
	}
	r.mu.Unlock()
	found := false
	for _, name := range names {
		if apierrors.IsNotFound(r.get(ctx, name)) {
			r.mu.Lock()
			r.known[name], found = true, true
			r.mu.Unlock()
		}
	}
	if found {
		r.changed()
	}
}
