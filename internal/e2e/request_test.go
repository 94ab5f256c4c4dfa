//go:build e2e

package e2e

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

var clusterRoleBindings = apischema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}

// resourceAt is where objects are: a resource, and a namespace unless they have none.
type resourceAt struct {
	resource  apischema.GroupVersionResource
	namespace string
}

func (r resourceAt) in(client dynamic.Interface) dynamic.ResourceInterface {
	if r.namespace == "" || r.resource == namespaces {
		return client.Resource(r.resource)
	}
	return client.Resource(r.resource).Namespace(r.namespace)
}

// An attempt is a case as a request to an API server.
type attempt struct {
	fixtures.Case
	admission *admissionv1.AdmissionRequest // as the case has it, then as the server makes it
	at        resourceAt
	stored    *unstructured.Unstructured // what an UPDATE or a DELETE is about
}

func newAttempt(t *testing.T, c fixtures.Case) *attempt {
	t.Helper()
	data, err := c.Request()
	if err != nil {
		t.Fatal(err)
	}
	a := &attempt{Case: c, admission: &admissionv1.AdmissionRequest{}}
	if err := json.Unmarshal(data, a.admission); err != nil {
		t.Fatal(err)
	}
	a.at = resourceAt{apischema.GroupVersionResource(a.admission.Resource), a.admission.Namespace}
	return a
}

// impossible says why a case is not made: "" where it can be.
func (a *attempt) impossible() string {
	switch {
	case a.admission.Operation == admissionv1.Connect:
		return "a CONNECT opens a stream to a node, and there is none"
	case a.admission.SubResource != "":
		return "a subresource"
	case a.Groups != nil && len(a.Groups) == 0:
		return "a user of no group; the server puts every user into system:authenticated"
	}
	return ""
}

// as is the API server of a configuration as the case's user sees it.
func (a *attempt) as(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: a.admission.UserInfo.Username, Groups: a.admission.UserInfo.Groups}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// prepare makes what the request needs: the namespace with its labels, and the
// object that is there already.
func (a *attempt) prepare(t *testing.T, c *cluster) error {
	t.Helper()
	if a.at.namespace != "" && a.at.resource != namespaces {
		if err := c.label(t, a.at.namespace, a.NamespaceLabels); err != nil {
			return err
		}
	}
	if a.OldObject == nil {
		return nil
	}
	old := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(normal(t, a.OldObject))}
	stored, err := c.store(t, a.at, old)
	if err != nil {
		return fmt.Errorf("the object that is to be there already: %w", err)
	}
	a.stored = stored
	return nil
}

// label makes the namespace if need be, and gives it exactly these labels.
func (c *cluster) label(t *testing.T, namespace string, labels map[string]string) error {
	t.Helper()
	o := read(t, "{apiVersion: v1, kind: Namespace}")
	o.SetName(namespace)
	o.SetLabels(labels)
	_, err := c.store(t, resourceAt{resource: namespaces}, o)
	return err
}

// send makes the request, dry, and returns the object as the server would store it.
func (a *attempt) send(ctx context.Context, t *testing.T, client dynamic.Interface) (*unstructured.Unstructured, error) {
	t.Helper()
	kinds := a.at.in(client)
	if a.admission.Operation == admissionv1.Delete {
		return nil, kinds.Delete(ctx, a.stored.GetName(), metav1.DeleteOptions{DryRun: dryRun()})
	}
	o := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(normal(t, a.Object))}
	if a.admission.Operation == admissionv1.Create {
		return kinds.Create(ctx, o, metav1.CreateOptions{DryRun: dryRun()})
	}
	o.SetResourceVersion(a.stored.GetResourceVersion())
	return kinds.Update(ctx, o, metav1.UpdateOptions{DryRun: dryRun()})
}

// asServed is the request as admission sees it, with the server's form of the objects.
func (a *attempt) asServed(t *testing.T, object *unstructured.Unstructured) *admissionv1.AdmissionRequest {
	t.Helper()
	r := a.admission.DeepCopy()
	r.Object, r.OldObject = runtime.RawExtension{}, runtime.RawExtension{}
	if object != nil {
		r.Object.Raw = marshal(t, object)
	}
	if a.stored != nil {
		r.OldObject.Raw = marshal(t, a.stored)
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
