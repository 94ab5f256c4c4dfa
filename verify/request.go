package verify

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/schema"
)

// A Request is an admission request, with what a cluster knows of its namespace
// and user. Objects are JSON as Go data and are not changed.
type Request struct {
	Operation       string
	Kind            schema.GVK // of the objects
	Group, Version  string     // of the resource
	Resource        string     // its plural
	Subresource     string
	Name, Namespace string
	Object          map[string]any // nil when absent
	OldObject       map[string]any
	User            string
	Groups          []string
	// NamespaceLabels and NamespaceAnnotations are those of the namespace; nil outside of namespaces.
	NamespaceLabels, NamespaceAnnotations map[string]string
	DryRun                                bool

	world int // which of the made up ConfigMaps there are
}

const requestUID = "00000000-0000-0000-0000-000000000000"

// admission is the request as the API server's code takes it.
func (r *Request) admission() *admissionv1.AdmissionRequest {
	kind := metav1.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}
	resource := metav1.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
	return &admissionv1.AdmissionRequest{
		UID: types.UID(requestUID), Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
		SubResource: r.Subresource, RequestSubResource: r.Subresource, Name: r.Name, Namespace: r.Namespace,
		Operation: admissionv1.Operation(r.Operation),
		UserInfo:  authenticationv1.UserInfo{Username: r.User, Groups: r.Groups},
		Object:    raw(r.Object), OldObject: raw(r.OldObject), DryRun: &r.DryRun,
	}
}

func raw(object map[string]any) runtime.RawExtension {
	if object == nil {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Object: &unstructured.Unstructured{Object: object}}
}

// json is the request as the interpreter takes it: an AdmissionRequest as JSON.
func (r *Request) json() map[string]any {
	kind := map[string]any{"group": r.Kind.Group, "version": r.Kind.Version, "kind": r.Kind.Kind}
	resource := map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource}
	user := map[string]any{"username": r.User}
	if len(r.Groups) > 0 {
		groups := make([]any, len(r.Groups))
		for i, g := range r.Groups {
			groups[i] = g
		}
		user["groups"] = groups
	}
	out := map[string]any{
		"uid": requestUID, "kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
		"operation": r.Operation, "userInfo": user, "dryRun": r.DryRun, "object": nil, "oldObject": nil, "options": nil,
	}
	set := func(key, value string) {
		if value != "" {
			out[key] = value
		}
	}
	set("subResource", r.Subresource)
	set("requestSubResource", r.Subresource)
	set("name", r.Name)
	set("namespace", r.Namespace)
	if r.Object != nil {
		out["object"] = r.Object
	}
	if r.OldObject != nil {
		out["oldObject"] = r.OldObject
	}
	return out
}

// Filled is a request as an API server hands it to admission. What a connection is made with
// has no defaults of its kind.
func (r *Request) Filled(defaults *defaulting.Defaulter) *Request {
	if r.Operation == "CONNECT" {
		return r
	}
	out := *r
	out.Object, out.OldObject = defaults.Fill(r.Object), defaults.Fill(r.OldObject)
	return &out
}

// Recorded is the request as judges take it.
func (r *Request) Recorded() *judge.Request {
	out := judge.Recorded(r.admission(), r.json())
	out.Namespace = r.namespaceObject()
	return out
}

// World is which of n sets of objects to look up the request is judged with.
func (r *Request) World(n int) int { return r.world % n }

// MarshalJSON is the request in the form that kvap eval reads.
func (r *Request) MarshalJSON() ([]byte, error) {
	out := map[string]any{"request": r.json()}
	if namespace := r.namespaceObject(); namespace != nil {
		out["namespaceObject"] = namespace
	}
	return json.Marshal(out)
}

// namespaceObject is the namespace of the request as it is stored; nil outside of namespaces.
func (r *Request) namespaceObject() map[string]any {
	if r.NamespaceLabels == nil {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Active"}}}
	u.SetAPIVersion("v1")
	u.SetKind("Namespace")
	u.SetName(r.Namespace)
	u.SetLabels(r.NamespaceLabels)
	u.SetAnnotations(r.NamespaceAnnotations)
	return u.Object
}

// String is the request in one line, for messages.
func (r *Request) String() string {
	data, err := json.Marshal(r)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// Summary says who does what, in words.
func (r *Request) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Operation, r.Resource)
	if r.Subresource != "" {
		b.WriteString("/" + r.Subresource)
	}
	if r.Name != "" {
		b.WriteString(" " + r.Name)
	}
	if r.Namespace != "" {
		fmt.Fprintf(&b, " in %s", r.Namespace)
		for _, key := range sortedKeys(r.NamespaceLabels) {
			if key != namespaceName {
				fmt.Fprintf(&b, ", labelled %s=%s,", key, r.NamespaceLabels[key])
			}
		}
		for _, key := range sortedKeys(r.NamespaceAnnotations) {
			fmt.Fprintf(&b, ", annotated %s=%s,", key, r.NamespaceAnnotations[key])
		}
	}
	fmt.Fprintf(&b, " by %s", r.User)
	if len(r.Groups) > 0 {
		fmt.Fprintf(&b, " of %s", strings.Join(r.Groups, ", "))
	}
	if r.DryRun {
		b.WriteString(", as a dry run")
	}
	return b.String()
}
