package interp

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// isOwn tells that a request is for what kvap's controller writes to keep policies in
// force, or for the deletion of a policy of kvap.dev. Kyverno judges it, kvap by no rule:
// one on every kind would keep the controller from working, and itself from being deleted.
func (a *preparedRequest) isOwn() bool {
	group, resource := digText(a.request.Admission, "resource", "group"), digText(a.request.Admission, "resource", "resource")
	name, subresource := digText(a.request.Admission, "name"), digText(a.request.Admission, "subResource")
	if subresource != "" && !(group == "kvap.dev" && subresource == "status") {
		return false
	}
	switch group {
	case "kvap.dev":
		return slices.Contains([]string{"generaterequests", "params", "policytranslations"}, resource) ||
			a.operation == "DELETE" && slices.Contains([]string{"clusterpolicies", "migrations", "policies"}, resource)
	case "coordination.k8s.io":
		return resource == "leases" && name == "kvap-controller.kvap.dev"
	case "admissionregistration.k8s.io":
		return slices.Contains([]string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, resource) &&
			isConfiguration(name)
	}
	return false
}

// isConfiguration tells that a name is of a configuration of kvap's webhook: of the first, of one
// of the eight others, of that about policies, or of the probe.
func isConfiguration(name string) bool {
	rest, ok := strings.CutPrefix(name, "kvap-webhook")
	return ok && (rest == "" || rest == "-policies" || rest == "-probe" || len(rest) == 2 && rest[0] == '-' && '1' <= rest[1] && rest[1] <= '8')
}

// deletesSource tells that a request is for the deletion of a policy of Kyverno's, which
// rules that name the kind judge and those with a wildcard do not.
func (a *preparedRequest) deletesSource() bool {
	if a.operation != "DELETE" || digText(a.request.Admission, "subResource") != "" {
		return false
	}
	group, resource := digText(a.request.Admission, "resource", "group"), digText(a.request.Admission, "resource", "resource")
	return slices.Contains([]string{
		"kyverno.io/clusterpolicies", "kyverno.io/policies",
		"policies.kyverno.io/generatingpolicies", "policies.kyverno.io/namespacedgeneratingpolicies",
		"policies.kyverno.io/imagevalidatingpolicies", "policies.kyverno.io/namespacedimagevalidatingpolicies",
		"policies.kyverno.io/mutatingpolicies", "policies.kyverno.io/namespacedmutatingpolicies",
		"policies.kyverno.io/namespacedvalidatingpolicies", "policies.kyverno.io/validatingpolicies",
	}, group+"/"+resource)
}

// spares tells that a rule does not judge a request that it matches.
func (a *preparedRequest) spares(r *policy.Rule) bool {
	return a.isOwn() || a.deletesSource() && !namesKind(r.Match, a.kind)
}

// namesKind tells that some filter has a kind without a wildcard.
func namesKind(b *policy.MatchBlock, k resourceKind) bool {
	return b != nil && slices.ContainsFunc(b.Filters(), func(f *policy.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(text policy.Text) bool {
			selector, ok := parseKind(text.Value)
			return ok && !strings.ContainsAny(selector.kind, "*?") && selector.matches(k)
		})
	})
}

// sparesByConstraints is spares for a ValidatingPolicy.
func (a *preparedRequest) sparesByConstraints(m *policy.MatchConstraints) bool {
	group, resource := digText(a.request.Admission, "resource", "group"), digText(a.request.Admission, "resource", "resource")
	return a.isOwn() || a.deletesSource() && m != nil && !slices.ContainsFunc(m.Rules, func(r policy.ResourceRule) bool {
		return (slices.Contains(r.Groups, "*") || slices.Contains(r.Groups, group)) && slices.Contains(r.Resources, resource)
	})
}
