//go:build e2e

package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

const lookup = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: lookup}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: allowed
    match: {any: [{resources: {kinds: [Secret], names: [probe]}}]}
    context:
    - name: allowed
      configMap: {name: allowed-teams, namespace: default}
    validate:
      message: The team is not allowed.
      deny:
        conditions:
          any:
          - key: "{{ request.object.metadata.labels.team || '' }}"
            operator: NotEquals
            value: "{{ allowed.data.team }}"
`

// A ConfigMap that a rule reads is what the rule judges by, within a second of each
// change; without it the policy says what is missing.
func TestParams(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, lookup)
	name := "lookup.clusterpolicies.kyverno.io"
	testcluster.Soon(t, "the policy says that the ConfigMap is missing", func() bool {
		return shared.condition(t, name, v1alpha1.ConditionParamsResolved).Reason == "Missing"
	})
	testcluster.Soon(t, "requests are denied for want of it", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "red"}) != nil })
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed-teams", Namespace: "default"}, Data: map[string]string{"team": "red"}}
	if err := shared.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.remove(t, cm) })
	shared.awaitReady(t, "ClusterPolicy", "", "lookup")
	testcluster.Soon(t, "red is allowed", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "red"}) == nil })
	if err := shared.trySecret(t.Context(), map[string]string{"team": "blue"}); !apierrors.IsInvalid(err) {
		t.Errorf("blue: %v", err)
	}
	cm.Data["team"] = "blue"
	if err := shared.Update(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	changed := time.Now()
	params := &v1alpha1.Params{}
	testcluster.Soon(t, "the params follow", func() bool {
		return shared.Get(t.Context(), client.ObjectKeyFromObject(cm), params) == nil && params.Data["team"] == "blue"
	})
	t.Logf("after %v", time.Since(changed))
	testcluster.Soon(t, "blue is allowed", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "blue"}) == nil })
	shared.remove(t, cm)
	testcluster.Soon(t, "the params are gone", func() bool {
		return apierrors.IsNotFound(shared.Get(t.Context(), client.ObjectKeyFromObject(cm), params))
	})
}

// trySecret asks, dry, for a Secret.
func (c *cluster) trySecret(ctx context.Context, labels map[string]string) error {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "default", Labels: labels}}
	return c.Create(ctx, s, client.DryRunAll)
}

// When a policy goes, its params go last: nobody who satisfies the policy is refused
// meanwhile.
func TestParamsGoLast(t *testing.T) {
	shared.control(t, enforcing())
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "allowed-teams", Namespace: "default"}, Data: map[string]string{"team": "red"}}
	if err := shared.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.remove(t, cm) })
	for range 3 {
		shared.apply(t, lookup)
		shared.awaitReady(t, "ClusterPolicy", "", "lookup")
		testcluster.Soon(t, "red is allowed", func() bool { return shared.trySecret(t.Context(), map[string]string{"team": "red"}) == nil })
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("kyverno.io/v1")
		o.SetKind("ClusterPolicy")
		o.SetName("lookup")
		shared.remove(t, o)
		params := &v1alpha1.Params{}
		testcluster.Soon(t, "the params are gone", func() bool {
			if err := shared.trySecret(t.Context(), map[string]string{"team": "red"}); err != nil {
				t.Fatalf("while the policy goes: %v", err)
			}
			return apierrors.IsNotFound(shared.Get(t.Context(), client.ObjectKeyFromObject(cm), params))
		})
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			if err := shared.trySecret(t.Context(), map[string]string{"team": "red"}); err != nil {
				t.Fatalf("after the params are gone: %v", err)
			}
		}
	}
}
