package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/internal/cluster"
)

// answering is a cluster with some kinds that answers everything about one resource with
// an error, and that has nothing else.
func answering(err func(apischema.GroupVersionResource) error, resource string, kinds ...apischema.GroupVersionKind) *cluster.Connection {
	mapper, lists := meta.NewDefaultRESTMapper(nil), map[apischema.GroupVersionResource]string{}
	for _, k := range kinds {
		mapper.Add(k, meta.RESTScopeNamespace)
		plural, _ := meta.UnsafeGuessKindToResource(k)
		lists[plural] = k.Kind + "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	client.PrependReactor("*", resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, err(a.GetResource())
	})
	return &cluster.Connection{Dynamic: client, Mapper: mapper}
}

func forbidden(r apischema.GroupVersionResource) error {
	return apierrors.NewForbidden(r.GroupResource(), "", fmt.Errorf("User %q cannot list resource %q in API group %q", "bob", r.Resource, r.Group))
}

func kind(group, version, name string) apischema.GroupVersionKind {
	return apischema.GroupVersionKind{Group: group, Version: version, Kind: name}
}

// Exceptions that may not be read, or of which an API server says nothing, are not taken
// for none. A kind that is not there has none.
func TestExceptionsThatMayNotBeRead(t *testing.T) {
	for _, k := range []apischema.GroupVersionKind{kind("kyverno.io", "v2", "PolicyException"), kind(migrate.ExceptingGroup, "v1", "PolicyException")} {
		_, err := Exceptions(t.Context(), answering(forbidden, "policyexceptions", k))
		if err == nil || !strings.Contains(err.Error(), `cannot list resource "policyexceptions" in API group "`+k.Group+`"`) || !strings.Contains(err.Error(), "docs/migration.md") {
			t.Errorf("%s: %v", k.Group, err)
		}
		fails := func(apischema.GroupVersionResource) error { return apierrors.NewInternalError(errors.New("etcd")) }
		if _, err := Exceptions(t.Context(), answering(fails, "policyexceptions", k)); err == nil {
			t.Errorf("%s: an error was taken for no exceptions", k.Group)
		}
		gone := func(r apischema.GroupVersionResource) error { return apierrors.NewNotFound(r.GroupResource(), "") }
		if found, err := Exceptions(t.Context(), answering(gone, "policyexceptions", k)); err != nil || len(found) > 0 {
			t.Errorf("%s: its definition has just gone: %v, %v", k.Group, found, err)
		}
	}
	if found, err := Exceptions(t.Context(), answering(forbidden, "policyexceptions")); err != nil || len(found) > 0 {
		t.Errorf("a kind that is not served: %v, %v", found, err)
	}
}

// What a policy reads, and may not be read by who asks, is not taken for something that
// is not there: a comparison would be about less than it says.
func TestObjectsThatMayNotBeRead(t *testing.T) {
	reads := read(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: limits, configMap: {name: limits, namespace: shop}}]
    validate: {message: no, deny: {conditions: {all: [{key: "{{ limits.data.a }}", operator: Equals, value: b}]}}}`)
	gets := read(t, `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec: {validations: [{expression: "resource.Get('v1', 'configmaps', 'shop', 'limits').data.a == 'b'"}]}`)
	c := answering(forbidden, "configmaps", kind("", "v1", "ConfigMap"))
	for _, source := range []*unstructured.Unstructured{reads, gets} {
		if around, err := Around(t.Context(), c, source, nil); err == nil || !strings.Contains(err.Error(), "docs/migration.md") {
			t.Errorf("%s: %v, %v", source.GetKind(), around, err)
		}
	}
	r := &Reader{Connection: c}
	w := &migrate.PolicyState{Source: reads}
	if err := r.lookAround(t.Context(), PolicyStates{"p": w}); err != nil || !strings.Contains(w.Unread, "configmaps") {
		t.Errorf("%q, %v: it is about this policy, and no other", w.Unread, err)
	}
}

// A Kyverno whose lease may not be read may be dead: nobody is to let go for it.
func TestLeaseThatMayNotBeRead(t *testing.T) {
	lease := kind("coordination.k8s.io", "v1", "Lease")
	hooks := []apischema.GroupVersionKind{
		kind("apps", "v1", "Deployment"), kind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"), kind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"),
	}
	k := &kyvernoWatch{Connection: answering(forbidden, "leases", append(hooks, lease)...)}
	if err := k.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k.unread == nil || !strings.Contains(k.unread.Error(), "leases") || !strings.Contains(k.unread.Error(), "docs/migration.md") {
		t.Errorf("%v", k.unread)
	}
	if _, err := Silent(t.Context(), k.Connection); err == nil {
		t.Error("it is taken for alive")
	}
}
