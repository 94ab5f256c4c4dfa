package background

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
)

// Options say what to work with. All must be there but Watcher, User, Applied and Now.
type Options struct {
	Cluster  Cluster
	Requests Requests
	// Records keep what rules make.
	Records RecordStore
	// World is what rules look things up in.
	World interp.World
	// Kinds are the kinds that the cluster serves whose parts match patterns, in one
	// version each unless the pattern names more.
	Kinds func(group, version, kind string) []v1alpha1.KindReference
	// Resources is Kinds by the name of a resource, which is not a pattern.
	Resources func(group, version, resource string) []v1alpha1.KindReference
	// Watcher tells of changes; nil tells of none.
	Watcher Watcher
	// User is whom the program is to the API server; empty where that is not known.
	User string
	// Tell takes what users should know.
	Tell func(Notice)
	// Applied takes what was done; nil takes nothing.
	Applied func(Applied)
	// Now is the clock; that of the machine by default.
	Now func() time.Time
}

const (
	workers = 4 // pieces of work that are done at once
	// maxQueued is how much work for objects that are there may wait before more of them are
	// looked at.
	maxQueued = 5000
	// workTimeout is how long a piece of work may take, and scanTimeout how long all objects of
	// a rule may.
	workTimeout, scanTimeout = 30 * time.Second, 5 * time.Minute
	// scanInterval is after how long everything is looked at again.
	scanInterval = time.Hour
)

// A Worker carries work out, one piece after another for each rule and trigger.
type Worker struct {
	options Options
	queue   workqueue.TypedDelayingInterface[task]
	backoff *repairBackoff

	setting  sync.Mutex // of Set
	watching sync.Mutex // of what is told to the Watcher
	writing  sync.Mutex // of the record store
	read     bool       // the record store was read, under writing
	current  atomic.Pointer[policySnapshot]
	begun    chan struct{} // is closed by the first Set
	running  bool          // this process is the one that works
	room     int           // maxQueued

	mu              sync.Mutex
	busy            map[string]bool          // what is being worked at, by what
	known           map[string]time.Time     // since when GenerateRequests that are not done are
	tries           map[task]int             // failures of work that no GenerateRequest stands for
	records         map[string]RuleRecord    // what is written down, by ruleKey; nil before this process works
	toldOf          map[string]error         // failures about records that were told, by ruleKey
	unwatched       map[Watched]bool         // what cannot be watched, and was told of
	requestWatchErr error                    // why GenerateRequests cannot be watched
	failedRequests  map[string]failedRequest // GenerateRequests whose work has failed, by name
}

// New makes a worker that has no policies yet and does nothing.
func New(o Options) *Worker {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Worker{
		options: o, queue: workqueue.NewTypedDelayingQueue[task](), begun: make(chan struct{}),
		busy: map[string]bool{}, known: map[string]time.Time{}, tries: map[task]int{}, toldOf: map[string]error{}, unwatched: map[Watched]bool{},
		failedRequests: map[string]failedRequest{}, room: maxQueued,
		backoff: &repairBackoff{now: o.Now, versions: map[v1alpha1.ObjectReference]string{}, repairs: map[triggerTask]repairs{}},
	}
}

// Set replaces the policies, at once and as a whole.
func (w *Worker) Set(set PolicySet) {
	w.setting.Lock()
	defer w.setting.Unlock()
	before := w.current.Load()
	next := w.prepare(set, before)
	w.current.Store(next)
	if before == nil {
		close(w.begun)
	}
	if w.running {
		w.changed(before, next)
	}
}

// changed queues what new policies want.
func (w *Worker) changed(before, next *policySnapshot) {
	w.watch()
	w.queue.Add(recordsTask{})
	for key, p := range next.policies {
		if next.isNew(key, before) {
			w.scanAll(p, false)
		}
	}
}

// watch gives the Watcher the kinds that rules look after now.
func (w *Worker) watch() {
	w.watching.Lock()
	defer w.watching.Unlock()
	if w.options.Watcher != nil {
		w.options.Watcher.Watch(w.watched(w.current.Load()))
	}
}

// scanAll queues a scan of each rule; again tells that it is not the first one.
func (w *Worker) scanAll(p *preparedPolicy, again bool) {
	for _, r := range p.rules {
		if !r.invalid && !(again && r.onceOnly) {
			w.queue.Add(scanTask{ruleID: r.id()})
		}
	}
}

// ruleKey tells rules apart.
func ruleKey(policy, rule string) string { return policy + "\n" + rule }

// what is the rule and the trigger that work is about.
func what(policy, rule string, t v1alpha1.ObjectReference) string {
	id := string(t.UID)
	if id == "" {
		id = t.Namespace + "/" + t.Name
	}
	return ruleKey(policy, rule) + "\n" + t.APIVersion + "\n" + t.Kind + "\n" + id
}

// Request queues a GenerateRequest. To queue one that is done, or is in the queue, does no
// harm.
func (w *Worker) Request(name string) { w.queue.Add(requestTask(name)) }

// Run works until the context ends, once there are policies.
func (w *Worker) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-w.begun:
	}
	w.begin()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(scanInterval):
			w.backoff.forget()
			for _, p := range w.current.Load().policies {
				w.scanAll(p, true)
			}
		}
	}
	w.queue.ShutDown()
	group.Wait()
	return nil
}

// begin looks at everything that the policies are about.
func (w *Worker) begin() {
	w.setting.Lock()
	defer w.setting.Unlock()
	w.running = true
	w.mu.Lock()
	w.records = map[string]RuleRecord{}
	w.mu.Unlock()
	w.changed(nil, w.current.Load())
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
	timeout := workTimeout
	if _, scans := t.(scanTask); scans {
		timeout = scanTimeout
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if again := t.do(limited, w); again > 0 {
		w.queue.AddAfter(t, again)
	}
	return true
}

// inTurn works, unless other work with the key is under way; then ok is false.
func (w *Worker) inTurn(key string, work func() workResult) (out workResult, ok bool) {
	w.mu.Lock()
	if w.busy[key] {
		w.mu.Unlock()
		return workResult{}, false
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

// worksAt tells that work for a rule is under way, other than that with the key besides.
func (w *Worker) worksAt(rule, besides string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.busy {
		if key != besides && strings.HasPrefix(key, rule+"\n") {
			return true
		}
	}
	return false
}

// A job is a piece of work.
type job struct {
	rule    *preparedRule
	trigger v1alpha1.ObjectReference
	remove  bool
	request *v1alpha1.CapturedRequest  // nil where no request has started it
	begun   time.Time                  // when it was, by the API server's clock
	age     time.Duration              // since then, as far as is known here
	done    []v1alpha1.ObjectReference // what an earlier try has changed
}

// work does what the rule of a job is for.
func (w *Worker) work(ctx context.Context, j job) workResult {
	t, err := w.find(ctx, j)
	switch {
	case err != nil:
		return failed(explained(err))
	case t.why != "":
		if t.forged { // the API server did not send the request, which is told
			w.options.Tell(Notice{Policy: j.rule.policy.Of, Changes: j.rule.changes, About: j.trigger, Warning: true, Reason: reasonMistrusted, Note: note(j.rule.name, j.trigger, t.why)})
		}
		return skipped(t.why)
	case t.ending && !j.remove && j.rule.keepsInStep() && !j.rule.makesOfDeleted:
		// Its objects are removed with it. What the rule makes while finalizers hold it would be
		// left: it is asked about no other deletion.
		return skipped("the object is on its way out")
	case j.rule.changes && j.request != nil && w.options.User != "" && j.request.UserInfo.Username == w.options.User &&
		j.age < w.backoff.wait(triggerTask{j.rule.id(), j.trigger}):
		// The program answers itself. It does so only where the rule says skipBackgroundRequests:
		// false, and later each time, for it might not end.
		return failed(errEarly)
	}
	request, err := requestFor(j.request, t.object)
	switch {
	case err != nil:
		return failed(err)
	case j.rule.changes:
		return w.applied(j, w.mutateExisting(ctx, j, t, request))
	}
	return w.applied(j, w.generate(ctx, j, t, request))
}

// applied tells of work that wrote objects, and no failure.
func (w *Worker) applied(j job, out workResult) workResult {
	if w.options.Applied != nil && out.state == v1alpha1.GenerateCompleted && len(out.resources) > 0 {
		w.options.Applied(Applied{j.rule.policy.Of, j.rule.name, j.rule.changes, j.trigger, out.resources})
	}
	return out
}

// A workResult is what became of a job.
type workResult struct {
	state     v1alpha1.GenerateRequestState
	message   string
	resources []v1alpha1.ObjectReference
	err       error // of a failure
}

// errEarly is a failure that time may mend: the request that has started the work may still
// be refused. No Notice tells of it.
var errEarly = errors.New("the object is not stored yet")

// failedBy is the result with what failed; as it is where nothing did.
func (r workResult) failedBy(failures []error) workResult {
	if len(failures) > 0 {
		r.state, r.err = v1alpha1.GenerateFailed, joined(failures)
		r.message = r.err.Error()
	}
	return r
}

func failed(err error) workResult {
	return workResult{state: v1alpha1.GenerateFailed, err: err, message: err.Error()}
}

func skipped(why string) workResult { return workResult{state: v1alpha1.GenerateSkipped, message: why} }

// A task is an item of the queue, which has equal tasks once.
type task interface {
	// do does the task and tells when to do it again; 0 is never.
	do(ctx context.Context, w *Worker) (again time.Duration)
}

// A requestTask carries out the GenerateRequest of a name.
type requestTask string

// A recordsTask brings the records of what rules make up to date with the policies.
type recordsTask struct{}

// do tries for as long as it takes: other work waits for it.
func (t recordsTask) do(ctx context.Context, w *Worker) time.Duration {
	err := w.doRecords(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.tries, t)
		clear(w.toldOf)
		return 0
	}
	w.tries[t]++
	return waitAfter(w.tries[t])
}

// A ruleID is a rule as tasks name it: it outlives the policy's next version.
type ruleID struct{ policy, rule string } // policy is keyOf

// rule is the rule as it is now; nil where it is gone.
func (w *Worker) rule(id ruleID) *preparedRule {
	return w.current.Load().policies[id.policy].rule(id.rule)
}

// A scanTask looks at the objects that a rule is about, and at those that it has made.
type scanTask struct {
	ruleID
	from scanCursor // where to go on
}

func (t scanTask) do(ctx context.Context, w *Worker) time.Duration {
	r := w.rule(t.ruleID)
	if r == nil {
		return 0
	}
	next, err := w.doScan(ctx, r, t.from)
	if next != (scanCursor{}) {
		w.queue.AddAfter(scanTask{t.ruleID, next}, firstWait)
	}
	return w.retried(t, r, v1alpha1.ObjectReference{}, err)
}

// A sourceTask looks at the copies that a rule has made of an object, which has changed or
// is gone.
type sourceTask struct {
	ruleID
	source v1alpha1.ObjectReference
}

func (t sourceTask) do(ctx context.Context, w *Worker) time.Duration {
	r := w.rule(t.ruleID)
	if r == nil {
		return 0
	}
	return w.retried(t, r, t.source, w.doSource(ctx, r, t.source))
}

// A triggerTask does what a rule wants for an object that is there, without a request.
type triggerTask struct {
	ruleID
	trigger v1alpha1.ObjectReference
}

func (t triggerTask) do(ctx context.Context, w *Worker) time.Duration {
	r := w.rule(t.ruleID)
	switch {
	case r == nil:
		return 0
	case !w.mayMake(r):
		return firstLook
	}
	out, ok := w.inTurn(what(t.policy, r.name, t.trigger), func() workResult {
		return w.work(ctx, job{rule: r, trigger: t.trigger})
	})
	if !ok {
		return turnWait
	}
	if len(out.resources) > 0 && !r.changes { // which paces itself
		w.backoff.repaired(t)
	}
	return w.retried(t, r, t.trigger, out.err)
}
