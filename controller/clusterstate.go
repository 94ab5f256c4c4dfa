package controller

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/vap"
)

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
func (l clusterState) all() iter.Seq[client.Object] {
	return func(yield func(client.Object) bool) {
		for _, some := range []map[string]client.Object{l.policies, l.bindings} {
			for _, o := range some {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// taken are the names of what somebody else made, in order.
func (l clusterState) taken() []string {
	out := map[string]bool{}
	for o := range l.all() {
		if !isOurs(o) {
			out[o.GetName()] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// isOurs tells of an object that the controller made: it has applied fields of it.
// The label alone is not proof, for anybody may write it; but what carries another
// tool's label has been given away.
func isOurs(o metav1.Object) bool {
	label, labelled := o.GetLabels()[vap.ManagedByLabel]
	if labelled && label != Manager {
		return false
	}
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == Manager && f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == ""
	})
}

// versions are texts that differ whenever what the controller made and the API server
// judges by differs, by kind and name. A status is not part of them.
func (l clusterState) versions() map[string]string {
	out := map[string]string{}
	for o := range l.all() {
		if isOurs(o) && !isCanary(o.GetName()) {
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
