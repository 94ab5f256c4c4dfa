package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
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

// sameObject tells that there is nothing to write. Labels, annotations and owners of others are
// theirs.
func sameObject(want, have client.Object) bool {
	lacks := func(r metav1.OwnerReference) bool { return !slices.Contains(have.GetOwnerReferences(), r) }
	return contains(have.GetLabels(), want.GetLabels()) && contains(have.GetAnnotations(), want.GetAnnotations()) &&
		!slices.ContainsFunc(want.GetOwnerReferences(), lacks) && equality.Semantic.DeepEqual(specOf(want), specOf(have))
}

// paramRefOf is what a binding says of params; nil for nothing.
func paramRefOf(o client.Object) *admissionregistrationv1.ParamRef {
	return field[*admissionregistrationv1.ParamRef](o, "ParamRef")
}

// A compileResult is what became of the policies: step 2 of a pass.
type compileResult struct {
	result  compile.Result
	natives []*wantedPolicy // of the result, once they were asked for
	rules   map[*policy.Policy][]*compile.Rule
	schemas *schema.Set
}

// all are the native policies of the compilation: first what validates, then what mutates.
func (c *compileResult) all() []*wantedPolicy {
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

// of are the native policies that a rule is in.
func (c *compileResult) of(r *compile.Rule) (out []*wantedPolicy) {
	for _, i := range r.Objects {
		out = append(out, c.all()[i])
	}
	for _, i := range r.Mutating {
		out = append(out, c.all()[len(c.result.Objects)+i])
	}
	return out
}

// clusterState is what of native policies is in the cluster, by key.
type clusterState struct {
	policies map[string]client.Object // all there are
	bindings map[string]client.Object
}

// readState reads the native policies of the cluster, also those that mutate where it serves
// these. They are not to be changed.
func readState(ctx context.Context, c client.Reader, mutations bool) (clusterState, error) {
	l := clusterState{map[string]client.Object{}, map[string]client.Object{}}
	lists := []client.ObjectList{
		&admissionregistrationv1.ValidatingAdmissionPolicyList{}, &admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
	}
	if mutations {
		lists = append(lists, &admissionregistrationv1.MutatingAdmissionPolicyList{}, &admissionregistrationv1.MutatingAdmissionPolicyBindingList{})
	}
	for _, list := range lists {
		if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return clusterState{}, err
		}
		if err := meta.EachListItem(list, func(o runtime.Object) error {
			if one, ok := o.(client.Object); ok && isBinding(one) {
				l.bindings[keyOf(one)] = one
			} else if ok {
				l.policies[keyOf(one)] = one
			}
			return nil
		}); err != nil {
			return clusterState{}, err
		}
	}
	return l, nil
}

// like is the object of a kind and name that is there; nil for none.
func (l clusterState) like(o client.Object) client.Object {
	if isBinding(o) {
		return l.bindings[keyOf(o)]
	}
	return l.policies[keyOf(o)]
}

// all are the objects, policies and bindings.
func (l clusterState) all() []client.Object {
	return slices.AppendSeq(slices.Collect(maps.Values(l.policies)), maps.Values(l.bindings))
}

// taken are the names of what somebody else made, in order.
func (l clusterState) taken() []string {
	out := map[string]bool{}
	for _, o := range l.all() {
		if !isOurs(o) {
			out[o.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// isOurs tells of an object that the controller made: it has applied fields of it, or it is a
// copy of one that it made. The label alone is not proof, for anybody may write it; but what carries another
// tool's label has been given away.
func isOurs(o metav1.Object) bool {
	label, labelled := o.GetLabels()[vap.ManagedByLabel]
	if labelled && label != Manager {
		return false
	}
	return isCopy(o) || slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
	})
}

// Made reports whether the controller made an object, which its label alone does not prove.
func Made(o metav1.Object) bool { return isOurs(o) }

// versions are texts that differ whenever what the controller made and the API server
// judges by differs, by kind and name. A status is not part of them.
func (l clusterState) versions() map[string]string {
	out := map[string]string{}
	for _, o := range l.all() {
		if isOurs(o) && o.GetName() != canaryName {
			out[writtenKey(o)] = fmt.Sprintf("%s/%d", o.GetUID(), o.GetGeneration())
		}
	}
	return out
}

// writtenKey is an object among all that are written.
func writtenKey(o client.Object) string {
	if isBinding(o) {
		return "b/" + keyOf(o)
	}
	return "p/" + keyOf(o)
}

// stateOf is all versions in one text.
func stateOf(versions map[string]string) string {
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(versions)) {
		fmt.Fprintf(&out, "%s/%s\n", key, versions[key])
	}
	return out.String()
}

// trimManagedFields keeps of an object who has applied it, and not what: the cache
// needs no more.
func trimManagedFields(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		fields := slices.Clone(m.GetManagedFields())
		for i := range fields {
			fields[i].FieldsV1 = nil
		}
		m.SetManagedFields(fields)
	}
	return o, nil
}

// maxName is the length of a DNS-1123 subdomain.
const maxName = 253

// shortName is name, with a hash in place of the end where it is too long.
func shortName(name string) string {
	if len(name) <= maxName {
		return name
	}
	h := "-" + hashOf(name)
	return strings.TrimRight(name[:maxName-len(h)], "-.") + h
}

// hashOf is a few digits that tell a text from others.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
