//go:build e2e

package attempt

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/fixtures"
)

// An Attempt is a case as a request to an API server.
type Attempt struct {
	fixtures.Case
	Admission *admissionv1.AdmissionRequest // as the case has it, then as the server makes it
	At        Collection
	Stored    *unstructured.Unstructured // what an UPDATE or a DELETE is about
}

// New is the request of a case.
func New(t *testing.T, c fixtures.Case) *Attempt {
	t.Helper()
	data, err := c.Request()
	if err != nil {
		t.Fatal(err)
	}
	a := &Attempt{Case: c, Admission: &admissionv1.AdmissionRequest{}}
	if err := json.Unmarshal(data, a.Admission); err != nil {
		t.Fatal(err)
	}
	a.At = Collection{apischema.GroupVersionResource(a.Admission.Resource), a.Admission.Namespace}
	return a
}

// Impossible says why a case is not made: "" where it can be.
func (a *Attempt) Impossible() string {
	switch {
	case a.Admission.Operation == admissionv1.Connect:
		return "a CONNECT opens a stream to a node, and there is none"
	case a.Admission.SubResource != "":
		return "a subresource"
	case a.Groups != nil && len(a.Groups) == 0:
		return "a user of no group; the server puts every user into system:authenticated"
	}
	return ""
}

// As is the API server of a configuration as the case's user sees it.
func (a *Attempt) As(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: a.Admission.UserInfo.Username, Groups: a.Admission.UserInfo.Groups}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// Prepare makes what the request needs: the namespace with its labels, and the
// object that is there already.
func (a *Attempt) Prepare(t *testing.T, s Store) error {
	t.Helper()
	if a.At.Namespace != "" && a.At.Resource != Namespaces() {
		if err := s.Label(t, a.At.Namespace, a.NamespaceLabels); err != nil {
			return err
		}
	}
	if a.OldObject == nil {
		return nil
	}
	old := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(normal(t, a.OldObject))}
	stored, err := s.Put(t, a.At, old)
	if err != nil {
		return fmt.Errorf("the object that is to be there already: %w", err)
	}
	a.Stored = stored
	return nil
}

// Send makes the request, dry, and returns the object as the server would store it.
func (a *Attempt) Send(ctx context.Context, t *testing.T, client dynamic.Interface) (*unstructured.Unstructured, error) {
	t.Helper()
	kinds := a.At.In(client)
	dry := []string{metav1.DryRunAll}
	if a.Admission.Operation == admissionv1.Delete {
		return nil, kinds.Delete(ctx, a.Stored.GetName(), metav1.DeleteOptions{DryRun: dry})
	}
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(normal(t, a.Object))}
	if a.Admission.Operation == admissionv1.Create {
		return kinds.Create(ctx, o, metav1.CreateOptions{DryRun: dry})
	}
	o.SetResourceVersion(a.Stored.GetResourceVersion())
	return kinds.Update(ctx, o, metav1.UpdateOptions{DryRun: dry})
}

// AsServed is the request as admission sees it, with the server's form of the objects.
func (a *Attempt) AsServed(t *testing.T, object *unstructured.Unstructured) *admissionv1.AdmissionRequest {
	t.Helper()
	r := a.Admission.DeepCopy()
	r.Object, r.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	if object != nil {
		r.Object.Raw = marshal(t, object)
	}
	if a.Stored != nil {
		r.OldObject.Raw = marshal(t, a.Stored)
	}
	return r
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// normal is an object with the types of numbers that unstructured objects have.
func normal(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(marshal(t, object)); err != nil {
		t.Fatal(err)
	}
	return u.Object
}
