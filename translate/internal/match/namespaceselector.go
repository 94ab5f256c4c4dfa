package match

import (
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A selector of namespaces that all rules of a policy have is one of the objects:
//
//	match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {stage: prod}}}}]}
//
//	matchConstraints:
//	  namespaceSelector:
//	    matchLabels: {stage: prod}
//
// Otherwise each rule asks for the labels of namespaceObject, as one does that has wildcards,
// of which the API server's selectors know nothing.

// soleSelector is the plain selector of a block of one filter.
func soleSelector(m *policy.MatchBlock) *policy.Selector {
	fs := query.Filters(m)
	if len(fs) != 1 {
		return nil
	}
	s := fs[0].NamespaceSelector
	if s == nil || len(s.MatchLabels)+len(s.Expressions) == 0 || native.RefusedSelector(s) ||
		slices.ContainsFunc(s.MatchLabels, func(p policy.Pair) bool { return scalar.IsWild(p.Key) || scalar.IsWild(p.Value) }) {
		return nil
	}
	return s
}

// OwnSelector is the selector of the rule's own match that the object is left to ask for: the
// namespace of a namespaced object is asked for its labels, and nothing else is. It is nil
// where there is none.
func OwnSelector(l *read.Lowering) *policy.Selector {
	own := soleSelector(l.Rule.Match)
	if own == nil || l.Target.Scope != native.Namespaced || l.Target.IsAnyResource() || l.Opts.Pack == api.PackMatch {
		return nil
	}
	key := native.SelectorKey(native.PlainSelector(own))
	if l.Opts.Pack != api.PackRule && slices.ContainsFunc(l.Policy.Rules, func(r *policy.Rule) bool { // which share the object
		s := soleSelector(r.Match)
		return s == nil || native.SelectorKey(native.PlainSelector(s)) != key
	}) {
		return nil
	}
	return own
}
