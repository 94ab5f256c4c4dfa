package record

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name is that of the configuration.
const Name = "kvap-record"

// MaxTimeout is how many seconds an API server may be made to wait at most.
const MaxTimeout = 5

// Sending says what an API server sends, and where to.
type Sending struct {
	Client  admissionregistrationv1.WebhookClientConfig
	Rules   []admissionregistrationv1.RuleWithOperations
	Seconds int32 // that the API server waits; 1 where 0
	// ExcludeNamespaces and ExcludeGroups are whose requests are not sent.
	ExcludeNamespaces, ExcludeGroups []string
}

// Configuration has an API server send requests. It goes on without an answer: the
// failure policy is Ignore, whatever happens here.
func Configuration(s Sending) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	if s.Seconds == 0 {
		s.Seconds = 1
	}
	if s.Seconds < 1 || s.Seconds > MaxTimeout {
		return nil, fmt.Errorf("a timeout of %d s is none that recording may cost; want 1 to %d", s.Seconds, MaxTimeout)
	}
	ignore, none, equivalent := admissionregistrationv1.Ignore, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent
	hook := admissionregistrationv1.ValidatingWebhook{
		Name: "record.kvap.dev", ClientConfig: s.Client, Rules: distinct(s.Rules), FailurePolicy: &ignore, MatchPolicy: &equivalent,
		SideEffects: &none, TimeoutSeconds: &s.Seconds, AdmissionReviewVersions: []string{"v1"},
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
	}
	if len(s.ExcludeNamespaces) > 0 {
		hook.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: slices.Clone(s.ExcludeNamespaces)},
		}
	}
	hook.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name:       "not-machinery",
		Expression: "!(request.resource.group in ['coordination.k8s.io', 'events.k8s.io', 'authentication.k8s.io', 'authorization.k8s.io'] || request.resource.group == '' && request.resource.resource == 'events')",
	}}
	if len(s.ExcludeGroups) > 0 {
		var quoted []string
		for _, g := range s.ExcludeGroups {
			quoted = append(quoted, strconv.Quote(g))
		}
		hook.MatchConditions = append(hook.MatchConditions, admissionregistrationv1.MatchCondition{
			Name: "not-of-groups", Expression: "!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in [" + strings.Join(quoted, ", ") + "])",
		})
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "kvap-cli"}},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{hook},
	}, nil
}

// distinct leaves out rules that are there already.
func distinct(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.RuleWithOperations {
	var out []admissionregistrationv1.RuleWithOperations
	for _, r := range rules {
		if !slices.ContainsFunc(out, func(have admissionregistrationv1.RuleWithOperations) bool { return reflect.DeepEqual(have, r) }) {
			out = append(out, r)
		}
	}
	return out
}
