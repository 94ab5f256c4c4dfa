package registration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/policy"
)

// Options say how the API server reaches the webhook, and what it keeps away from
// it.
type Options struct {
	// Service is where the webhook is in the cluster; its namespace is never judged.
	Service *admissionregistrationv1.ServiceReference
	// URL is where it is otherwise, without a path.
	URL string
	// Bundle are the authorities that sign its certificate, as PEM. It may be empty
	// where something else fills it in.
	Bundle []byte
	// ExcludeNamespaces are never judged, beside kube-system, kube-node-lease and the
	// webhook's own.
	ExcludeNamespaces []string
	// ExcludeGroups are groups whose users no rule is about.
	ExcludeGroups []string
	// ConditionsOf finds what was found of a policy's match conditions before; nil reads them.
	ConditionsOf func(*policy.Policy) Conditions
	// Taken are names of configurations that Shards must do without.
	Taken []string
}

func (o Options) conditionsOf(p *policy.Policy) Conditions {
	if o.ConditionsOf != nil {
		return o.ConditionsOf(p)
	}
	return ConditionsOf(p)
}

// Configurations are one configuration of each kind; nil where there is nothing to serve.
type Configurations struct {
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
}

// A Problem is what the configurations leave out, or what they risk.
type Problem struct {
	Policy  *policy.Policy
	Message string
	// Refused tells that the policy is left out.
	Refused bool
	// Missing tells of a kind that the cluster does not serve, and may one day.
	Missing bool
}

// Configure makes the configurations for policies, each with only the rules that remain: all
// entries in one object of each kind, of no name, which an API server may not take.
func Configure(policies []*policy.Policy, kinds Kinds, o Options) (Configurations, []Problem) {
	entries, problems := entriesOf(policies, kinds, o)
	return configurationsOf("", entries), problems
}

// configurationsOf are configurations of a name, with these entries.
func configurationsOf(name string, entries []entry) (out Configurations) {
	meta := metav1.ObjectMeta{Name: name}
	for _, e := range entries {
		if e.Verb == Validate {
			if out.Validating == nil {
				out.Validating = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
			}
			out.Validating.Webhooks = append(out.Validating.Webhooks, e.webhook)
			continue
		}
		if out.Mutating == nil {
			out.Mutating = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
		}
		again := admissionregistrationv1.IfNeededReinvocationPolicy
		if e.Once {
			again = admissionregistrationv1.NeverReinvocationPolicy
		}
		out.Mutating.Webhooks = append(out.Mutating.Webhooks, mutating(e.webhook, again))
	}
	return out
}

// mutating is an entry in the form of what mutates.
func mutating(w admissionregistrationv1.ValidatingWebhook, again admissionregistrationv1.ReinvocationPolicyType) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, MatchPolicy: w.MatchPolicy,
		NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector, SideEffects: w.SideEffects, TimeoutSeconds: w.TimeoutSeconds,
		AdmissionReviewVersions: w.AdmissionReviewVersions, MatchConditions: w.MatchConditions, ReinvocationPolicy: &again,
	}
}

// Webhooks are the entries of both, in the form of what validates.
func (c Configurations) Webhooks() (out []admissionregistrationv1.ValidatingWebhook) {
	if c.Validating != nil {
		out = append(out, c.Validating.Webhooks...)
	}
	if c.Mutating != nil {
		for _, w := range c.Mutating.Webhooks {
			out = append(out, admissionregistrationv1.ValidatingWebhook{
				Name: w.Name, ClientConfig: w.ClientConfig, Rules: w.Rules, FailurePolicy: w.FailurePolicy, NamespaceSelector: w.NamespaceSelector,
			})
		}
	}
	return out
}

// clientOf is the way to a path of the server.
func clientOf(o Options, path string) admissionregistrationv1.WebhookClientConfig {
	out := admissionregistrationv1.WebhookClientConfig{CABundle: o.Bundle}
	if o.Service == nil {
		url := o.URL + path
		out.URL = &url
		return out
	}
	out.Service = o.Service.DeepCopy()
	out.Service.Path = &path
	if out.Service.Port == nil {
		port := int32(443)
		out.Service.Port = &port
	}
	return out
}

// defaultTimeout is for policies that name none, in seconds.
const defaultTimeout = 10

func timeoutOf(p *policy.Policy) int32 {
	spec := p.Source.Get("spec")
	for _, n := range []*policy.Node{spec.Get("webhookConfiguration").Get("timeoutSeconds"), spec.Get("webhookTimeoutSeconds")} {
		if n != nil && n.Kind == policy.Int && 1 <= n.Int && n.Int <= 30 {
			return int32(n.Int)
		}
	}
	return defaultTimeout
}

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
