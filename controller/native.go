package controller

import (
	"iter"
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// The native objects of the API server, in short: policies that validate and policies that
// mutate, with the bindings of each. What both have in common goes by the functions below.
type (
	nativePolicy    = admissionregistrationv1.ValidatingAdmissionPolicy
	nativeBinding   = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	mutatingPolicy  = admissionregistrationv1.MutatingAdmissionPolicy
	mutatingBinding = admissionregistrationv1.MutatingAdmissionPolicyBinding
)

// gvkOf is the kind of an object of admissionregistration.k8s.io/v1: it is called as its type.
func gvkOf(o client.Object) apischema.GroupVersionKind {
	return admissionregistrationv1.SchemeGroupVersion.WithKind(reflect.TypeOf(o).Elem().Name())
}

// emptyLike is an object of the type of another.
func emptyLike(o client.Object) client.Object {
	out, _ := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	out.GetObjectKind().SetGroupVersionKind(gvkOf(o))
	return out
}

// content is the field of an object that says what it does: the spec of what is native, or
// the webhooks of a configuration.
func content(o client.Object) reflect.Value {
	fields := reflect.ValueOf(o).Elem()
	if spec := fields.FieldByName("Spec"); spec.IsValid() {
		return spec
	}
	return fields.FieldByName("Webhooks")
}

// setContent gives an object the content of another of its type.
func setContent(o, of client.Object) {
	of, _ = of.DeepCopyObject().(client.Object)
	o.GetObjectKind().SetGroupVersionKind(gvkOf(of))
	content(o).Set(content(of))
}

// mutatingPrefix begins the keys of what mutates, which may have the names of what validates.
const mutatingPrefix = "mutating/"

// keyOf tells an object from the others: policies among themselves, and bindings.
func keyOf(o client.Object) string {
	if mutates(o) {
		return mutatingPrefix + o.GetName()
	}
	return o.GetName()
}

func mutates(o client.Object) bool {
	switch o.(type) {
	case *mutatingPolicy, *mutatingBinding:
		return true
	}
	return false
}

func isBinding(o client.Object) bool {
	switch o.(type) {
	case *nativeBinding, *mutatingBinding:
		return true
	}
	return false
}

// field is a field of the spec of what is native, by its name; the zero value where its kind
// has none of this name.
func field[T any](o client.Object, name string) (out T) {
	if f := content(o).FieldByName(name); f.IsValid() {
		out, _ = f.Interface().(T)
	}
	return out
}

// boundTo is the key of the policy that a binding binds, and of a policy its own.
func boundTo(o client.Object) string {
	switch {
	case !isBinding(o):
		return keyOf(o)
	case mutates(o):
		return mutatingPrefix + field[string](o, "PolicyName")
	}
	return field[string](o, "PolicyName")
}

// bind has a binding bind another policy.
func bind(o client.Object, name string) { content(o).FieldByName("PolicyName").SetString(name) }

func specOf(o client.Object) any { return content(o).Interface() }

// sameObject tells that there is nothing to write. Labels and annotations of others are
// theirs.
func sameObject(want, have client.Object) bool {
	return contains(have.GetLabels(), want.GetLabels()) && contains(have.GetAnnotations(), want.GetAnnotations()) &&
		equality.Semantic.DeepEqual(specOf(want), specOf(have))
}

// kindOfParams is the kind of a policy's params; nil where it has none.
func kindOfParams(o client.Object) *admissionregistrationv1.ParamKind {
	return field[*admissionregistrationv1.ParamKind](o, "ParamKind")
}

// paramRefOf is what a binding says of params; nil for nothing.
func paramRefOf(o client.Object) *admissionregistrationv1.ParamRef {
	return field[*admissionregistrationv1.ParamRef](o, "ParamRef")
}

// namespacesOf are the selectors of namespaces of a policy and a binding.
func namespacesOf(policy, binding client.Object) (out []*metav1.LabelSelector) {
	for _, m := range []*admissionregistrationv1.MatchResources{
		field[*admissionregistrationv1.MatchResources](policy, "MatchConstraints"), field[*admissionregistrationv1.MatchResources](binding, "MatchResources"),
	} {
		if m != nil && m.NamespaceSelector != nil {
			out = append(out, m.NamespaceSelector)
		}
	}
	return out
}

// A compileResult is what became of the policies: step 2 of a pass.
type compileResult struct {
	result  compile.Result
	natives []wantedPolicy // of the result, once they were asked for
	rules   map[*policy.Policy][]*compile.Rule
	schemas *schema.Set
}

// all are the native policies of the compilation: first what validates, then what mutates.
func (c *compileResult) all() []wantedPolicy {
	if c.natives != nil {
		return c.natives
	}
	for _, o := range c.result.Objects {
		c.natives = append(c.natives, wantedPolicyOf(o.Policy, o.Bindings, o.Draft.Members))
	}
	for _, o := range c.result.Mutating {
		c.natives = append(c.natives, wantedPolicyOf(o.Policy, o.Bindings, o.Draft.Members))
	}
	return c.natives
}

// of are the native policies that a rule is in, by their index among all.
func (c *compileResult) of(r *compile.Rule) iter.Seq2[int, wantedPolicy] {
	return func(yield func(int, wantedPolicy) bool) {
		for _, i := range r.Objects {
			if !yield(i, c.all()[i]) {
				return
			}
		}
		for _, i := range r.Mutating {
			if i += len(c.result.Objects); !yield(i, c.all()[i]) {
				return
			}
		}
	}
}
