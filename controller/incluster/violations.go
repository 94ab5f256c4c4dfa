package incluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/internal/notice"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/controller/webhook/shadow"
	"github.com/kvap/kvap/interp"
)

// A VerdictEvents is which verdicts of the webhook users are told of by Events.
type VerdictEvents string

// What may be told.
const (
	TellViolations VerdictEvents = "violations" // and errors
	TellAll        VerdictEvents = "all"        // what passes too
	TellNone       VerdictEvents = "none"
)

// AllVerdictEvents are all of them.
func AllVerdictEvents() []VerdictEvents { return []VerdictEvents{TellViolations, TellAll, TellNone} }

// The reasons and actions of the Events, as Kyverno calls them.
const (
	reasonViolation = "PolicyViolation"
	reasonApplied   = "PolicyApplied"
	actionBlocked   = "Resource Blocked"
	actionPassed    = "Resource Passed"
)

// How many Events there are at most of a replica: so many a second, and so many at once. Users
// read the first; a flood would be the load on the API server that it tells of.
const (
	eventsPerSecond = 5
	eventsAtOnce    = 100
)

// verdictEvents tells users by Events what rules say of requests: about the policy, and about the
// object where it gets in.
type verdictEvents struct {
	kinds   VerdictEvents
	tell    func(about, related corev1.ObjectReference, warning bool, reason, action, note string)
	limit   flowcontrol.PassiveRateLimiter
	dropped prometheus.Counter
}

func newVerdictEvents(ctx context.Context, config *rest.Config, kinds VerdictEvents) (*verdictEvents, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	recorder, err := notice.New(ctx, client, controller.Manager)
	if err != nil {
		return nil, err
	}
	dropped := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "kvap_webhook_events_dropped_total", Help: "Events about what rules say of requests that were not made, for there were too many.",
	})
	return &verdictEvents{
		kinds: kinds, tell: recorder.Tell, limit: flowcontrol.NewTokenBucketPassiveRateLimiter(eventsPerSecond, eventsAtOnce), dropped: dropped,
	}, register(&dropped)
}

// note makes the Events of what a rule says of a request. Dry runs and policies in shadow change
// nothing, so nobody is told; nor of objects that have no name yet.
func (e *verdictEvents) note(r webhook.Record, source types.UID) {
	failed := r.Status == interp.Fail || r.Status == interp.Error
	switch {
	case r.Err != nil, r.Shadow, r.Request.DryRun, r.Request.Name == "":
		return
	case failed && e.kinds != TellNone, r.Status == interp.Pass && e.kinds == TellAll:
	default:
		return
	}
	policy := corev1.ObjectReference{APIVersion: r.Of.APIVersion, Kind: r.Of.Kind, Name: r.Of.Name, UID: source}
	if r.Of.Namespaced() {
		policy.Namespace = r.Of.Namespace
	}
	object := corev1.ObjectReference{
		APIVersion: r.Request.APIVersion, Kind: r.Request.Kind, Namespace: r.Request.Namespace, Name: r.Request.Name, UID: types.UID(r.Request.Object),
	}
	if !failed {
		e.make(policy, object, false, reasonApplied, actionPassed, policyNote(r))
		return
	}
	action := actionPassed
	if r.Blocked {
		action = actionBlocked
	}
	e.make(policy, object, true, reasonViolation, action, policyNote(r))
	if !r.Blocked && r.Request.Operation != "DELETE" {
		e.make(object, policy, true, reasonViolation, action, strings.TrimSuffix(fmt.Sprintf("policy %s/%s %s: %s", r.Policy, r.Rule, r.Status, shadow.MessageOf(r)), ": "))
	}
}

func (e *verdictEvents) make(about, related corev1.ObjectReference, warning bool, reason, action, note string) {
	if !e.limit.TryAccept() {
		e.dropped.Inc()
		return
	}
	e.tell(about, related, warning, reason, action, note)
}

// policyNote says of a policy what Kyverno's Event does:
//
//	Pod shop/web: [require-owner] fail (blocked); the Pod has no owner
func policyNote(r webhook.Record) string {
	name := r.Request.Name
	if r.Request.Namespace != "" {
		name = r.Request.Namespace + "/" + name
	}
	note := fmt.Sprintf("%s %s: [%s] %s", r.Request.Kind, name, r.Rule, r.Status)
	if r.Blocked {
		note += " (blocked)"
	}
	if message := shadow.MessageOf(r); message != "" && r.Status != interp.Pass {
		note += "; " + message
	}
	return note
}
