package rule

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
)

// What a rule asks that only a request has. To an object that is there, and that somebody looks at
// without a request, it is something else in a rule and in a policy of Kyverno's kinds in CEL.

// NamesOperations tells that the match of a rule has operations.
func NamesOperations(r *policy.Rule) bool {
	return slices.ContainsFunc(query.Filters(r.Match), func(f *policy.Filter) bool { return len(f.Operations) > 0 })
}

// Lists tells that the match names an operation.
func Lists(r *policy.Rule, op native.Operation) bool {
	return slices.ContainsFunc(query.Filters(r.Match), func(f *policy.Filter) bool { return slices.Contains(f.Operations, string(op)) })
}

// AsksUser tells that a rule is about who sends a request.
func AsksUser(r *policy.Rule) bool {
	for _, block := range []*policy.MatchBlock{r.Match, r.Exclude} {
		if block != nil && slices.ContainsFunc(block.Filters(), func(f *policy.Filter) bool {
			return len(f.Roles)+len(f.ClusterRoles)+len(f.Subjects) > 0
		}) {
			return true
		}
	}
	return Mentions(r.Source, "request.userInfo", "request.roles", "request.clusterRoles", "serviceAccountName", "serviceAccountNamespace")
}

// AsksRequest tells that a rule asks for what a request has, and an object that is there has not. In a
// request about a Namespace, that is its namespace.
func AsksRequest(r *policy.Rule) bool {
	return Mentions(r.Source, "request.operation", "request.name", "request.uid", "request.dryRun", "request.options", "request.kind", "request.resource", "request.subResource",
		"request.requestKind", "request.requestResource", "request.requestSubResource") ||
		Mentions(r.Source, "request.namespace") && slices.ContainsFunc(query.Filters(r.Match), func(f *policy.Filter) bool {
			return slices.ContainsFunc(f.Kinds, func(k policy.Text) bool {
				s, ok := policy.ParseKind(k.Value)
				return ok && (s.Kind == "Namespace" || strings.ContainsAny(s.Kind, "*?"))
			})
		})
}

// Mentions tells that a part of a policy has one of some names in it.
func Mentions(n *policy.Node, names ...string) bool {
	if n == nil {
		return false
	}
	text := string(policy.Marshal(n))
	return slices.ContainsFunc(names, func(name string) bool { return query.Mentions(text, name) })
}
