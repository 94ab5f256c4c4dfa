package incluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/internal/notice"
	"github.com/kvap/kvap/interp"
)

// Events are the options of the Events about what rules decide.
type Events struct {
	Verdicts VerdictEvents
	Omit     []string // of Omissible
	// AuditLog is a file in which an API server writes what native policies decided; "" for none.
	AuditLog string
}

// Check tells what is wrong with the options, by the flag that says so.
func (o Events) Check() error {
	for _, name := range o.Omit {
		if !slices.Contains(Omissible(), name) {
			return fmt.Errorf("--omit-events %s: want some of %s", name, strings.Join(Omissible(), ", "))
		}
	}
	return nil
}

// A VerdictEvents is which verdicts of rules users are told of by Events.
type VerdictEvents string

// What may be told.
const (
	TellViolations VerdictEvents = "violations" // and errors
	TellAll        VerdictEvents = "all"        // what passes or is excepted too
	TellNone       VerdictEvents = "none"
)

// AllVerdictEvents are all of them.
func AllVerdictEvents() []VerdictEvents { return []VerdictEvents{TellViolations, TellAll, TellNone} }

// The reasons and actions of the Events, as Kyverno calls them.
const (
	reasonViolation = "PolicyViolation"
	reasonError     = "PolicyError"
	reasonApplied   = "PolicyApplied"
	reasonSkipped   = "PolicySkipped"

	actionBlocked   = "Resource Blocked"
	actionPassed    = "Resource Passed"
	actionMutated   = "Resource Mutated"
	actionGenerated = "Resource Generated"
)

// Who makes the Events, as the field reportingController has it: the parts of kvap.
const (
	byAdmission = "kvap-admission" // a request was judged, by the webhook or natively
	byScan      = "kvap-scan"
	byGenerate  = "kvap-generate"
	byMutate    = "kvap-mutate" // what changes objects that are there
)

func eventParts() []string { return []string{byAdmission, byScan, byGenerate, byMutate} }

// Omissible are the reasons and the parts of which Events can be left out.
func Omissible() []string {
	return append([]string{reasonViolation, reasonError, reasonApplied, reasonSkipped}, eventParts()...)
}

// How many Events there are at most of a replica: so many a second, and so many at once. Users
// read the first; a flood would be the load on the API server that it tells of.
const (
	eventsPerSecond = 5
	eventsAtOnce    = 100
)

// ruleEvents tells users by Events what rules decide: about the policy, and about the object where it
// gets in or is there.
type ruleEvents struct {
	options Events
	tell    func(by string, about, related corev1.ObjectReference, warning bool, reason, action, note string)
	limit   flowcontrol.PassiveRateLimiter
	dropped *prometheus.CounterVec
}

func newRuleEvents(ctx context.Context, config *rest.Config, options Events) (*ruleEvents, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // there is a bound already, and what is within it is told at once
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	recorders := map[string]notice.Recorder{}
	for _, by := range eventParts() {
		if recorders[by], err = notice.New(ctx, client, by); err != nil {
			return nil, err
		}
	}
	out := &ruleEvents{
		options: options, limit: flowcontrol.NewTokenBucketPassiveRateLimiter(eventsPerSecond, eventsAtOnce), dropped: newDropped(),
		tell: func(by string, about, related corev1.ObjectReference, warning bool, reason, action, note string) {
			recorders[by].Tell(about, related, warning, reason, action, note)
		},
	}
	return out, register(&out.dropped)
}

func newDropped() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kvap_events_dropped_total", Help: "Events about what rules decide that were not made, for there were too many, by the part that would have made them and the reason.",
	}, []string{"part", "reason"})
}

// A verdict is what a rule said, or what became of it.
type verdict struct {
	by      string
	policy  corev1.ObjectReference
	rule    string // empty where that is not known
	status  interp.Status
	object  corev1.ObjectReference
	there   bool   // the object is there, so that Events may be about it
	blocked bool   // the rule kept the object out
	applied string // the action of a rule that passed
	message string
	// exceptions are those for which the rule was skipped.
	exceptions []corev1.ObjectReference
}

// reason is why there would be an Event; empty where there is none.
func (v verdict) reason() string {
	switch {
	case v.status == interp.Fail:
		return reasonViolation
	case v.status == interp.Error:
		return reasonError
	case v.status == interp.Pass:
		return reasonApplied
	case v.status == interp.Skip && len(v.exceptions) > 0:
		return reasonSkipped
	}
	return ""
}

// note makes the Events of a verdict. Objects that have no name yet are not told of, nor are Events:
// each would lead to another one.
func (e *ruleEvents) note(v verdict) {
	reason := v.reason()
	if v.object.Name == "" || isEvent(v.object) || !e.wanted(v.by, reason) {
		return
	}
	if v.object.Kind == "Secret" && v.object.APIVersion == "v1" { // those who read Events may not read it
		v.message = ""
	}
	switch reason {
	case reasonApplied:
		e.make(v.by, v.policy, v.object, false, reason, v.applied, v.appliedNote())
	case reasonSkipped:
		for _, about := range append([]corev1.ObjectReference{v.policy}, v.exceptions...) {
			e.make(v.by, about, v.object, false, reason, actionPassed, v.policyNote())
		}
	default:
		action := actionPassed
		if v.blocked {
			action = actionBlocked
		}
		e.make(v.by, v.policy, v.object, true, reason, action, v.policyNote())
		if v.there {
			e.make(v.by, v.object, v.policy, true, reason, action, v.objectNote())
		}
	}
}

func isEvent(o corev1.ObjectReference) bool {
	return o.Kind == "Event" && (o.APIVersion == "v1" || strings.HasPrefix(o.APIVersion, "events.k8s.io/"))
}

// wanted reports whether Events of a reason are made. Those of which nothing is said here are news of
// background work, and not verdicts.
func (e *ruleEvents) wanted(by, reason string) bool {
	switch omitted := e.options.Omit; {
	case reason == "", slices.Contains(omitted, by), slices.Contains(omitted, reason):
		return false
	case reason == reasonViolation, reason == reasonError:
		return e.options.Verdicts != TellNone
	case reason == reasonApplied, reason == reasonSkipped:
		return e.options.Verdicts == TellAll
	}
	return true
}

func (e *ruleEvents) make(by string, about, related corev1.ObjectReference, warning bool, reason, action, note string) {
	if !e.limit.TryAccept() {
		e.dropped.WithLabelValues(by, reason).Inc()
		return
	}
	e.tell(by, about, related, warning, reason, action, note)
}

// policyNote says of a policy what Kyverno's Event does:
//
//	Pod shop/web: [require-owner] fail (blocked); the Pod has no owner
func (v verdict) policyNote() string {
	note := placeOf(v.object) + ": "
	if v.rule != "" {
		note += "[" + v.rule + "] "
	}
	note += string(v.status)
	if v.blocked {
		note += " (blocked)"
	}
	if v.message != "" {
		note += "; " + v.message
	}
	return note
}

// appliedNote says of a policy that a rule of it passed. It names no rule, as Kyverno's does not: the
// Events of several rules become one.
func (v verdict) appliedNote() string {
	if v.applied == actionMutated {
		return placeOf(v.object) + " is successfully mutated"
	}
	return placeOf(v.object) + ": pass"
}

// objectNote says it of the object:
//
//	policy owners/require-owner fail: the Pod has no owner
func (v verdict) objectNote() string {
	name := strings.TrimPrefix(v.policy.Namespace+"/"+v.policy.Name, "/")
	if v.rule != "" {
		name += "/" + v.rule
	}
	return strings.TrimSuffix(fmt.Sprintf("policy %s %s: %s", name, v.status, v.message), ": ")
}

// placeOf names an object for a note.
func placeOf(o corev1.ObjectReference) string {
	return o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// referenceOf is a reference as Events have it.
func referenceOf(o v1alpha1.ObjectReference) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}
