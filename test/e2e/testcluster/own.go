//go:build e2e

package testcluster

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
)

// ownObjects are one object of each kind that the controller writes.
func ownObjects() []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	policy := v1alpha1.PolicyReference{Group: v1alpha1.Group, Kind: "ClusterPolicy", Name: "another"}
	return []client.Object{
		&v1alpha1.PolicyTranslation{ObjectMeta: meta("", "another"), Spec: v1alpha1.PolicyTranslationSpec{Source: policy}},
		&v1alpha1.Params{ObjectMeta: meta("default", "another"), Data: map[string]string{"a": "b"}},
		&v1alpha1.GenerateRequest{ObjectMeta: meta("default", "another"), Spec: v1alpha1.GenerateRequestSpec{
			Type: "Generate", Policy: policy, Rule: "r", Trigger: v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: "default"},
		}},
		&coordinationv1.Lease{ObjectMeta: meta("default", "kvap-controller.kvap.dev")},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta("", "kvap-webhook")},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("", "kvap-webhook")},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta("", "kvap-webhook-probe")},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta("", "another"), Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"CREATE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "true"}},
		}},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta("", "another"), Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "another", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn},
		}},
	}
}

// WriteOwn makes, changes and deletes an object of each kind that the controller writes.
// What is there already is changed and deleted as a trial only.
func WriteOwn(t *testing.T, c client.Client) {
	t.Helper()
	change := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"yes"}},"status":{"native":0,"webhook":0,"unsupported":0}}`))
	for _, o := range ownObjects() {
		var trial []client.DeleteOption
		try := func(verb string, write func() error) {
			t.Helper()
			if err := write(); err != nil {
				t.Errorf("%s %T %s: %v", verb, o, o.GetName(), err)
			}
		}
		try("making", func() error {
			err := c.Create(t.Context(), o)
			if apierrors.IsAlreadyExists(err) {
				trial = []client.DeleteOption{client.DryRunAll}
				return c.Get(t.Context(), client.ObjectKeyFromObject(o), o)
			}
			return err
		})
		try("changing", func() error { return c.Patch(t.Context(), o, change, client.DryRunAll) })
		switch o.(type) {
		case *v1alpha1.PolicyTranslation, *v1alpha1.GenerateRequest:
			try("changing the status of", func() error { return c.Status().Patch(t.Context(), o, change) })
		}
		try("deleting", func() error { return client.IgnoreNotFound(c.Delete(t.Context(), o, trial...)) })
	}
}
