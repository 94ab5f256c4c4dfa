package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// probeName is the name of the probe's configurations.
const probeName = "kvap-webhook-probe"

// ProbePath is where the server answers the probe.
const ProbePath = "/probe"

// Probe has the API server ask the webhook about Params of a name, and go on where it does
// not answer. The answer is a warning with the name. Either configuration alone shows that
// it asks by it: the mutating one before anything validates, and so refuses, and the
// validating one though another webhook refuses.
func Probe(o Options, name string) Configurations {
	ignore, seconds, exact := admissionregistrationv1.Ignore, int32(5), admissionregistrationv1.Exact
	none, scope := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.NamespacedScope
	meta := metav1.ObjectMeta{Name: probeName}
	probe := admissionregistrationv1.ValidatingWebhook{
		Name: "probe.webhook.kvap.dev", ClientConfig: clientOf(o, ProbePath),
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{"kvap.dev"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"params"}, Scope: &scope,
			},
		}},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "kvap.dev/probe", Expression: "request.name == '" + name + "'"}},
		FailurePolicy:   &ignore, MatchPolicy: &exact, TimeoutSeconds: &seconds, SideEffects: &none,
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, AdmissionReviewVersions: []string{"v1"},
	}
	return Configurations{
		Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{probe},
		},
		Mutating: &admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: meta,
			Webhooks:   []admissionregistrationv1.MutatingWebhook{mutating(probe, admissionregistrationv1.NeverReinvocationPolicy)},
		},
	}
}
