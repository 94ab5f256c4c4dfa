//go:build e2e

package webhook

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A namespace that is deleted takes a ConfigMap and its params along, in any order, some five
// seconds later, and what somebody still needs stays for long. Nothing is refused for want
// of the params.
func TestNamespaceOfConfigMapGoes(t *testing.T) {
	shared.start(t, "")
	for _, name := range []string{"going", "going-staying"} {
		shared.Namespace(t, name, nil)
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "going-teams", Namespace: "going", Finalizers: []string{"kvap.dev/test"}}, Data: map[string]string{"team": "red"},
	}
	if err := shared.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	shared.Apply(t, strings.NewReplacer("in-team", "going-team", "team-*", "going-*", "name: missing-teams, namespace: default", "name: going-teams, namespace: going").Replace(inTeam))
	testcluster.Soon(t, "the API server judges alone", func() bool {
		_, err := shared.try(t.Context(), t, secretOf("going-a", "blue"))
		return apierrors.IsInvalid(err)
	})
	l := shared.holds(t, "going", "default", "going-staying")
	deleted := time.Now()
	if err := shared.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}); err != nil {
		t.Fatal(err)
	}
	defer shared.gone(t, "going")
	testcluster.Soon(t, "the rule is handed to the webhook", func() bool {
		return shared.says(t, "going-team", "NamespaceTerminating") && !shared.native(t, "going-teams")
	})
	t.Logf("after %v", time.Since(deleted)) // the namespace controller begins after 5 s
	time.Sleep(2 * time.Second)             // in which API servers hear of it
	if err := shared.DeleteAllOf(t.Context(), &v1alpha1.Params{}, client.InNamespace("going")); err != nil {
		t.Fatal(err)
	}
	if err := shared.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if err := shared.Patch(t.Context(), cm, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the policy says that the ConfigMap is missing", func() bool { return shared.says(t, "going-team", "Missing") })
	l.check(t)
}

// native tells that there is a native policy whose name ends so.
func (c *cluster) native(t *testing.T, suffix string) bool {
	t.Helper()
	var all admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := c.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool {
		return strings.HasSuffix(p.Name, suffix)
	})
}

// gone ends a namespace that was deleted, as the namespace controller does, of which there is none.
func (c *cluster) gone(t *testing.T, name string) {
	t.Helper()
	o := &corev1.Namespace{}
	if err := c.Get(context.Background(), client.ObjectKey{Name: name}, o); err != nil {
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
		return
	}
	o.Spec.Finalizers = nil
	if err := c.SubResource("finalize").Update(context.Background(), o); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// Where API servers do not reach the webhook, an API server goes on to judge by a rule whose
// ConfigMap goes, and by its params.
func TestConfigMapGoesAndNobodyIsReached(t *testing.T) {
	shared.unregister(t)
	shared.start(t, "", "--webhook-url", "https://127.0.0.1:1") // where nobody listens
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept-teams", Namespace: "default"}, Data: map[string]string{"team": "red"}}
	if err := shared.Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	shared.Apply(t, strings.NewReplacer("in-team", "kept-team", "team-*", "kept-*", "missing-teams", "kept-teams").Replace(inTeam))
	testcluster.Soon(t, "the API server judges", func() bool {
		_, err := shared.try(t.Context(), t, secretOf("kept-a", "blue"))
		return apierrors.IsInvalid(err)
	})
	l := shared.holds(t, "kept", "default")
	if err := shared.Delete(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the policy says that the ConfigMap is missing", func() bool { return shared.says(t, "kept-team", "Missing") })
	time.Sleep(3 * time.Second)
	l.check(t)
}
