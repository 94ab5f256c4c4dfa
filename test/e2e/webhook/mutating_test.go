//go:build e2e

package webhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// marked has what it marks ConfigMaps with in its own words; what it looks up keeps it from
// having a native form.
const marked = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: marked}
spec:
  background: false # its rule reads who asks
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [marks], operations: [CREATE]}}]}
    context:
    - {name: here, apiCall: {urlPath: /api/v1/namespaces/marks, jmesPath: metadata.name}}
    preconditions: {all: [{key: "{{ here }}", operator: Equals, value: marks}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(by): kvap}}, data: {user: "{{ request.userInfo.username }}"}}}
`

// counted may not run twice: it puts something in front of what is there.
const counted = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: counted}
spec:
  rules:
  - name: count
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [marks], operations: [CREATE]}}]}
    mutate: {patchStrategicMerge: {data: {count: "1{{ request.object.data.count || '' }}"}}}
`

// nativeMark is the spec of marked with a native form.
func nativeMark(t *testing.T) map[string]any {
	t.Helper()
	spec := testcluster.Read(t, marked)[0].Object["spec"].(map[string]any)
	rule := spec["rules"].([]any)[0].(map[string]any)
	delete(rule, "context")
	delete(rule, "preconditions")
	return spec
}

// mutates tells of a MutatingAdmissionPolicy of a name that the controller has made.
func (c *cluster) mutates(t *testing.T, name string) bool {
	t.Helper()
	var p admissionregistrationv1.MutatingAdmissionPolicy
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, &p)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil && p.Labels["app.kubernetes.io/managed-by"] == "kvap-controller"
}

// A marking sends ConfigMaps all the time, and notes what they became.
type marking struct {
	sent, refused atomic.Int64
	mu            sync.Mutex
	wrong         map[string]int
	stop          func()
}

const unmarked = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unmarked, namespace: marks}\ndata: {a: b}"

func (c *cluster) mark(t *testing.T, clients int, want map[string]any) *marking {
	t.Helper()
	m := &marking{wrong: map[string]int{}}
	one := func(ctx context.Context) {
		o, err := c.try(ctx, t, unmarked)
		m.sent.Add(1)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if m.refused.Add(1); !strings.Contains(err.Error(), "failed calling webhook") {
				m.note(err.Error())
			}
			time.Sleep(5 * time.Millisecond)
			return
		}
		data, _ := o.Object["data"].(map[string]any)
		if !maps.EqualFunc(data, want, func(a, b any) bool { return a == b }) || o.GetLabels()["by"] != "kvap" {
			m.note(fmt.Sprint(data, o.GetLabels()))
		}
	}
	m.stop = testcluster.Repeat(t, slices.Repeat([]func(context.Context){one}, clients)...)
	return m
}

func (m *marking) note(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong[what]++
}

func (m *marking) end(t *testing.T) {
	t.Helper()
	m.stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Logf("%d requests, of which %d found no webhook", m.sent.Load(), m.refused.Load())
	for what, n := range m.wrong {
		t.Errorf("%d of %d requests came to %s", n, m.sent.Load(), what)
	}
}

// A policy goes from the webhook to the API server and back, again and again: every object is
// changed, and none is changed twice by what may not run twice.
func TestMutationsMove(t *testing.T) {
	shared.Namespace(t, "marks", nil)
	shared.start(t, "")
	shared.Apply(t, marked)
	shared.Apply(t, counted)
	want := map[string]any{"a": "b", "user": "admin", "count": "1"}
	testcluster.Soon(t, "a mark", func() bool {
		o := shared.admitted(t, unmarked)
		data, _ := o.Object["data"].(map[string]any)
		if user, ok := data["user"]; ok {
			want["user"] = user
		}
		return data["user"] != nil && data["count"] == "1"
	})
	if shared.mutates(t, "marked") || shared.mutates(t, "counted") {
		t.Error("what has no native form, or may not run twice, is native")
	}
	m := shared.mark(t, 4, want)
	for i := range 6 {
		shared.change(t, "marked", nativeMark(t))
		testcluster.Soon(t, "a native policy", func() bool { return shared.mutates(t, "marked") })
		if i > 3 { // or else it turns while it is handed over
			testcluster.Soon(t, "the native policy is seen", func() bool { return shared.enforced(t, "marked") })
		}
		shared.change(t, "marked", testcluster.Read(t, marked)[0].Object["spec"].(map[string]any))
		if i > 2 {
			testcluster.Soon(t, "no native policy", func() bool { return !shared.mutates(t, "marked") })
		}
		time.Sleep(time.Duration(i*200) * time.Millisecond)
	}
	m.end(t)
}

// enforced tells that a policy's native objects were seen, and the webhook has let go of it.
func (c *cluster) enforced(t *testing.T, name string) bool {
	t.Helper()
	var s v1alpha1.PolicyTranslation
	if err := c.Get(t.Context(), client.ObjectKey{Name: name + ".clusterpolicies.kvap.dev"}, &s); err != nil {
		return false
	}
	for _, condition := range s.Status.Conditions {
		if condition.Type == "Ready" {
			return condition.Status == "True" && s.Status.Native > 0 && s.Status.Webhook == 0
		}
	}
	return false
}

// Killed at any time while a policy goes from the webhook to the API server and back, the
// controller leaves a cluster in which no object is stored as it was sent, or changed otherwise
// than once.
func TestKilledWhileMutationsMove(t *testing.T) {
	shared.Namespace(t, "marks", nil)
	p := shared.start(t, "")
	shared.Apply(t, marked)
	want := map[string]any{"a": "b"}
	testcluster.Soon(t, "a mark", func() bool {
		data, _ := shared.admitted(t, unmarked).Object["data"].(map[string]any)
		want["user"] = data["user"]
		return data["user"] != nil
	})
	m := shared.mark(t, 4, want)
	for i := range 12 {
		native := i%2 == 0
		if native {
			shared.change(t, "marked", nativeMark(t))
		} else {
			shared.change(t, "marked", testcluster.Read(t, marked)[0].Object["spec"].(map[string]any))
		}
		time.Sleep(time.Duration(i/2) * 400 * time.Millisecond)
		p.kill()
		p = shared.start(t, p.address)
		testcluster.Soon(t, "the hand-over is done", func() bool { return shared.mutates(t, "marked") == native && (!native || shared.enforced(t, "marked")) })
	}
	m.end(t)
}
