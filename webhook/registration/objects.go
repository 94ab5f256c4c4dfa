package registration

import (
	"cmp"
	"maps"
	"slices"

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
}

// Name is that of both objects.
const Name = "kvap-webhook"

// Configurations are the configurations; nil where there is nothing to serve.
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

// A routeGroup is the policies of a route.
type routeGroup struct {
	Route
	policies []*policy.Policy
	targets  []ruleTarget
}

// Configure makes the configurations for policies, each with only the rules that
// remain.
func Configure(policies []*policy.Policy, kinds Kinds, o Options) (Configurations, []Problem) {
	var out Configurations
	var problems []Problem
	meta := metav1.ObjectMeta{Name: Name}
	validate, found := groups(policies, Validate, kinds)
	problems = append(problems, found...)
	if len(validate) > 0 {
		out.Validating = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
		for _, g := range validate {
			out.Validating.Webhooks = append(out.Validating.Webhooks, g.webhook(o))
		}
	}
	mutate, found := groups(policies, Mutate, kinds)
	problems = append(problems, found...)
	if len(mutate) > 0 {
		out.Mutating = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
		for _, g := range mutate {
			again := admissionregistrationv1.IfNeededReinvocationPolicy
			if g.Once {
				again = admissionregistrationv1.NeverReinvocationPolicy
			}
			out.Mutating.Webhooks = append(out.Mutating.Webhooks, mutating(g.webhook(o), again))
		}
	}
	return out, problems
}

// groups are the routes of a verb that have something to judge, by name.
func groups(policies []*policy.Policy, verb Verb, kinds Kinds) ([]*routeGroup, []Problem) {
	var problems []Problem
	byPath := map[string]*routeGroup{}
	for _, p := range policies {
		if verb == Validate && !Validates(p) || verb == Mutate && !Mutates(p) {
			continue
		}
		found, missing := ruleTargets(p, verb, kinds)
		for _, kind := range missing {
			problems = append(problems, Problem{p, "the cluster serves no kind " + kind + "; it is left out until it does", false, true})
		}
		if p.FailurePolicy == policy.Fail {
			if why := lockup(found); why != "" {
				problems = append(problems, Problem{p, "the policy is left out: " + why + "; set its failurePolicy to Ignore", true, false})
				continue
			}
			if why := risk(found); why != "" {
				problems = append(problems, Problem{p, why, false, false})
			}
		}
		if len(found) == 0 {
			continue
		}
		if why := unacceptable(p.MatchConditions); why != "" {
			problems = append(problems, Problem{p, "the policy is left out: " + why, true, false})
			continue
		}
		place := RouteOf(p, verb)
		g := byPath[place.Path()]
		if g == nil {
			g = &routeGroup{Route: place}
			byPath[place.Path()] = g
		}
		g.policies, g.targets = append(g.policies, p), append(g.targets, found...)
	}
	list := slices.Collect(maps.Values(byPath))
	slices.SortFunc(list, func(a, b *routeGroup) int { return cmp.Compare(a.Name(), b.Name()) })
	return list, problems
}

// webhook is the entry of a route, in the form of what validates.
func (g *routeGroup) webhook(o Options) admissionregistrationv1.ValidatingWebhook {
	failure, timeout, equivalent := g.failure(), g.timeout(), admissionregistrationv1.Equivalent
	effects := admissionregistrationv1.SideEffectClassNone
	if g.Verb == Validate && slices.ContainsFunc(g.policies, func(p *policy.Policy) bool { return p.Admission && p.StartsWork() }) {
		effects = admissionregistrationv1.SideEffectClassNoneOnDryRun
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name: g.Name(), ClientConfig: clientOf(o, g.Path()), Rules: rules(g.targets),
		FailurePolicy: &failure, MatchPolicy: &equivalent, TimeoutSeconds: &timeout, SideEffects: &effects,
		NamespaceSelector: g.selector(o), ObjectSelector: &metav1.LabelSelector{},
		AdmissionReviewVersions: []string{"v1"}, MatchConditions: g.conditions(o),
	}
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

func (g *routeGroup) failure() admissionregistrationv1.FailurePolicyType {
	if g.FailurePolicy == policy.Ignore {
		return admissionregistrationv1.Ignore
	}
	return admissionregistrationv1.Fail
}

// defaultTimeout is for policies that name none, in seconds.
const defaultTimeout = 10

// timeout is the longest that one of the policies wants.
func (g *routeGroup) timeout() int32 {
	longest := int32(0)
	for _, p := range g.policies {
		longest = max(longest, timeoutOf(p))
	}
	return longest
}

func timeoutOf(p *policy.Policy) int32 {
	spec := p.Source.Get("spec")
	for _, n := range []*policy.Node{spec.Get("webhookConfiguration").Get("timeoutSeconds"), spec.Get("webhookTimeoutSeconds")} {
		if n != nil && n.Kind == policy.Int && 1 <= n.Int && n.Int <= 30 {
			return int32(n.Int)
		}
	}
	return defaultTimeout
}

// selector leaves the excluded namespaces out, and what the route is not about.
func (g *routeGroup) selector(o Options) *metav1.LabelSelector {
	excluded := append(always(), o.ExcludeNamespaces...)
	if o.Service != nil {
		excluded = append(excluded, o.Service.Namespace)
	}
	slices.Sort(excluded)
	out := &metav1.LabelSelector{}
	if g.Namespaces != nil {
		out = g.Namespaces.DeepCopy()
	}
	out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: nameLabel, Operator: metav1.LabelSelectorOpNotIn, Values: slices.Compact(excluded),
	})
	return out
}

func (g *routeGroup) conditions(o Options) []admissionregistrationv1.MatchCondition {
	var own *policy.Policy
	if g.Own != "" && len(g.policies) == 1 { // else of two API groups, with conditions that may differ
		own = g.policies[0]
	}
	return conditions(own, g.targets, o.ExcludeGroups)
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
