package vap

import (
	"slices"
	"strings"
)

// ownObjects are what kvap's controller writes to keep policies in force and to take them
// out of force, and the deletion of policies of kvap.dev. No policy judges them: a policy on
// every kind would keep its own controller from working, and nobody could delete it. Native
// policies and their bindings are missing here, because the API server judges them by none.
func ownObjects() []ResourceRule {
	return []ResourceRule{
		{
			Groups: []string{"kvap.dev"}, Versions: []string{"*"}, Operations: []string{"*"},
			Resources: []string{"generaterequests", "generaterequests/status", "params", "policytranslations", "policytranslations/status"},
		},
		{
			Groups: []string{"kvap.dev"}, Versions: []string{"*"}, Operations: []string{"DELETE"},
			Resources: []string{"clusterpolicies", "migrations", "namespacedvalidatingpolicies", "policies", "validatingpolicies"},
		},
		{
			Groups: []string{"coordination.k8s.io"}, Versions: []string{"*"}, Operations: []string{"*"},
			Resources: []string{"leases"}, Names: []string{"kvap-controller.kvap.dev"},
		},
		{
			Groups: []string{"admissionregistration.k8s.io"}, Versions: []string{"*"}, Operations: []string{"*"},
			Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
			Names: []string{
				"kvap-webhook", "kvap-webhook-1", "kvap-webhook-2", "kvap-webhook-3", "kvap-webhook-4", "kvap-webhook-5",
				"kvap-webhook-6", "kvap-webhook-7", "kvap-webhook-8", "kvap-webhook-policies", "kvap-webhook-probe",
			},
		},
	}
}

// sourcePolicies is the deletion of the policies that kvap's controller reads, beside its
// own. A rule with a wildcard does not judge it, so that who made a policy that
// denies too much can delete it. A rule that names such a kind does.
func sourcePolicies() []ResourceRule {
	return []ResourceRule{
		{
			Groups: []string{"kyverno.io"}, Versions: []string{"*"}, Operations: []string{"DELETE"},
			Resources: []string{"clusterpolicies", "policies"},
		},
		{
			Groups: []string{"policies.kyverno.io"}, Versions: []string{"*"}, Operations: []string{"DELETE"},
			Resources: []string{
				"generatingpolicies", "imagevalidatingpolicies", "mutatingpolicies", "namespacedgeneratingpolicies", "namespacedimagevalidatingpolicies",
				"namespacedmutatingpolicies", "namespacedvalidatingpolicies", "validatingpolicies",
			},
		},
	}
}

// OwnObjects are those of kvap's own objects and sources that rules reach. The policy that is
// emitted leaves them out.
func OwnObjects(rules []ResourceRule) []ResourceRule {
	out := ownObjects()
	for _, sources := range sourcePolicies() {
		sources.Resources = slices.DeleteFunc(sources.Resources, func(resource string) bool {
			return slices.ContainsFunc(rules, func(r ResourceRule) bool { return r.names(sources.Groups[0], resource) })
		})
		out = append(out, sources)
	}
	return slices.DeleteFunc(out, func(own ResourceRule) bool {
		return !slices.ContainsFunc(rules, func(r ResourceRule) bool { return r.reaches(own) })
	})
}

// names tells that the rule is about a resource by its name.
func (r ResourceRule) names(group, resource string) bool {
	return (slices.Contains(r.Groups, "*") || slices.Contains(r.Groups, group)) && slices.Contains(r.Resources, resource)
}

// withoutOwn is the constraints without what nobody judges of kvap's own.
func (c Constraints) withoutOwn() Constraints {
	c.Exclude = append(slices.Clone(c.Exclude), OwnObjects(c.Rules)...)
	return c
}

// reaches tells that a request may be among those of both rules, of which the other names
// its groups and resources without wildcards.
func (r ResourceRule) reaches(other ResourceRule) bool {
	anyOf := func(list, others []string) bool {
		return slices.Contains(list, "*") || slices.ContainsFunc(others, func(s string) bool { return s == "*" || slices.Contains(list, s) })
	}
	return anyOf(r.Operations, other.Operations) && anyOf(r.Groups, other.Groups) && slices.ContainsFunc(r.Resources, func(pattern string) bool {
		return slices.ContainsFunc(other.Resources, func(resource string) bool { return takesIn(pattern, resource) })
	})
}

// takesIn tells that a pattern of a resource rule takes a resource in: * is all that are
// below none, params/* is params and what is below it.
func takesIn(pattern, resource string) bool {
	name, sub, _ := strings.Cut(pattern, "/")
	itsName, itsSub, _ := strings.Cut(resource, "/")
	return (name == "*" || name == itsName) && (sub == "*" || sub == itsSub)
}
