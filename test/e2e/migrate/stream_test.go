//go:build e2e

package migrate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// policies are one for each way by which Kyverno is switched off: labelled and asks
// stay where they are (one is native, the other needs a webhook), foreground is
// removed, and of mixed a rule stays.
const policies = labelledPolicy + "---" + asksPolicy + "---" + foregroundPolicy + "---" + mixedPolicy

const (
	labelledPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labelled}
spec:
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`
	asksPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: asks}
spec:
  validationFailureAction: Enforce
  rules:
  - name: asks
    match: {any: [{resources: {kinds: [Secret], namespaces: [shop]}}]}
    context:
    - {name: here, apiCall: {urlPath: /api/v1/namespaces/shop, jmesPath: metadata.name}}
    validate:
      message: no team in {{ here }}
      deny:
        conditions:
          all:
          - {key: "{{ request.object.metadata.labels.team || '' }}", operator: Equals, value: ""}
          - {key: "{{ here }}", operator: Equals, value: shop}
`
	foregroundPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: foreground}
spec:
  background: false
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Service], namespaces: [shop]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`
	mixedPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: mixed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ServiceAccount], namespaces: [shop]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
  - name: signed
    match: {any: [{resources: {kinds: [Pod], namespaces: [elsewhere]}}]}
    verifyImages: [{cosignOCI11: true, imageReferences: ["*"]}]
`
)

// kinds are what the policies are about, by policy.
func kinds() map[string]string {
	return map[string]string{
		"labelled":   "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, namespace: shop}}",
		"asks":       "{apiVersion: v1, kind: Secret, metadata: {name: probe, namespace: shop}}",
		"foreground": "{apiVersion: v1, kind: Service, metadata: {name: probe, namespace: shop}, spec: {ports: [{port: 80}]}}",
		"mixed":      "{apiVersion: v1, kind: ServiceAccount, metadata: {name: probe, namespace: shop}}",
	}
}

// probe is an object for a policy, good or bad.
func probe(t *testing.T, name string, good bool) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	text := kinds()[name]
	if text == "" {
		text = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: probe, namespace: shop}}" // of a policy that a test has for itself
	}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if good {
		o.SetLabels(map[string]string{"team": "blue"})
	}
	return o
}

// judged makes an object, dry, and gives what the answer is.
func (c *cluster) judged(ctx context.Context, o *unstructured.Unstructured) error {
	return c.Create(ctx, o.DeepCopy(), client.DryRunAll)
}

// A stream sends good and bad requests about every policy all the time.
type stream struct {
	good, bad atomic.Int64
	wrong     sync.Map // what was judged wrongly, by when
	stop      func()
}

// stream is about all of the policies.
func (c *cluster) stream(t *testing.T) *stream {
	t.Helper()
	return c.streamOf(t, slices.Collect(maps.Keys(kinds()))...)
}

// streamOf begins once each policy is enforced.
func (c *cluster) streamOf(t *testing.T, names ...string) *stream {
	t.Helper()
	for _, name := range names {
		testcluster.Soon(t, "Kyverno enforces "+name, func() bool {
			err := c.judged(t.Context(), probe(t, name, false))
			return err != nil && strings.Contains(err.Error(), "kyverno.svc")
		})
	}
	s := &stream{}
	var each []func(context.Context)
	for _, name := range names {
		good, bad := probe(t, name, true), probe(t, name, false)
		each = append(each, func(ctx context.Context) {
			err := c.judged(ctx, bad)
			if err == nil {
				s.wrong.Store(time.Now().Format(time.StampMilli)+" "+name, "a bad request was admitted")
			}
			s.bad.Add(1)
			if err = c.judged(ctx, good); err != nil && ctx.Err() == nil {
				s.wrong.Store(time.Now().Format(time.StampMilli)+" "+name, "a good request was denied: "+err.Error())
			}
			s.good.Add(1)
			time.Sleep(5 * time.Millisecond)
		})
	}
	s.stop = testcluster.Repeat(t, each...)
	return s
}

// check fails where something was judged wrongly so far.
func (s *stream) check(t *testing.T, when string) {
	t.Helper()
	var wrong []string
	s.wrong.Range(func(at, what any) bool {
		wrong = append(wrong, at.(string)+": "+what.(string))
		return true
	})
	if len(wrong) > 0 {
		t.Fatalf("%s: %d requests were judged wrongly, of %d good and %d bad:\n%s", when, len(wrong), s.good.Load(), s.bad.Load(), strings.Join(wrong[:min(10, len(wrong))], "\n"))
	}
	t.Logf("%s: %d good and %d bad requests", when, s.good.Load(), s.bad.Load())
}
