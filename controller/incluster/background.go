package incluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/background"
	"github.com/kvap/kvap/controller/background/live"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/policy"
)

// A backgroundWork is background work beside the webhook: the one keeps what requests
// start, the other carries it out on the replica that was elected.
type backgroundWork struct {
	options  background.Options
	requests *live.Requests
	watch    func() *live.Watches
	log      logr.Logger
	may      background.May
	room     *background.Backlog
	refused  prometheus.Counter
	changed  chan struct{} // yields when other permissions are missing

	mu      sync.Mutex
	work    *background.PolicySet // what there is to do; nil before the first policies are known
	worker  *background.Worker    // nil while this replica does not lead
	missing []background.Missing
}

// newBackgroundWork connects to the cluster, as the user that the program is there.
func newBackgroundWork(config *rest.Config, o *fallback, user string) (*backgroundWork, error) {
	cluster, requests, err := live.New(config, o.namespace)
	if err != nil {
		return nil, err
	}
	out := &backgroundWork{requests: requests, may: cluster.May, log: o.log.WithName("background"), changed: make(chan struct{}, 1)}
	out.watch = func() *live.Watches { return live.NewWatches(cluster, o.namespace) }
	if err := out.bound(); err != nil {
		return nil, err
	}
	out.options = background.Options{
		Cluster: cluster, Requests: requests, Records: live.NewLedger(requests), World: o.world, User: user,
		Tell: func(n background.Notice) {
			out.log.Info("told", "policy", n.Policy.Name, "namespace", n.Policy.Namespace, "reason", n.Reason, "note", n.Note)
			o.events.worked(n)
		},
		Applied: o.events.applied,
		Kinds: func(group, version, kind string) []v1alpha1.KindReference {
			return firstKinds(o.world.Served().All().Resources(group, version, kind), func(registration.Resource) bool { return true })
		},
		Resources: func(group, version, resource string) []v1alpha1.KindReference {
			return firstKinds(o.world.Served().All(), func(r registration.Resource) bool {
				return r.Plural == resource && (group == "*" || group == r.Group) && (version == "*" || version == r.Version)
			})
		},
	}
	return out, nil
}

// bound bounds and counts what waits.
func (w *backgroundWork) bound() error {
	waiting := prometheus.NewGauge(prometheus.GaugeOpts{Name: "kvap_generate_requests", Help: "GenerateRequests that wait, as they were counted last."})
	w.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "kvap_generate_requests_refused_total", Help: "Requests whose work could not be kept."})
	for _, c := range []prometheus.Collector{waiting, w.refused} {
		if err := metrics.Registry.Register(c); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return err
		}
	}
	w.room = &background.Backlog{Count: w.requests.Count, Now: time.Now, Counted: func(n int) { waiting.Set(float64(n)) }}
	return nil
}

// set says what there is to do, whether or not this replica leads.
func (w *backgroundWork) set(work background.PolicySet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work = &work
	if w.worker != nil {
		w.worker.Set(work)
	}
}

// run carries work out until the context ends. A replica that leads again begins anew: what
// it knew has grown old.
func (w *backgroundWork) run(ctx context.Context) error {
	w.log.Info("carrying out what requests start")
	watches, options := w.watch(), w.options
	options.Watcher = watches
	worker := background.New(options)
	w.appoint(worker)
	defer w.appoint(nil)
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { watches.Run(ctx, worker) })
	group.Go(func() { w.checkAccess(ctx, worker) })
	return worker.Run(ctx)
}

// appoint has a worker do what there is to do, in place of the one before.
func (w *backgroundWork) appoint(worker *background.Worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.worker, w.missing = worker, nil
	if worker != nil && w.work != nil {
		worker.Set(*w.work)
	}
}

// accessInterval is how often it is asked what the program may do: somebody may grant
// it what it lacks, or take it.
const accessInterval = 30 * time.Second

// checkAccess finds out which permissions are missing, again and again.
func (w *backgroundWork) checkAccess(ctx context.Context, worker *background.Worker) {
	for wait := time.Second; ctx.Err() == nil; wait = accessInterval { // the first policies are there soon
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		missing, err := worker.Missing(ctx, w.may)
		if err != nil {
			w.log.V(1).Info("permissions are not known", "error", err.Error())
			continue
		}
		missing = append(missing, worker.Waits()...)
		w.mu.Lock()
		same := slices.Equal(w.missing, missing)
		w.missing = missing
		w.mu.Unlock()
		if !same {
			select {
			case w.changed <- struct{}{}:
			default:
			}
		}
	}
}

// problems are what policies lack for their work.
func (w *backgroundWork) problems() []controller.FallbackProblem {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []controller.FallbackProblem
	for _, m := range w.missing {
		out = append(out, controller.FallbackProblem{Source: m.Policy, Message: m.Message, Stuck: m.Reason})
	}
	return out
}

// keep writes down what a request starts.
func (w *backgroundWork) keep(ctx context.Context, of v1alpha1.PolicyReference, work webhook.Start) error {
	kind := v1alpha1.GenerateObjects
	if work.Changes {
		kind = v1alpha1.MutateExisting
	}
	request, err := background.Capture(background.Trigger{
		Type: kind, Policy: of, Rule: work.Rule, Delete: work.Remove, Object: work.Object, Request: work.Request,
	})
	if err == nil {
		err = w.room.Take(ctx, request)
	}
	if err == nil {
		err = w.requests.Create(ctx, request)
	}
	if err != nil {
		w.refused.Inc()
	}
	return err
}

// firstKinds are the kinds of some resources, each in the first version that is among them.
func firstKinds(table registration.Table, is func(registration.Resource) bool) []v1alpha1.KindReference {
	var out []v1alpha1.KindReference
	seen := map[schema.GroupKind]bool{}
	for _, r := range table {
		if kind := (schema.GroupKind{Group: r.Group, Kind: r.Kind}); is(r) && !seen[kind] {
			seen[kind] = true
			out = append(out, v1alpha1.KindReference{APIVersion: kind.WithVersion(r.Version).GroupVersion().String(), Kind: r.Kind})
		}
	}
	return out
}

// ownName is whom the program is to the API server.
func ownName(ctx context.Context, config *rest.Config) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for the user that this is: %w", err)
	}
	return self.Status.UserInfo.Username, nil
}

// sourceOf is the object in the cluster that a policy was read from.
func (o *fallback) sourceOf(p *policy.Policy) (v1alpha1.PolicyReference, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of, ok := o.sources[p]; ok {
		return of, true
	}
	for other, of := range o.sources { // a request may be judged by what was served before
		if other.Kind == p.Kind && other.FullName() == p.FullName() {
			return of, true
		}
	}
	return v1alpha1.PolicyReference{}, false
}

// start keeps the work that a request starts.
func (o *fallback) start(ctx context.Context, work webhook.Start) error {
	of, ok := o.sourceOf(work.Policy)
	if !ok {
		return nil // the policy has gone meanwhile
	}
	return o.work.keep(ctx, of, work)
}
