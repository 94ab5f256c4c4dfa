//go:build e2e

package webhook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

const guarded = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: guarded}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [stream]}}]}
    context:
    - {name: here, apiCall: {urlPath: /api/v1/namespaces/stream, jmesPath: metadata.name}}
    validate:
      message: no owner in {{ here }}
      deny:
        conditions:
          all:
          - {key: "{{ request.object.metadata.annotations.\"acme.io/owner\" || '' }}", operator: Equals, value: ""}
          - {key: "{{ here }}", operator: Equals, value: stream}
`

const unowned = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unowned, namespace: stream}"

// A stream sends what must be refused, all the time, and counts what was admitted.
type stream struct {
	sent, admitted, failed atomic.Int64
	stop                   func()
}

func (c *cluster) stream(t *testing.T, clients int) *stream {
	t.Helper()
	s := &stream{}
	one := func(ctx context.Context) {
		_, err := c.try(ctx, t, unowned)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			s.admitted.Add(1)
		case strings.Contains(err.Error(), "failed calling webhook"):
			s.failed.Add(1)
		}
		s.sent.Add(1)
	}
	s.stop = testcluster.Repeat(t, slices.Repeat([]func(context.Context){one}, clients)...)
	return s
}

// While a policy changes a hundred times, in what it says, its failure policy, its
// namespaces, and between native and not, no request goes unjudged.
func TestNoneUnjudged(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	shared.start(t, "")
	shared.Apply(t, guarded)
	shared.denied(t, unowned)
	s := shared.stream(t, 4)
	for i := range 100 {
		spec := testcluster.Read(t, guarded)[0].Object["spec"].(map[string]any)
		rule := spec["rules"].([]any)[0].(map[string]any)
		switch i % 5 {
		case 1:
			spec["failurePolicy"] = "Ignore"
		case 2:
			rule["match"] = map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"ConfigMap"}}}}}
		case 3:
			spec = native(t)
		case 4:
			spec["webhookConfiguration"] = map[string]any{"matchConditions": []any{map[string]any{"name": "all", "expression": "true"}}, "timeoutSeconds": int64(10 + i%10)}
		}
		shared.change(t, "guarded", spec)
		time.Sleep(time.Duration(50+i*7%200) * time.Millisecond)
	}
	s.stop()
	if s.sent.Load() < 200 {
		t.Errorf("only %d requests", s.sent.Load())
	}
	if n := s.admitted.Load(); n > 0 {
		t.Errorf("%d of %d requests were admitted", n, s.sent.Load())
	}
	t.Logf("%d requests, of which %d found no webhook", s.sent.Load(), s.failed.Load())
}

// native is the spec of the guarded policy with a native form.
func native(t *testing.T) map[string]any {
	t.Helper()
	spec := testcluster.Read(t, guarded)[0].Object["spec"].(map[string]any)
	rule := spec["rules"].([]any)[0].(map[string]any)
	delete(rule, "context")
	rule["validate"] = map[string]any{
		"message": "no owner", "pattern": map[string]any{"metadata": map[string]any{"annotations": map[string]any{"acme.io/owner": "?*"}}},
	}
	return spec
}

// A request that was on its way to the webhook when its rule became native is judged
// there: it went past the native policies before that.
func TestOnTheWay(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	front, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := shared.start(t, "", "--webhook-url", "https://"+front)
	forward(t, front, p.address, 200*time.Millisecond)
	shared.Apply(t, guarded)
	for range 3 {
		shared.denied(t, unowned)
		shared.configurations(t, "ValidatingWebhookConfiguration", 1)
		s := shared.stream(t, 8)
		shared.change(t, "guarded", native(t))
		shared.configurations(t, "ValidatingWebhookConfiguration", 0)
		time.Sleep(time.Second)
		s.stop()
		if n := s.admitted.Load(); n > 0 {
			t.Errorf("%d of %d requests were admitted", n, s.sent.Load())
		}
		shared.change(t, "guarded", testcluster.Read(t, guarded)[0].Object["spec"].(map[string]any))
	}
}

// change gives a policy another spec.
func (c *cluster) change(t *testing.T, name string, spec map[string]any) {
	t.Helper()
	testcluster.Soon(t, "a change of the policy", func() bool {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("kvap.dev/v1alpha1")
		o.SetKind("ClusterPolicy")
		if err := c.Get(t.Context(), types.NamespacedName{Name: name}, o); err != nil {
			t.Fatal(err)
		}
		o.Object["spec"] = spec
		err := c.Update(t.Context(), o)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// A process that is killed leaves the failure policy to decide: Fail refuses, Ignore
// admits. Started again at the same place, it judges as before, and what it made is
// gone when no policy needs it.
func TestKilled(t *testing.T) {
	shared.Namespace(t, "stream", nil)
	p := shared.start(t, "")
	lenient := strings.NewReplacer("name: guarded", "name: lenient", "[ConfigMap]", "[Secret]", "spec:\n", "spec:\n  failurePolicy: Ignore\n").Replace(guarded)
	shared.Apply(t, guarded)
	shared.Apply(t, lenient)
	secret := strings.Replace(unowned, "ConfigMap", "Secret", 1)
	shared.denied(t, unowned)
	shared.denied(t, secret)
	s := shared.stream(t, 4)
	for range 3 {
		p.kill()
		if _, err := shared.try(t.Context(), t, unowned); err == nil {
			t.Error("admitted while the webhook is down and must answer")
		}
		if _, err := shared.try(t.Context(), t, secret); err != nil {
			t.Errorf("refused while the webhook is down and may: %v", err)
		}
		p = shared.start(t, p.address)
		shared.denied(t, secret)
	}
	s.stop()
	if n := s.admitted.Load(); n > 0 {
		t.Errorf("%d of %d requests were admitted", n, s.sent.Load())
	}
	for _, name := range []string{"guarded", "lenient"} {
		o := testcluster.Read(t, strings.Replace(guarded, "name: guarded", "name: "+name, 1))[0]
		if err := shared.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	shared.configurations(t, "ValidatingWebhookConfiguration", 0)
	if _, err := shared.try(t.Context(), t, unowned); err != nil {
		t.Error(fmt.Errorf("refused with no policy: %w", err))
	}
}
