package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PoliciesName is the name of the configuration by which API servers ask about policies.
const PoliciesName = "kvap-webhook-policies"

// PoliciesPath is where the server says what is wrong with a policy that is written.
const PoliciesPath = "/policies"

// Policies has API servers ask about policies of kvap.dev that are created or updated, and with
// kyverno about those of Kyverno's kinds too. They go on where nobody answers. What self writes,
// who is the program itself, is not asked about, nor are deletions and what is written below an
// object, as its status.
func Policies(o Options, self string, kyverno bool) *admissionregistrationv1.ValidatingWebhookConfiguration {
	kinds := [][]string{{"kvap.dev", "clusterpolicies", "namespacedvalidatingpolicies", "policies", "validatingpolicies"}}
	if kyverno {
		kinds = append(kinds,
			[]string{"kyverno.io", "cleanuppolicies", "clustercleanuppolicies", "clusterpolicies", "policies", "policyexceptions"},
			[]string{
				"policies.kyverno.io", "deletingpolicies", "generatingpolicies", "imagevalidatingpolicies", "mutatingpolicies",
				"namespaceddeletingpolicies", "namespacedgeneratingpolicies", "namespacedimagevalidatingpolicies", "namespacedmutatingpolicies",
				"namespacedvalidatingpolicies", "policyexceptions", "validatingpolicies",
			})
	}
	ignore, seconds, exact := admissionregistrationv1.Ignore, int32(5), admissionregistrationv1.Exact
	none, scope := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.AllScopes
	entry := admissionregistrationv1.ValidatingWebhook{
		Name: "policies.webhook.kvap.dev", ClientConfig: clientOf(o, PoliciesPath),
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "kvap.dev/not-own", Expression: "!(request.userInfo.username in " + textList([]string{self}) + ")",
		}},
		FailurePolicy: &ignore, MatchPolicy: &exact, TimeoutSeconds: &seconds, SideEffects: &none,
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, AdmissionReviewVersions: []string{"v1"},
	}
	for _, k := range kinds {
		entry.Rules = append(entry.Rules, admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: k[:1], APIVersions: []string{"*"}, Resources: k[1:], Scope: &scope},
		})
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: PoliciesName}, Webhooks: []admissionregistrationv1.ValidatingWebhook{entry},
	}
}
