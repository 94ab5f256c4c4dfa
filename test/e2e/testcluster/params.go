//go:build e2e

package testcluster

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KeepParams makes a policy about nothing and a binding that uses ConfigMaps, which stay. When
// the last such binding goes away, an API server up to 1.36 stops following ConfigMaps for
// good: later bindings find no params (kubernetes#130887). So tests that share a server make
// it before all others.
func KeepParams(ctx context.Context, c client.Client) error {
	nothing := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"nobody.kvap.dev"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}},
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "keeps-params"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			ParamKind:        &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: nothing}}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "true"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ParamRef:          &admissionregistrationv1.ParamRef{Name: "nothing", Namespace: "default", ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction)},
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if err := c.Create(ctx, policy); err != nil {
		return err
	}
	return c.Create(ctx, binding)
}
