package controller

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
)

// canaryKey is the annotation by which the canary that mutates is seen.
const canaryKey = "kvap.dev/canary"

// mutates tells of a cluster with policies of the controller's that mutate, or that has had
// some: the canary that it then has shows that they are gone.
func (l clusterState) mutates() bool {
	for _, p := range l.policies {
		if mutates(p) && isOurs(p) {
			return true
		}
	}
	return false
}

// canaryObjects are a policy that finds fault with Params of one name, and its
// binding. Both name it, so that both must be known for a warning; and so must the kind
// of the policy's params, if it has one.
//
// Where there are policies that mutate, others, of which an API server learns in the same
// way, have such Params annotated, and the fault is the annotation: who validates comes after
// who mutates.
func canaryObjects(word string, params *admissionregistrationv1.ParamKind, mutations bool) []client.Object {
	named := func() *admissionregistrationv1.MatchResources {
		scope, match := admissionregistrationv1.NamespacedScope, admissionregistrationv1.Equivalent
		return &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: &match,
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{word},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{v1alpha1.Group}, APIVersions: []string{v1alpha1.Version}, Resources: []string{"params"}, Scope: &scope,
					},
				},
			}},
		}
	}
	ignore := admissionregistrationv1.Ignore
	fine := "false"
	if mutations {
		fine = fmt.Sprintf("object.metadata.?annotations[?'%s'].orValue('') != '%s'", canaryKey, word)
	}
	p := &nativePolicy{Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &ignore, MatchConstraints: named(), ParamKind: params,
		Validations: []admissionregistrationv1.Validation{{Expression: fine, Message: word + " is in effect"}},
	}}
	b := &nativeBinding{Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: canaryName, MatchResources: named(),
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
	}}
	out := []client.Object{p, b}
	if mutations {
		out = append(out,
			&mutatingPolicy{Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				FailurePolicy: &ignore, MatchConstraints: named(), ParamKind: params, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeJSONPatch,
					JSONPatch: &admissionregistrationv1.JSONPatch{
						Expression: fmt.Sprintf("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'%s': '%s'}}]", canaryKey, word),
					},
				}},
			}},
			&mutatingBinding{Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{
				PolicyName: canaryName, MatchResources: named(),
			}},
		)
	}
	for _, o := range out {
		o.GetObjectKind().SetGroupVersionKind(gvkOf(o))
		o.SetName(canaryName)
		o.SetLabels(ownLabels(nil))
	}
	return out
}
