package apiserver

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A paramStore holds params by kind, in the order of namespace and name.
type paramStore struct {
	objects map[schema.GroupVersionKind][]*param
	scope   func(schema.GroupVersionKind) (namespaced, known bool)
}

// A param converts to what CEL sees without a copy.
type param struct{ *unstructured.Unstructured }

// ToUnstructured is how the API server's adapter asks for the value.
func (p *param) ToUnstructured() any { return p.Object }

// DeepCopyObject copies the object.
func (p *param) DeepCopyObject() runtime.Object { return &param{p.DeepCopy()} }

func paramName(o runtime.Object) string {
	p, ok := o.(*param)
	switch {
	case !ok:
		return ""
	case p.GetNamespace() == "":
		return p.GetName()
	}
	return p.GetNamespace() + "/" + p.GetName()
}

func newParamStore(opts JudgeOptions) (*paramStore, error) {
	s := &paramStore{objects: map[schema.GroupVersionKind][]*param{}, scope: opts.ParamScope}
	for _, u := range opts.Params {
		kind := u.GroupVersionKind()
		if kind.Kind == "" || kind.Version == "" || u.GetName() == "" {
			return nil, fmt.Errorf("a params object needs apiVersion, kind and metadata.name; got %s %q", kind, u.GetName())
		}
		object, err := Canonical(u.Object, kind)
		if err != nil {
			return nil, fmt.Errorf("params %s %q: %w", kind.Kind, u.GetName(), err)
		}
		s.objects[kind] = append(s.objects[kind], &param{&unstructured.Unstructured{Object: object}})
	}
	for _, list := range s.objects {
		slices.SortStableFunc(list, func(a, b *param) int {
			return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
		})
	}
	if s.scope == nil {
		s.scope = func(kind schema.GroupVersionKind) (bool, bool) {
			isNamespaced := func(p *param) bool { return p.GetNamespace() != "" }
			all := s.objects[kind]
			return len(all) == 0 || slices.ContainsFunc(all, isNamespaced), true // a file may leave a namespace out
		}
	}
	return s, nil
}

// collect is the API server's CollectParams (policy/generic), whose informers
// are replaced by the store: the params to evaluate with, where a nil one means
// that params is null.
func (s *paramStore) collect(kind *admissionregistrationv1.ParamKind, ref *admissionregistrationv1.ParamRef, namespace string) ([]runtime.Object, error) {
	if kind == nil || ref == nil {
		return []runtime.Object{nil}, nil
	}
	gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
	namespaced, known := s.scope(gvk)
	switch {
	case !known:
		return nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gvk)
	case !namespaced && ref.Namespace != "":
		return nil, errors.New("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
	case !namespaced:
		namespace = ""
	case ref.Namespace != "":
		namespace = ref.Namespace
	case namespace == "":
		return nil, errors.New("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
	}
	found, err := s.find(gvk, ref, namespace)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && ref.ParameterNotFoundAction != nil && *ref.ParameterNotFoundAction == admissionregistrationv1.DenyAction {
		return nil, errors.New("no params found for policy binding with `Deny` parameterNotFoundAction")
	}
	return found, nil
}

func (s *paramStore) find(kind schema.GroupVersionKind, ref *admissionregistrationv1.ParamRef, namespace string) ([]runtime.Object, error) {
	matches := func(p *param) bool { return p.GetName() == ref.Name }
	if ref.Name == "" {
		if ref.Selector == nil {
			return nil, errors.New("one of name or selector must be provided")
		}
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, err
		}
		matches = func(p *param) bool { return selector.Matches(labels.Set(p.GetLabels())) }
	}
	var out []runtime.Object
	for _, p := range s.objects[kind] {
		if p.GetNamespace() == namespace && matches(p) {
			out = append(out, p)
		}
	}
	return out, nil
}
