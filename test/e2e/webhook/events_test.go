//go:build e2e

package webhook

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// What a rule of the webhook finds is an Event of the policy, and of the object where it gets in.
func TestEventsOfViolations(t *testing.T) {
	c := shared
	c.unregister(t)
	c.start(t, "")
	policyNamed := func(name, action string) string {
		return `apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: ` + name + `}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], names: ["` + name + `-*"]}}]}
    context:
    - {name: all, apiCall: {urlPath: /api/v1/namespaces}}
    validate: {failureAction: ` + action + `, message: too many, deny: {conditions: {all: [{key: "{{ length(all.items) }}", operator: GreaterThan, value: 0}]}}}`
	}
	c.Apply(t, policyNamed("told-denied", "Enforce")+"\n---\n"+policyNamed("told-audited", "Audit"))
	testcluster.Soon(t, "the policies are ready", func() bool { return c.says(t, "told-denied", "Ready") && c.says(t, "told-audited", "Ready") })
	for _, name := range []string{"told-denied-a", "told-audited-a"} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := c.Create(t.Context(), o); (err != nil) != (name == "told-denied-a") {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { _ = c.Delete(t.Context(), o) })
	}
	wantEvents(t, "told-",
		"ClusterPolicy told-audited, Resource Passed: ConfigMap default/told-audited-a: [r] fail; too many",
		"ClusterPolicy told-denied, Resource Blocked: ConfigMap default/told-denied-a: [r] fail (blocked); too many",
		"ConfigMap told-audited-a, Resource Passed: policy told-audited/r fail: too many",
	)
}

// What a native policy decides is an Event too, by the log of the API server.
func TestEventsOfNativePolicies(t *testing.T) {
	c := shared
	c.unregister(t)
	c.start(t, "", "--audit-log", c.Plane.AuditLog())
	policyNamed := func(name, action string) string {
		return `apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: ` + name + `}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap], names: ["` + name + `-*"]}}]}
    validate: {failureAction: ` + action + `, message: name an owner, pattern: {metadata: {labels: {owner: "?*"}}}}
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap], names: ["` + name + `-*"]}}]}
    validate: {failureAction: ` + action + `, message: name a team, pattern: {metadata: {labels: {team: "?*"}}}}`
	}
	c.Apply(t, policyNamed("logged-denied", "Enforce")+"\n---\n"+policyNamed("logged-audited", "Audit"))
	testcluster.Soon(t, "the policies are ready", func() bool { return c.says(t, "logged-denied", "Ready") && c.says(t, "logged-audited", "Ready") })
	for name, labels := range map[string]map[string]string{
		"logged-denied-a": {"owner": "alice"}, "logged-audited-a": {"team": "shop"}, "logged-denied-b": {"owner": "alice", "team": "shop"},
	} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
		if err := c.Create(t.Context(), o.DeepCopy(), client.DryRunAll); (err != nil) != (name == "logged-denied-a") {
			t.Fatalf("%s, as a dry run: %v", name, err)
		}
		if err := c.Create(t.Context(), o); (err != nil) != (name == "logged-denied-a") {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() { _ = c.Delete(t.Context(), o) })
	}
	wantEvents(t, "logged-",
		"ClusterPolicy logged-audited, Resource Passed: ConfigMap default/logged-audited-a: [owner] fail; name an owner",
		"ClusterPolicy logged-denied, Resource Blocked: ConfigMap default/logged-denied-a: [team] fail (blocked); name a team",
		"ConfigMap logged-audited-a, Resource Passed: policy logged-audited/owner fail: name an owner",
	)
}

// wantEvents waits for the Events of violations that have a text in their notes, each once. The webhook
// may judge, too, until it has handed a policy over: it says more of a pattern.
func wantEvents(t *testing.T, text string, want ...string) {
	t.Helper()
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("told:\n%s", strings.Join(got, "\n"))
		}
	}()
	testcluster.Soon(t, "they are told: "+strings.Join(want, "\n"), func() bool {
		var list eventsv1.EventList
		if err := shared.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range list.Items {
			if e.Reason != "PolicyViolation" || !strings.Contains(e.Note, text) || strings.Contains(e.Note, "validation error: ") {
				continue
			}
			policy := e.Regarding
			if policy.Kind != "ClusterPolicy" && e.Related != nil {
				policy = *e.Related
			}
			if policy.UID == "" || policy.APIVersion != "kvap.dev/v1alpha1" || e.Related == nil || e.Type != corev1.EventTypeWarning || e.ReportingController != "kvap-admission" {
				t.Fatalf("%+v", e)
			}
			got = append(got, e.Regarding.Kind+" "+e.Regarding.Name+", "+e.Action+": "+e.Note)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}
