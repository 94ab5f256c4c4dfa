//go:build e2e

package webhook

import (
	"crypto/rand"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// In a namespace without the ConfigMap that a rule reads there, what the rule matches is
// refused and nothing else is, wherever namespaces and ConfigMaps come and go.
func TestConfigMapOfOwnNamespace(t *testing.T) {
	shared.start(t, "")
	for _, name := range []string{"own-with", "own-without"} {
		shared.Namespace(t, name, nil)
	}
	give := func(namespace string) *corev1.ConfigMap {
		t.Helper()
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own-teams", Namespace: namespace}, Data: map[string]string{"team": "red"}}
		if err := shared.Create(t.Context(), cm); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		return cm
	}
	given := give("own-with")
	shared.Apply(t, strings.NewReplacer("in-team", "own-team", "name: missing-teams, namespace: default", `name: own-teams, namespace: "{{ request.namespace }}"`).Replace(inTeam))
	in := func(namespace, name, team string) error {
		_, err := shared.try(t.Context(), t, strings.Replace(secretOf(name, team), "namespace: default", "namespace: "+namespace, 1))
		return err
	}
	refusedOnly := func(namespace string) func() bool {
		return func() bool {
			if err := in(namespace, "another", "blue"); err != nil {
				return false
			}
			err := in(namespace, "team-a", "red")
			return err != nil && strings.Contains(err.Error(), "own-teams")
		}
	}
	judged := func() bool { return in("own-with", "team-a", "red") == nil && in("own-with", "team-a", "blue") != nil }
	testcluster.Soon(t, "what the rule matches is refused where there is none", refusedOnly("own-without"))
	testcluster.Soon(t, "it is judged where there is one", judged)

	var all corev1.NamespaceList
	if err := shared.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, n := range all.Items {
		give(n.Name)
	}
	testcluster.Soon(t, "the API server judges alone", func() bool {
		return judged() && apierrors.IsInvalid(in("own-without", "team-a", "blue"))
	})
	shared.configurations(t, "ValidatingWebhookConfiguration", 0)

	late := "own-late-" + strings.ToLower(rand.Text())
	shared.Namespace(t, late, nil)
	testcluster.Soon(t, "so it is in a namespace that comes later", refusedOnly(late))
	give(late)
	testcluster.Soon(t, "the API server judges alone again", func() bool { return apierrors.IsInvalid(in(late, "team-a", "blue")) })
	if err := shared.Delete(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "so it is where the ConfigMap goes", func() bool {
		if err := in("own-with", "another", "blue"); err != nil {
			t.Fatalf("what the rule is not about: %v", err)
		}
		return refusedOnly("own-with")()
	})
	for _, n := range append(all.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: late}}) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "own-teams", Namespace: n.Name}}
		if err := client.IgnoreNotFound(shared.Delete(t.Context(), cm)); err != nil {
			t.Fatal(err)
		}
	}
}
