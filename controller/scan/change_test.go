package scan

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const counted = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: counted}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap, Pod]}}]}
      context: [{name: found, apiCall: {urlPath: "/counted/{{ request.object.metadata.name }}", jmesPath: "length(items)"}}]
      validate:
        message: It has an owner.
        deny: {conditions: {all: [{key: "{{ request.object.metadata.labels.owner || '' }}{{ found }}", operator: Equals, value: "0"}]}}
`

func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, value, path...) }
}

// What a status says, and other things that no policy reads, is not judged. Where a kind
// counts its generations such an object is not even read.
func TestStatusThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w := newFakeCluster(t), &countingWorld{}
		c.put(pods, "a/pod", set(int64(1), "metadata", "generation"))
		c.put(pods, "a/old")
		p := policiesOf(t, counted)
		p.World = w
		c.run(p)
		settle(0)
		wantReports(t, c, "uid-old", "uid-pod")
		if pod, old := w.judged("pod"), w.judged("old"); pod != 1 || old != 1 {
			t.Errorf("judged %d and %d times; want each once", pod, old)
		}
		c.asked()
		for _, phase := range []string{"Pending", "Running", "Succeeded"} {
			c.put(pods, "a/pod", set(phase, "status", "phase"))
			c.put(pods, "a/old", set(phase, "status", "phase"))
			settle(time.Second)
		}
		if pod, old := w.judged("pod"), w.judged("old"); pod != 0 || old != 0 {
			t.Errorf("for their statuses judged %d and %d times", pod, old)
		}
		if slices.Contains(c.asked(), "get pods pod") {
			t.Error("an object of the same generation was read")
		}
		c.put(pods, "a/pod", set("me", "metadata", "labels", "owner"))
		c.put(pods, "a/old", set("me", "metadata", "labels", "owner"))
		settle(0)
		wantReports(t, c)
	})
}

// A policy that reads the status has it judged.
func TestStatusThatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(pods, "a/pod", set(int64(1), "metadata", "generation"))
		c.run(policiesOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: failed}
spec:
  rules:
    - name: failed
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: It has not failed., deny: {conditions: {any: [{key: "{{ request.object.status.phase || '' }}", operator: Equals, value: Failed}]}}}
`))
		settle(0)
		wantReports(t, c)
		c.put(pods, "a/pod", set("Failed", "status", "phase"))
		settle(0)
		wantReports(t, c, "uid-pod")
	})
}

// Whoever deletes a report, or writes into it, finds it as it was.
func TestReportThatIsTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.run(policiesOf(t, scanned))
		settle(0)
		at := c.objects.Resource(policyReports).Namespace("a")
		if err := at.Delete(t.Context(), "uid-map", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		settle(0)
		wantReports(t, c, "uid-map")
		r, err := at.Get(t.Context(), "uid-map", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		before := r.DeepCopy()
		set([]any{}, "results")(r)
		if _, err := at.Update(t.Context(), r, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		settle(0)
		if r, err = at.Get(t.Context(), "uid-map", metav1.GetOptions{}); err != nil || len(r.Object["results"].([]any)) != len(before.Object["results"].([]any)) {
			t.Errorf("the results are %v, %v", r, err)
		}
		set("uid-another", "scope", "uid")(r)
		set("another", "scope", "name")(r)
		if _, err := at.Update(t.Context(), r, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		settle(0)
		if r, err = at.Get(t.Context(), "uid-map", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if name, _, _ := unstructured.NestedString(r.Object, "scope", "name"); name != "map" {
			t.Errorf("the report about a map is about %q", name)
		}
		c.writes()
		settle(time.Hour)
		if wrote := c.writes(); len(wrote) != 0 {
			t.Errorf("at rest was written: %v", wrote)
		}
	})
}

// The next leader finds reports that are right, and writes none.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.put(secrets, "a/gone")
		c.put(secrets, "a/secret")
		ctx, stop := context.WithCancel(t.Context())
		p := policiesOf(t, scanned)
		c.runFor(ctx, p)
		settle(0)
		wantReports(t, c, "uid-gone", "uid-map", "uid-secret")
		stop()
		settle(0)
		c.remove(secrets, "a", "gone")
		c.put(configMaps, "a/new")
		c.writes()
		c.run(p)
		settle(0)
		wantReports(t, c, "uid-map", "uid-new", "uid-secret")
		wrote := c.writes()
		if slices.Sort(wrote); !slices.Equal(wrote, []string{"create policyreports", "delete policyreports"}) {
			t.Errorf("the next leader wrote %v", wrote)
		}
	})
}

// A policy that comes has only the objects judged that it is about, and the reports go that
// were for the one that was there.
func TestPolicyThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.put(secrets, "a/secret")
		c.put(nodes, "node")
		s := c.run(policiesOf(t, scanned))
		settle(0)
		c.asked()
		p := policiesOf(t, scanned+`
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: nodes}
spec:
  rules:
    - name: zone
      match: {any: [{resources: {kinds: [Node]}}]}
      validate: {message: It has a zone., pattern: {metadata: {labels: {zone: "?*"}}}}
`)
		s.Set(p)
		settle(0)
		wantReports(t, c, "uid-map", "uid-node", "uid-secret")
		if asked := c.asked(); !slices.Equal(asked, []string{"list nodes"}) {
			t.Errorf("for a policy about Nodes was read %v", asked)
		}
		if problem, known := s.Problem(p.Compiled.Rules); problem != "" || !known {
			t.Errorf("the problem is %q, known is %t", problem, known)
		}
		s.Set(policiesOf(t, strings.Replace(scanned, ", Secret", "", 1)))
		settle(0)
		wantReports(t, c, "uid-map")
	})
}

// Objects are judged by the labels that their Namespace has at the time.
func TestNamespaceThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.run(policiesOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: production}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {stage: production}}}}]}
      validate: {message: It has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`))
		settle(0)
		c.namespace("test", nil)
		c.put(configMaps, "test/fine")
		c.namespace("new", map[string]string{"stage": "production"})
		c.put(configMaps, "new/bad")
		settle(0)
		wantReports(t, c, "uid-bad")
		c.namespace("a", map[string]string{"stage": "production"})
		settle(0)
		wantReports(t, c, "uid-bad", "uid-map")
		c.namespace("new", nil)
		settle(0)
		wantReports(t, c, "uid-map")
	})
}

// Everything is judged again when it is time, and nothing is written for it.
func TestScanOfEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(t)
		c.put(configMaps, "a/map")
		c.refused[secrets] = forbidden(secrets)
		s := c.run(policiesOf(t, scanned))
		settle(0)
		c.asked()
		c.writes()
		settle(25 * time.Hour)
		registry := prometheus.NewRegistry()
		registry.MustRegister(s.metrics.rounds)
		counted, err := registry.Gather()
		if err != nil || counted[0].GetMetric()[0].GetCounter().GetValue() != 2 {
			t.Errorf("%v scans were counted, %v", counted, err)
		}
		if asked := c.asked(); !slices.Contains(asked, "list configmaps") {
			t.Errorf("in a day was read %v", asked)
		}
		if wrote := c.writes(); len(wrote) != 0 {
			t.Errorf("at rest was written: %v", wrote)
		}
	})
}
