package check

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/schema"
)

// kindsOf are the kinds of the objects that a policy is asked about, sorted: all
// that its rules match, with wildcards and subresources, less what is excluded. Of
// published kinds those count that a rule names.
func kindsOf(m *admissionregistrationv1.MatchResources, set *schema.Set) []schema.GVK {
	if m == nil {
		return nil
	}
	var out []schema.GVK
	for _, r := range append(set.Resources("*", "*", "*"), namedIn(m.ResourceRules, set)...) {
		bodies := append([]schema.Subresource{{GVK: r.GVK}}, r.Subresources...)
		for _, b := range bodies {
			if exempt(r) || !slices.ContainsFunc(m.ResourceRules, func(n admissionregistrationv1.NamedRuleWithOperations) bool {
				return covers(n.RuleWithOperations, r, b.Name)
			}) {
				continue
			}
			if slices.ContainsFunc(m.ExcludeResourceRules, func(n admissionregistrationv1.NamedRuleWithOperations) bool {
				return len(n.ResourceNames) == 0 && slices.Contains(n.Operations, "*") && covers(n.RuleWithOperations, r, b.Name)
			}) {
				continue
			}
			out = append(out, b.GVK)
		}
	}
	slices.SortFunc(out, schema.GVK.Compare)
	return slices.Compact(out)
}

// namedIn are the published kinds that rules name with group and version.
func namedIn(rules []admissionregistrationv1.NamedRuleWithOperations, set *schema.Set) (out []schema.Resource) {
	for _, n := range rules {
		for _, group := range n.APIGroups {
			for _, version := range n.APIVersions {
				for _, name := range n.Resources {
					if r, ok := set.ByResource(group, version, name); ok && r.Project != nil {
						out = append(out, r)
					}
				}
			}
		}
	}
	return out
}

// exempt tells of resources that policies made through the API never see.
func exempt(r schema.Resource) bool {
	switch r.Group {
	case "admissionregistration.k8s.io":
		return strings.HasPrefix(r.Plural, "validatingadmissionpolic") || strings.HasPrefix(r.Plural, "mutatingadmissionpolic")
	case "authentication.k8s.io":
		return r.Plural == "tokenreviews" || r.Plural == "selfsubjectreviews"
	case "authorization.k8s.io":
		return strings.HasSuffix(r.Plural, "reviews")
	}
	return false
}

// covers tells that a rule matches a resource, or one of its subresources.
func covers(rule admissionregistrationv1.RuleWithOperations, r schema.Resource, sub string) bool {
	if !has(rule.APIGroups, r.Group) || !has(rule.APIVersions, r.Version) {
		return false
	}
	if rule.Scope != nil {
		switch *rule.Scope {
		case admissionregistrationv1.NamespacedScope:
			if !r.Namespaced {
				return false
			}
		case admissionregistrationv1.ClusterScope:
			if r.Namespaced {
				return false
			}
		}
	}
	return slices.ContainsFunc(rule.Resources, func(entry string) bool {
		res, want, _ := strings.Cut(entry, "/")
		return (res == "*" || res == r.Plural) && (want == sub || want == "*")
	})
}

func has(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}
