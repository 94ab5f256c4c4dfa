package background

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// Options say what to work with. Cluster, Requests and World must be there; other
// zero fields have their defaults.
type Options struct {
	Cluster  Cluster
	Requests Requests
	// World is what rules look things up in.
	World interp.World
	// Limits bound what a rule may take for one trigger.
	Limits interp.Limits
	// Tell hears what users should.
	Tell func(Notice)
	Now  func() time.Time
	// Workers is how many pieces of work are done at once; 4.
	Workers int
	// Timeout is how long one may take; 30 s.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Tell == nil {
		o.Tell = func(Notice) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return o
}

// A Worker carries work out, one piece after another for each rule and trigger.
type Worker struct {
	options Options
	queue   workqueue.TypedDelayingInterface[task]

	setting sync.Mutex // of Set
	current atomic.Pointer[shelf]
	begun   chan struct{} // is closed by the first Set

	mu    sync.Mutex
	busy  map[string]bool // what is being worked at, by task.what
	tries map[task]int    // failures of work that no GenerateRequest stands for
}

// New makes a worker that has no policies yet and does nothing.
func New(o Options) *Worker {
	return &Worker{
		options: o.withDefaults(), queue: workqueue.NewTypedDelayingQueue[task](), begun: make(chan struct{}),
		busy: map[string]bool{}, tries: map[task]int{},
	}
}

// Set replaces the policies, at once and as a whole.
func (w *Worker) Set(set Set) {
	w.setting.Lock()
	defer w.setting.Unlock()
	before := w.current.Load()
	w.current.Store(w.shelve(set, before))
	if before == nil {
		close(w.begun)
	}
}

// A task is what stands in the queue.
type task struct {
	// request is the name of a GenerateRequest. Without one the work is what a rule
	// wants for a trigger that is there.
	request string
	policy  string // keyOf
	rule    string
	trigger v1alpha1.ObjectReference
}

// what is the rule and the trigger that a task is about.
func what(policy, rule string, trigger v1alpha1.ObjectReference) string {
	return policy + "\n" + rule + "\n" + trigger.APIVersion + "\n" + trigger.Kind + "\n" + string(trigger.UID) + "\n" + trigger.Namespace + "\n" + trigger.Name
}

// Request has a GenerateRequest carried out. Who calls it for one that is done, or
// is in the queue, does no harm.
func (w *Worker) Request(name string) { w.queue.Add(task{request: name}) }

// Run works until the context ends, once there are policies.
func (w *Worker) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.begun:
	}
	var group sync.WaitGroup
	for range w.options.Workers {
		group.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	group.Wait()
	return nil
}

// next does what is first in the queue, and puts it back where there is more to do.
func (w *Worker) next(ctx context.Context) bool {
	t, ended := w.queue.Get()
	if ended {
		return false
	}
	defer w.queue.Done(t)
	if ctx.Err() != nil {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	if again := w.do(limited, t); again > 0 {
		w.queue.AddAfter(t, again)
	}
	return true
}

// do does a task and tells when to do it again; 0 is never.
func (w *Worker) do(ctx context.Context, t task) (again time.Duration) {
	if t.request != "" {
		return w.doRequest(ctx, t.request)
	}
	return 0
}

// inTurn works at a rule and trigger when nobody else does.
func (w *Worker) inTurn(key string, work func() outcome) (out outcome, ok bool) {
	w.mu.Lock()
	if w.busy[key] {
		w.mu.Unlock()
		return outcome{}, false
	}
	w.busy[key] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.busy, key)
	}()
	return work(), true
}

// A job is a piece of work.
type job struct {
	policy  *held
	rule    string
	trigger v1alpha1.ObjectReference
	remove  bool
	request *v1alpha1.CapturedRequest // nil where no request has started it
	age     time.Duration             // since it was started
}

// An outcome is what became of a job.
type outcome struct {
	state     v1alpha1.GenerateRequestState
	message   string
	resources []v1alpha1.ObjectReference
	err       error // of a failure
}

// errEarly is a failure that time may mend: the request that has started the work is
// not through yet. It is not told.
var errEarly = errors.New("the object is not stored yet")

func failed(err error) outcome {
	return outcome{state: v1alpha1.GenerateFailed, err: err, message: err.Error()}
}

func skipped(why string) outcome { return outcome{state: v1alpha1.GenerateSkipped, message: why} }
