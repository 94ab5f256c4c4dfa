package diff

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/verify"
)

// subjectOf is what requests about groups of a side are made from.
func subjectOf(s *Side, groups []*group) verify.Subject {
	out := verify.Subject{Exceptions: s.Exceptions}
	for _, g := range groups {
		out.Policies = append(out.Policies, g.policies...)
		for _, n := range g.natives {
			out.Policies = append(out.Policies, readAsPolicy("ValidatingPolicy", n.Name, n.Spec)...)
			for _, b := range s.Deployed.BindingsOf(n.Name) {
				out.Policies = append(out.Policies, readAsPolicy("ValidatingPolicy", n.Name, narrowed(n.Spec, b.Spec.MatchResources))...)
			}
			if n.Spec.ParamKind != nil {
				out.Data = s.Params
			}
		}
		for _, m := range g.mutations.Policies {
			out.Policies = append(out.Policies, readAsPolicy("MutatingPolicy", m.Name, m.Spec)...)
		}
	}
	return out
}

// narrowed is what a binding adds to the constraints of its policy; zero where it adds nothing.
func narrowed(spec admissionregistrationv1.ValidatingAdmissionPolicySpec, by *admissionregistrationv1.MatchResources) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	if by == nil {
		return admissionregistrationv1.ValidatingAdmissionPolicySpec{}
	}
	constraints := *by
	if len(constraints.ResourceRules) == 0 && spec.MatchConstraints != nil {
		constraints.ResourceRules = spec.MatchConstraints.ResourceRules
	}
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: &constraints, Validations: []admissionregistrationv1.Validation{{Expression: "true"}}}
}

// readAsPolicy reads the spec of a native policy as that of Kyverno's kind, which has the same form,
// for what it is about: nothing is judged by it.
func readAsPolicy(kind, name string, spec any) []*policy.Policy {
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "policies.kyverno.io/v1", "kind": kind, "metadata": metav1.ObjectMeta{Name: name}, "spec": spec,
	})
	if err != nil {
		return nil
	}
	var document map[string]any
	if yaml.Unmarshal(data, &document) != nil {
		return nil
	}
	if of, ok := document["spec"].(map[string]any); ok {
		delete(of, "paramKind")
		delete(of, "reinvocationPolicy")
	}
	if data, err = yaml.Marshal(document); err != nil {
		return nil
	}
	file, _ := policy.Parse(name, data)
	return slices.DeleteFunc(file.Policies, func(p *policy.Policy) bool { return p.Validating == nil && p.Mutating == nil })
}
