package incluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller/audit"
	"github.com/kvap/kvap/controller/background"
	"github.com/kvap/kvap/controller/scan"
	"github.com/kvap/kvap/controller/webhook"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
)

// eventsFor notes the Events that are made, each as a line.
func eventsFor(options Events, atOnce int, tell func(*ruleEvents)) (lines []string, e *ruleEvents) {
	e = &ruleEvents{
		options: options, limit: flowcontrol.NewTokenBucketPassiveRateLimiter(0.001, atOnce), dropped: newDropped(),
		tell: func(by string, about, related corev1.ObjectReference, warning bool, reason, action, note string) {
			kind := "Normal"
			if warning {
				kind = "Warning"
			}
			lines = append(lines, fmt.Sprintf("%s %s: %s %s/%s (%s %s) %s, %s: %s", by, kind, about.Kind, about.Namespace, about.Name, related.Kind, related.Name, reason, action, note))
		},
	}
	tell(e)
	return lines, e
}

var (
	violations = Events{Verdicts: TellViolations}
	everything = Events{Verdicts: TellAll}
	owners     = v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "owners", UID: "p"}
)

// record is what a rule says of the creation of the Pod shop/web.
func record(status interp.Status, change ...func(*webhook.Record)) webhook.Record {
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

// A violation is told of at the policy, and at the object where it gets in; nothing is told of what
// changes nothing, and nothing of what a Secret holds.
func TestEventsOfRequests(t *testing.T) {
	blocked := func(r *webhook.Record) { r.Blocked = true }
	excepted := func(r *webhook.Record) { r.Exceptions = []string{"teams/let-it-in"} }
	for name, c := range map[string]struct {
		options Events
		of      webhook.Record
		want    []string
	}{
		"blocked": {violations, record(interp.Fail, blocked), []string{
			"kvap-admission Warning: ClusterPolicy /owners (Pod web) PolicyViolation, Resource Blocked: Pod shop/web: [owner] fail (blocked); name an owner"}},
		"audited": {violations, record(interp.Fail), []string{
			"kvap-admission Warning: ClusterPolicy /owners (Pod web) PolicyViolation, Resource Passed: Pod shop/web: [owner] fail; name an owner",
			"kvap-admission Warning: Pod shop/web (ClusterPolicy owners) PolicyViolation, Resource Passed: policy owners/owner fail: name an owner"}},
		"an object that goes": {violations, record(interp.Error, func(r *webhook.Record) { r.Request.Operation = "DELETE" }), []string{
			"kvap-admission Warning: ClusterPolicy /owners (Pod web) PolicyError, Resource Passed: Pod shop/web: [owner] error; name an owner"}},
		"a Secret": {violations, record(interp.Fail, blocked, func(r *webhook.Record) { r.Request.Kind, r.Request.Resource = "Secret", "Secret/shop/web" }), []string{
			"kvap-admission Warning: ClusterPolicy /owners (Secret web) PolicyViolation, Resource Blocked: Secret shop/web: [owner] fail (blocked)"}},
		"passed":         {violations, record(interp.Pass), nil},
		"passed, of all": {everything, record(interp.Pass), []string{"kvap-admission Normal: ClusterPolicy /owners (Pod web) PolicyApplied, Resource Passed: Pod shop/web: pass"}},
		"mutated": {everything, record(interp.Pass, func(r *webhook.Record) { r.Mutates = true }), []string{
			"kvap-admission Normal: ClusterPolicy /owners (Pod web) PolicyApplied, Resource Mutated: Pod shop/web is successfully mutated"}},
		"skipped":  {everything, record(interp.Skip), nil},
		"excepted": {violations, record(interp.Skip, excepted), nil},
		"excepted, of all": {everything, record(interp.Skip, excepted, func(r *webhook.Record) { r.Message = "by an exception" }), []string{
			"kvap-admission Normal: ClusterPolicy /owners (Pod web) PolicySkipped, Resource Passed: Pod shop/web: [owner] skip; by an exception",
			"kvap-admission Normal: PolicyException teams/let-it-in (Pod web) PolicySkipped, Resource Passed: Pod shop/web: [owner] skip; by an exception"}},
		"none":            {Events{Verdicts: TellNone}, record(interp.Fail, blocked), nil},
		"another reason":  {Events{Verdicts: TellAll, Omit: []string{"PolicyError"}}, record(interp.Error, blocked), nil},
		"of another part": {Events{Verdicts: TellAll, Omit: []string{"PolicyError", "kvap-admission"}}, record(interp.Pass), nil},
		"in shadow":       {everything, record(interp.Fail, func(r *webhook.Record) { r.Shadow = true }), nil},
		"a dry run":       {everything, record(interp.Fail, blocked, func(r *webhook.Record) { r.Request.DryRun = true }), nil},
		"about an Event":  {everything, record(interp.Fail, func(r *webhook.Record) { r.Request.APIVersion, r.Request.Kind = "events.k8s.io/v1", "Event" }), nil},
		"without a name":  {everything, record(interp.Fail, blocked, func(r *webhook.Record) { r.Request.Name = "" }), nil},
		"not judged":      {everything, webhook.Record{Err: errors.New("late")}, nil},
		"about the others": {Events{Verdicts: TellViolations, Omit: []string{"kvap-scan"}}, record(interp.Fail, blocked), []string{
			"kvap-admission Warning: ClusterPolicy /owners (Pod web) PolicyViolation, Resource Blocked: Pod shop/web: [owner] fail (blocked); name an owner"}},
	} {
		got, _ := eventsFor(c.options, 10, func(e *ruleEvents) { e.judged(c.of, owners) })
		wantLines(t, name, got, c.want)
	}
}

func wantLines(t *testing.T, name string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What native policies decide, what scans find and what background work does is told as what the
// webhook finds is, by another part.
func TestEventsOfOtherParts(t *testing.T) {
	decision := audit.Decision{
		Policy: v1alpha1.PolicyReference{Group: "kvap.dev", Kind: "Policy", Namespace: "shop", Name: "owners"}, Rule: "owner", Operation: "CREATE",
		Object: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"}, Message: "name an owner",
	}
	with := func(change func(*audit.Decision)) func(*ruleEvents) {
		d := decision
		change(&d)
		return func(e *ruleEvents) { e.decided(d) }
	}
	finding := func(result string) func(*ruleEvents) {
		return func(e *ruleEvents) {
			e.found(owners, scan.Finding{
				Object: report.ScannedObject{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", UID: "1"},
				Result: report.ScanResult{Kind: "ClusterPolicy", Policy: "owners", Rule: "owner", Result: result, Message: "name an owner"},
			})
		}
	}
	trigger := v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "shop"}
	made := []v1alpha1.ObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "defaults"}}
	for name, c := range map[string]struct {
		tell func(*ruleEvents)
		want []string
	}{
		"denied": {with(func(d *audit.Decision) { d.Blocked = true }), []string{
			"kvap-admission Warning: Policy shop/owners (Pod web) PolicyViolation, Resource Blocked: Pod shop/web: [owner] fail (blocked); name an owner"}},
		"audited": {with(func(d *audit.Decision) { d.Admitted = true }), []string{
			"kvap-admission Warning: Policy shop/owners (Pod web) PolicyViolation, Resource Passed: Pod shop/web: [owner] fail; name an owner",
			"kvap-admission Warning: Pod shop/web (Policy owners) PolicyViolation, Resource Passed: policy shop/owners/owner fail: name an owner"}},
		"audited, and gone": {with(func(d *audit.Decision) { d.Admitted, d.Operation = true, "DELETE" }), []string{
			"kvap-admission Warning: Policy shop/owners (Pod web) PolicyViolation, Resource Passed: Pod shop/web: [owner] fail; name an owner"}},
		"erred, by a rule that is not known": {with(func(d *audit.Decision) { d.Blocked, d.Erred, d.Rule = true, true, "" }), []string{
			"kvap-admission Warning: Policy shop/owners (Pod web) PolicyError, Resource Blocked: Pod shop/web: error (blocked); name an owner"}},
		"found": {finding("fail"), []string{
			"kvap-scan Warning: ClusterPolicy /owners (Pod web) PolicyViolation, Resource Passed: Pod shop/web: [owner] fail; name an owner",
			"kvap-scan Warning: Pod shop/web (ClusterPolicy owners) PolicyViolation, Resource Passed: policy owners/owner fail: name an owner"}},
		"found to err": {finding("error"), []string{
			"kvap-scan Warning: ClusterPolicy /owners (Pod web) PolicyError, Resource Passed: Pod shop/web: [owner] error; name an owner",
			"kvap-scan Warning: Pod shop/web (ClusterPolicy owners) PolicyError, Resource Passed: policy owners/owner error: name an owner"}},
		"work that fails": {func(e *ruleEvents) {
			e.worked(background.Notice{Policy: owners, About: trigger, Warning: true, Reason: "PermissionMissing", Note: "may not"})
		}, []string{"kvap-generate Warning: ClusterPolicy /owners (Namespace shop) PolicyError, PermissionMissing: may not"}},
		"news of work": {func(e *ruleEvents) {
			e.worked(background.Notice{Policy: owners, Changes: true, Reason: "Recovered", Note: "it works"})
		}, []string{"kvap-mutate Normal: ClusterPolicy /owners ( ) Recovered, Generate: it works"}},
		"made": {func(e *ruleEvents) {
			e.applied(background.Applied{Policy: owners, Rule: "owner", Trigger: trigger, Objects: made})
		}, []string{"kvap-generate Normal: ClusterPolicy /owners (ConfigMap defaults) PolicyApplied, Resource Generated: ConfigMap shop/defaults: [owner] pass"}},
		"changed": {func(e *ruleEvents) {
			e.applied(background.Applied{Policy: owners, Rule: "owner", Changes: true, Objects: made})
		}, []string{"kvap-mutate Normal: ClusterPolicy /owners (ConfigMap defaults) PolicyApplied, Resource Mutated: ConfigMap shop/defaults: [owner] pass"}},
	} {
		got, _ := eventsFor(everything, 10, c.tell)
		wantLines(t, name, got, c.want)
	}
	for _, omitted := range []string{"PolicyApplied", "kvap-generate"} {
		got, _ := eventsFor(Events{Verdicts: TellAll, Omit: []string{omitted}}, 10, func(e *ruleEvents) {
			e.applied(background.Applied{Policy: owners, Rule: "owner", Objects: made})
		})
		wantLines(t, "without "+omitted, got, nil)
	}
}

// More than the bound is not made, and counted by part and reason.
func TestEventsAreBounded(t *testing.T) {
	got, e := eventsFor(violations, 10, func(e *ruleEvents) {
		for range 50 {
			e.judged(record(interp.Fail, func(r *webhook.Record) { r.Blocked = true }), owners)
		}
	})
	counted := prometheus.NewRegistry()
	counted.MustRegister(e.dropped)
	families, err := counted.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%v, %v", families, err)
	}
	m := families[0].GetMetric()[0]
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if len(got) != 10 || m.GetCounter().GetValue() != 40 || !maps.Equal(labels, map[string]string{"part": "kvap-admission", "reason": "PolicyViolation"}) {
		t.Errorf("%d Events of fifty, and as dropped are counted %v", len(got), families)
	}
}
