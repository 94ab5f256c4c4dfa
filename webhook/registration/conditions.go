package registration

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/policy"
)

// The names of kvap's own match conditions.
const (
	excludedGroupsName = "kvap.dev/not-of-excluded-groups"
	machineryName      = "kvap.dev/not-machinery"
)

// conditions keep requests away that no policy of an entry can say anything of:
// those of excluded groups, of the cluster's own machinery where a wildcard would
// take them in, and those that the one policy of the entry is not about.
func conditions(own *policy.Policy, targets []target, excludeGroups []string) []admissionregistrationv1.MatchCondition {
	var out []admissionregistrationv1.MatchCondition
	if len(excludeGroups) > 0 {
		groups := slices.Clone(excludeGroups)
		slices.Sort(groups)
		out = append(out, admissionregistrationv1.MatchCondition{
			Name:       excludedGroupsName,
			Expression: "!has(request.userInfo.groups) || !request.userInfo.groups.exists(g, g in " + list(groups) + ")",
		})
	}
	if left := machinery(targets); len(left) > 0 {
		out = append(out, admissionregistrationv1.MatchCondition{
			Name:       machineryName,
			Expression: "!(request.resource.group + '/' + request.resource.resource in " + list(left) + ")",
		})
	}
	if own != nil {
		for _, c := range own.MatchConditions {
			out = append(out, admissionregistrationv1.MatchCondition{Name: c.Name, Expression: c.Expression})
		}
	}
	return out
}

// machinery is what a wildcard does not mean: what the API server and the nodes
// write all the time, and what they ask while they decide on a request. A rule that
// names such a kind gets it.
func machinery(targets []target) []string {
	if !slices.ContainsFunc(targets, func(t target) bool { return strings.HasPrefix(t.resource, "*") }) {
		return nil
	}
	return slices.DeleteFunc([]string{
		"/bindings", "/events", "/nodes", "authentication.k8s.io/selfsubjectreviews", "authentication.k8s.io/tokenreviews",
		"authorization.k8s.io/localsubjectaccessreviews", "authorization.k8s.io/selfsubjectaccessreviews",
		"authorization.k8s.io/selfsubjectrulesreviews", "authorization.k8s.io/subjectaccessreviews",
		"apiregistration.k8s.io/apiservices", "coordination.k8s.io/leases", "events.k8s.io/events",
	}, func(name string) bool {
		return slices.ContainsFunc(targets, func(t target) bool { return t.group+"/"+t.plural() == name })
	})
}

// plural is the resource without its subresource.
func (t target) plural() string {
	name, _, _ := strings.Cut(t.resource, "/")
	return name
}

// list is a list of texts in CEL. They are names of groups and resources, which are
// quoted all the same.
func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, s := range texts {
		quoted[i] = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
