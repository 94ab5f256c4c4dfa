package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProbeName is the name of the probe's configuration, and of the object that it asks
// about, which nobody makes.
const ProbeName = "kvap-webhook-probe"

// ProbePath is where the server answers the probe.
const ProbePath = "/probe"

// Probe has the API server ask the webhook about Params of one name, and go on where
// it does not answer. The answer is a warning with the name. It is a mutating webhook:
// these are asked before anything validates, and so refuses.
func Probe(o Options) *admissionregistrationv1.MutatingWebhookConfiguration {
	ignore, seconds, exact := admissionregistrationv1.Ignore, int32(5), admissionregistrationv1.Exact
	none, never, scope := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.NeverReinvocationPolicy, admissionregistrationv1.NamespacedScope
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ProbeName},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "probe.webhook.kvap.dev", ClientConfig: clientOf(o, ProbePath),
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"kvap.dev"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"params"}, Scope: &scope,
				},
			}},
			FailurePolicy: &ignore, MatchPolicy: &exact, TimeoutSeconds: &seconds, SideEffects: &none, ReinvocationPolicy: &never,
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, AdmissionReviewVersions: []string{"v1"},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "kvap.dev/probe", Expression: "request.name == '" + ProbeName + "'"}},
		}},
	}
}
