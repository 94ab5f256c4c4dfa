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

// What a rule finds is an Event of the policy, and of the object where it gets in.
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
	want := []string{
		"ClusterPolicy told-audited, Resource Passed: ConfigMap default/told-audited-a: [r] fail; too many",
		"ClusterPolicy told-denied, Resource Blocked: ConfigMap default/told-denied-a: [r] fail (blocked); too many",
		"ConfigMap told-audited-a, Resource Passed: policy told-audited/r fail: too many",
	}
	var got []string
	testcluster.Soon(t, "they are told: "+strings.Join(want, "\n"), func() bool {
		var list eventsv1.EventList
		if err := c.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		got = nil
		for _, e := range list.Items {
			if e.Reason == "PolicyViolation" && strings.Contains(e.Note, "told-") {
				if e.Regarding.UID == "" || e.Related == nil || e.Type != corev1.EventTypeWarning {
					t.Fatalf("%+v", e)
				}
				got = append(got, e.Regarding.Kind+" "+e.Regarding.Name+", "+e.Action+": "+e.Note)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}
