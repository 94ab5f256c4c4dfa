package judge

import (
	"context"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/vap/apiserver"
)

// selecting are the deployed policies that are enforced in namespaces with some labels, as if all
// namespaces had them; nil where there are none. A policy or its binding selects.
func (d *Deployed) selecting(o apiserver.JudgeOptions) (*apiserver.Judge, error) {
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, p := range d.Policies {
		constraints, all := anywhere(p.Spec.MatchConstraints)
		before := len(bindings)
		for _, b := range d.BindingsOf(p.Name) {
			resources, some := anywhere(b.Spec.MatchResources)
			if !all && !some {
				continue
			}
			one := *b
			one.Spec.MatchResources = resources
			bindings = append(bindings, &one)
		}
		if len(bindings) > before {
			one := *p
			one.Spec.MatchConstraints = constraints
			policies = append(policies, &one)
		}
	}
	if len(policies) == 0 {
		return nil, nil
	}
	return apiserver.NewJudge(policies, bindings, o)
}

// anywhere is m without what it asks of the labels of a namespace, apart from the one that is made
// of the name, and whether it asks for any.
func anywhere(m *admissionregistrationv1.MatchResources) (out *admissionregistrationv1.MatchResources, asked bool) {
	if m == nil || m.NamespaceSelector == nil {
		return m, false
	}
	left := &metav1.LabelSelector{}
	for key, value := range m.NamespaceSelector.MatchLabels {
		if key == corev1.LabelMetadataName {
			left.MatchLabels = map[string]string{key: value}
		} else {
			asked = true
		}
	}
	left.MatchExpressions = slices.DeleteFunc(slices.Clone(m.NamespaceSelector.MatchExpressions), func(r metav1.LabelSelectorRequirement) bool {
		asked = asked || r.Key != corev1.LabelMetadataName
		return r.Key != corev1.LabelMetadataName
	})
	all := *m
	all.NamespaceSelector = left
	return &all, asked
}

// bound is a policy with one of its bindings.
type bound struct{ policy, binding string }

// undecided are the verdicts that labels decide which nobody knows, as they are where the
// namespace has them.
func (n nativeJudge) undecided(ctx context.Context, r *Request) (map[bound]apiserver.Verdict, error) {
	if n.selecting == nil {
		return nil, nil
	}
	verdicts, err := n.selecting.Review(ctx, r.native, nil)
	out := map[bound]apiserver.Verdict{}
	for _, v := range verdicts {
		out[bound{v.Policy, v.Binding}] = v
	}
	return out, err
}
