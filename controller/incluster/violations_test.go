package incluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// eventsOf notes the Events that a record makes, each as a line.
func eventsOf(kinds VerdictEvents, atOnce int, records ...webhook.Record) (lines []string, e *verdictEvents) {
	e = &verdictEvents{
		kinds: kinds, limit: flowcontrol.NewTokenBucketPassiveRateLimiter(0.001, atOnce), dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "dropped"}),
		tell: func(about, related corev1.ObjectReference, warning bool, reason, action, note string) {
			lines = append(lines, fmt.Sprintf("%s %s/%s (%s %s) %v %s, %s: %s", about.Kind, about.Namespace, about.Name, related.Kind, related.Name, warning, reason, action, note))
		},
	}
	for _, r := range records {
		e.note(r, "uid")
	}
	return lines, e
}

// A violation is told of at the policy, and at the object where it gets in; nothing is told of what
// changes nothing, and nothing of what a Secret holds.
func TestVerdictEvents(t *testing.T) {
	record := func(status interp.Status, change ...func(*webhook.Record)) webhook.Record {
		r := webhook.Record{
			Request: webhook.Requested{Operation: "CREATE", Resource: "Pod/shop/web", APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Object: "1"},
			Of:      &policy.Policy{APIVersion: "kyverno.io/v1", Kind: "ClusterPolicy", Name: "owners", Namespace: "default"},
			Policy:  "owners", Rule: "owner", Status: status, Message: "name an owner",
		}
		for _, c := range change {
			c(&r)
		}
		return r
	}
	blocked := func(r *webhook.Record) { r.Blocked = true }
	for name, c := range map[string]struct {
		kinds VerdictEvents
		of    webhook.Record
		want  []string
	}{
		"blocked": {TellViolations, record(interp.Fail, blocked), []string{
			"ClusterPolicy /owners (Pod web) true PolicyViolation, Resource Blocked: Pod shop/web: [owner] fail (blocked); name an owner"}},
		"audited": {TellViolations, record(interp.Fail), []string{
			"ClusterPolicy /owners (Pod web) true PolicyViolation, Resource Passed: Pod shop/web: [owner] fail; name an owner",
			"Pod shop/web (ClusterPolicy owners) true PolicyViolation, Resource Passed: policy owners/owner fail: name an owner"}},
		"an object that goes": {TellViolations, record(interp.Error, func(r *webhook.Record) { r.Request.Operation = "DELETE" }), []string{
			"ClusterPolicy /owners (Pod web) true PolicyViolation, Resource Passed: Pod shop/web: [owner] error; name an owner"}},
		"a policy of a namespace": {TellViolations, record(interp.Fail, blocked, func(r *webhook.Record) { r.Of.Kind, r.Of.Namespace, r.Policy = "Policy", "shop", "shop/owners" }), []string{
			"Policy shop/owners (Pod web) true PolicyViolation, Resource Blocked: Pod shop/web: [owner] fail (blocked); name an owner"}},
		"a Secret": {TellViolations, record(interp.Fail, blocked, func(r *webhook.Record) { r.Request.Kind, r.Request.Resource = "Secret", "Secret/shop/web" }), []string{
			"ClusterPolicy /owners (Secret web) true PolicyViolation, Resource Blocked: Secret shop/web: [owner] fail (blocked)"}},
		"passed":         {TellViolations, record(interp.Pass), nil},
		"passed, of all": {TellAll, record(interp.Pass), []string{"ClusterPolicy /owners (Pod web) false PolicyApplied, Resource Passed: Pod shop/web: [owner] pass"}},
		"skipped":        {TellAll, record(interp.Skip), nil},
		"none":           {TellNone, record(interp.Fail, blocked), nil},
		"in shadow":      {TellAll, record(interp.Fail, func(r *webhook.Record) { r.Shadow = true }), nil},
		"a dry run":      {TellAll, record(interp.Fail, blocked, func(r *webhook.Record) { r.Request.DryRun = true }), nil},
		"without a name": {TellAll, record(interp.Fail, blocked, func(r *webhook.Record) { r.Request.Name = "" }), nil},
		"not judged":     {TellAll, webhook.Record{Err: fmt.Errorf("late")}, nil},
	} {
		if got, _ := eventsOf(c.kinds, 10, c.of); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	many := slices.Repeat([]webhook.Record{record(interp.Fail, blocked)}, 50)
	got, e := eventsOf(TellViolations, 10, many...)
	counted := prometheus.NewRegistry()
	counted.MustRegister(e.dropped)
	families, err := counted.Gather()
	if err != nil || len(got) != 10 || families[0].GetMetric()[0].GetCounter().GetValue() != 40 {
		t.Errorf("%d Events of fifty, and as dropped are counted %v (%v)", len(got), families, err)
	}
}
