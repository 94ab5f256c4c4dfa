//go:build e2e

package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// limited is a policy in CEL that is judged with params of a kind that was defined a
// moment ago.
const limited = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: limited-by-KIND}
spec:
  background: false
  rules:
  - name: limit
    match: {any: [{resources: {kinds: [ServiceAccount], names: ["limited-*"]}}]}
    validate:
      failureAction: Enforce
      cel:
        paramKind: {apiVersion: fresh.io/v1, kind: KIND}
        paramRef: {name: limit, parameterNotFoundAction: Deny}
        expressions:
        - expression: size(object.metadata.name) <= params.spec.length
          message: The name is too long.
`

// A policy is ready once an API server judges with the kind of its params, which it has
// to learn of first: also of one that was defined right after it looked what there is.
func TestFreshParams(t *testing.T) {
	shared.control(t, enforcing())
	for _, name := range []string{"Limit", "Bound", "Quota"} {
		kind := apischema.GroupVersionKind{Group: "fresh.io", Version: "v1", Kind: name}
		if err := shared.plane.InstallCRDs(t.Context(), controlplane.StandIn(kind, strings.ToLower(name)+"s", true)); err != nil {
			t.Fatal(err)
		}
		testcluster.Soon(t, "the kind is discovered", func() bool {
			_, err := shared.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
			return err == nil
		})
		limit := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"length": int64(10)}}}
		limit.SetGroupVersionKind(kind)
		limit.SetNamespace("default")
		limit.SetName("limit")
		shared.put(t, limit)
		policy := testcluster.Read(t, strings.ReplaceAll(strings.ReplaceAll(limited, "by-KIND", "by-"+strings.ToLower(name)), "KIND", name))[0]
		shared.put(t, policy)
		shared.awaitReady(t, "ClusterPolicy", "", policy.GetName())
		if err := shared.tryAccount(t, "limited-a"); err != nil {
			t.Errorf("a short name: %v", err)
		}
		if err := shared.tryAccount(t, "limited-abcdef"); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "The name is too long.") {
			t.Errorf("a long name: %v", err)
		}
		shared.remove(t, policy)
		shared.awaitNone(t)
	}
}

// tryAccount asks, dry, for a ServiceAccount.
func (c *cluster) tryAccount(t *testing.T, name string) error {
	t.Helper()
	o := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	return c.Create(t.Context(), o, client.DryRunAll)
}
