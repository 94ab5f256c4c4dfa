package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/vap"
)

// Live is what of native policies is in the cluster.
type live struct {
	policies map[string]*nativePolicy // all there are
	bindings map[string]*nativeBinding
}

// readLive reads the native policies of the cluster. They are not to be changed.
func readLive(ctx context.Context, c client.Reader) (live, error) {
	l := live{map[string]*nativePolicy{}, map[string]*nativeBinding{}}
	var policies admissionregistrationv1.ValidatingAdmissionPolicyList
	if err := c.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return l, err
	}
	var bindings admissionregistrationv1.ValidatingAdmissionPolicyBindingList
	if err := c.List(ctx, &bindings, client.UnsafeDisableDeepCopy); err != nil {
		return l, err
	}
	for i := range policies.Items {
		l.policies[policies.Items[i].Name] = &policies.Items[i]
	}
	for i := range bindings.Items {
		l.bindings[bindings.Items[i].Name] = &bindings.Items[i]
	}
	return l, nil
}

// taken are the names of what somebody else made, in order.
func (l live) taken() []string {
	var out []string
	for name, p := range l.policies {
		if !isOurs(p) {
			out = append(out, name)
		}
	}
	for name, b := range l.bindings {
		if !isOurs(b) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isOurs tells of an object that the controller made: it has applied fields of it.
// The label alone is no proof, for anybody may write it; but what carries another
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
// judges by differs, by kind and name. A status is no part of them.
func (l live) versions() map[string]string {
	out := map[string]string{}
	for name, p := range l.policies {
		if isOurs(p) && !isCanary(name) {
			out[policyKey(name)] = fmt.Sprintf("%s/%d", p.UID, p.Generation)
		}
	}
	for name, b := range l.bindings {
		if isOurs(b) && !isCanary(name) {
			out[bindingKey(name)] = fmt.Sprintf("%s/%d", b.UID, b.Generation)
		}
	}
	return out
}

func policyKey(name string) string  { return "p/" + name }
func bindingKey(name string) string { return "b/" + name }

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
