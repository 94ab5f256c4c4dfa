//go:build e2e

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A rule that names a namespace that bindings leave out is enforced there; one that does
// not is not.
func TestNamedExcludedNamespace(t *testing.T) {
	shared.clear(t)
	options := enforcing()
	options.ExcludeNamespaces = []string{"kube-system", "kube-public"}
	shared.control(t, options)
	shared.apply(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: named}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: there
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [kube-system]}}]}
    validate: {message: named, pattern: {metadata: {labels: {owner: "?*"}}}}
---
`+requires("anywhere", "team", "Enforce"))
	shared.awaitReady(t, "ClusterPolicy", "", "named")
	shared.awaitReady(t, "ClusterPolicy", "", "anywhere")
	create := func(namespace string, labels map[string]string) error {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: namespace, Labels: labels}}
		return shared.Create(t.Context(), o, client.DryRunAll)
	}
	testcluster.Soon(t, "the namespace that is named is judged", func() bool { return apierrors.IsInvalid(create("kube-system", nil)) })
	testcluster.Soon(t, "what is not left out is judged", func() bool { return apierrors.IsInvalid(create("default", nil)) })
	for namespace, labels := range map[string]map[string]string{
		"kube-system": {"owner": "me"}, "kube-public": nil, "default": {"team": "a"},
	} {
		if err := create(namespace, labels); err != nil {
			t.Errorf("%s with %v: %v", namespace, labels, err)
		}
	}
}
