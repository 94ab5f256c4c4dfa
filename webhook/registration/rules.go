package registration

import (
	"cmp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// A ruleBuilder is a rule of an entry while it is being built: lists without duplicates,
// sorted.
type ruleBuilder struct {
	groups, versions, resources, operations []string
	scope                                   scope
}

// rules are targets in as few rules as need be: what differs in one list only is
// one rule.
func rules(targets []ruleTarget) []admissionregistrationv1.RuleWithOperations {
	shapes := make([]ruleBuilder, len(targets))
	for i, t := range targets {
		shapes[i] = ruleBuilder{[]string{t.group}, []string{t.version}, []string{t.resource}, []string{t.operation}, t.scope}
	}
	for _, list := range []func(*ruleBuilder) *[]string{
		func(s *ruleBuilder) *[]string { return &s.operations },
		func(s *ruleBuilder) *[]string { return &s.versions },
		func(s *ruleBuilder) *[]string { return &s.resources },
	} {
		shapes = merged(shapes, list)
	}
	out := make([]admissionregistrationv1.RuleWithOperations, len(shapes))
	for i, s := range shapes {
		out[i] = s.rule()
	}
	return out
}

// merged joins shapes that are the same but for one list.
func merged(shapes []ruleBuilder, list func(*ruleBuilder) *[]string) []ruleBuilder {
	var out []ruleBuilder
	for _, s := range shapes {
		rest := s
		*list(&rest) = nil
		i := slices.IndexFunc(out, func(o ruleBuilder) bool {
			*list(&o) = nil
			return o.compare(rest) == 0
		})
		if i < 0 {
			out = append(out, s)
			continue
		}
		joined := append(slices.Clone(*list(&out[i])), *list(&s)...)
		slices.Sort(joined)
		*list(&out[i]) = slices.Compact(joined)
	}
	slices.SortFunc(out, ruleBuilder.compare)
	return out
}

func (s ruleBuilder) compare(o ruleBuilder) int {
	return cmp.Or(slices.Compare(s.groups, o.groups), slices.Compare(s.resources, o.resources), slices.Compare(s.versions, o.versions),
		slices.Compare(s.operations, o.operations), cmp.Compare(s.scope, o.scope))
}

func (s ruleBuilder) rule() admissionregistrationv1.RuleWithOperations {
	at := admissionregistrationv1.ScopeType(s.scope)
	out := admissionregistrationv1.RuleWithOperations{
		Rule: admissionregistrationv1.Rule{
			APIGroups: uncovered(s.groups, wildcardCovers), APIVersions: uncovered(s.versions, wildcardCovers),
			Resources: uncovered(s.resources, resourceCovers), Scope: &at,
		},
	}
	for _, o := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} { // in the order of a life
		if slices.Contains(s.operations, o) || slices.Contains(s.operations, "*") {
			out.Operations = append(out.Operations, admissionregistrationv1.OperationType(o))
		}
	}
	return out
}

// uncovered are the texts that no other one covers: the API server refuses a list with
// a wildcard beside what it covers, and with it the whole configuration.
func uncovered(list []string, covers func(wide, narrow string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(narrow string) bool {
		return slices.ContainsFunc(list, func(wide string) bool { return wide != narrow && covers(wide, narrow) })
	})
}

func wildcardCovers(wide, _ string) bool { return wide == "*" }

// resourceCovers tells whether a resource takes in another one: * is all resources
// without subresources, and */* is all there is.
func resourceCovers(wide, narrow string) bool {
	name, sub, below := strings.Cut(wide, "/")
	otherName, otherSub, otherBelow := strings.Cut(narrow, "/")
	if wide == "*/*" {
		return true
	}
	return below == otherBelow && (name == "*" || name == otherName) && (sub == "*" || sub == otherSub)
}
