package apiserver

import (
	"context"
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/scheme"
)

// attributes are the request as the admission chain sees it.
func attributes(r *admissionv1.AdmissionRequest) (admission.Attributes, error) {
	kind := schema.GroupVersionKind(r.Kind)
	object, err := requestObject("object", r.Object, kind, r.Operation == admissionv1.Connect)
	if err != nil {
		return nil, err
	}
	old, err := requestObject("oldObject", r.OldObject, kind, false)
	if err != nil {
		return nil, err
	}
	switch r.Operation {
	case admissionv1.Create, admissionv1.Connect:
		old = nil
	case admissionv1.Delete:
		object = nil
	case admissionv1.Update:
	default:
		return nil, fmt.Errorf("request %s: operation %q is not CREATE, UPDATE, DELETE or CONNECT", r.UID, r.Operation)
	}
	options, err := requestObject("options", r.Options, schema.GroupVersionKind{}, false)
	if err != nil {
		return nil, err
	}
	return admission.NewAttributesRecord(object, old, kind, r.Namespace, r.Name, schema.GroupVersionResource(r.Resource),
		r.SubResource, admission.Operation(r.Operation), options, r.DryRun != nil && *r.DryRun, userInfo(r)), nil
}

// requestObject is nil for an absent or null object. The options of a CONNECT are
// typed, as on a server: they have no labels for a selector to look at.
func requestObject(field string, raw runtime.RawExtension, kind schema.GroupVersionKind, typed bool) (runtime.Object, error) {
	u, ok := raw.Object.(*unstructured.Unstructured)
	if !ok {
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			return nil, nil
		}
		u = &unstructured.Unstructured{}
		if err := json.Unmarshal(raw.Raw, &u.Object); err != nil {
			return nil, fmt.Errorf("request.%s is no JSON object: %w", field, err)
		}
	}
	if u.Object == nil {
		return nil, nil
	}
	if kind.Kind != "" && u.GroupVersionKind().Empty() {
		u = &unstructured.Unstructured{Object: maps.Clone(u.Object)}
		u.SetGroupVersionKind(kind)
	}
	if !typed || !scheme.Scheme.Recognizes(kind) {
		return u, nil
	}
	out, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("request.%s is no %s: %w", field, kind.Kind, err)
	}
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

func userInfo(r *admissionv1.AdmissionRequest) user.Info {
	u := &user.DefaultInfo{Name: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups}
	for k, v := range r.UserInfo.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[k] = v
	}
	return u
}

// noOpinion grants nothing.
type noOpinion struct{}

func (noOpinion) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}

// interfaces convert objects between versions by their apiVersion alone, as the
// API server does for custom resources that have no conversion webhook.
type interfaces struct {
	equivalent runtime.EquivalentResourceMapper
}

func newInterfaces(equivalent runtime.EquivalentResourceMapper) admission.ObjectInterfaces {
	if equivalent == nil {
		equivalent = runtime.NewEquivalentResourceRegistry()
	}
	return interfaces{equivalent}
}

func (i interfaces) GetObjectCreater() runtime.ObjectCreater     { return i }
func (i interfaces) GetObjectTyper() runtime.ObjectTyper         { return scheme.Scheme }
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return scheme.Scheme }
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return i.equivalent
}

// New is an object of a kind that Convert fills.
func (interfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// Convert copies in to out, which keeps its kind.
func (interfaces) Convert(in, out, _ any) error {
	from, ok1 := in.(*unstructured.Unstructured)
	to, ok2 := out.(*unstructured.Unstructured)
	if !ok1 || !ok2 {
		return fmt.Errorf("cannot convert %T to %T", in, out)
	}
	kind := to.GroupVersionKind()
	to.Object = maps.Clone(from.Object)
	to.SetGroupVersionKind(kind)
	return nil
}

// ConvertToVersion is never called on the way of a request.
func (interfaces) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel is never called on the way of a request.
func (interfaces) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
