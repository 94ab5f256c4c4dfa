package translate

import (
	"slices"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
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

// selectorIsShared tells that all rules that may share an object have the rule's selector.
func (l *lowering) selectorIsShared() bool {
	own := soleSelector(l.rule.Match)
	if own == nil || l.opts.Pack == PackMatch {
		return false
	}
	key := native.SelectorKey(native.PlainSelector(own))
	return l.opts.Pack == PackRule || !slices.ContainsFunc(l.policy.Rules, func(r *policy.Rule) bool {
		s := soleSelector(r.Match)
		return s == nil || native.SelectorKey(native.PlainSelector(s)) != key
	})
}

// soleSelector is the plain selector of a block of one filter.
func soleSelector(m *policy.MatchBlock) *policy.Selector {
	fs := filters(m)
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

// ownSelector is the selector of the rule's own match that the object is left to ask for: the
// namespace of a namespaced object is asked for its labels, and nothing else is. It is nil
// where there is none.
func (l *lowering) ownSelector() *policy.Selector {
	if l.target.Scope != native.Namespaced || l.target.IsAnyResource() || !l.selectorIsShared() {
		return nil
	}
	return soleSelector(l.rule.Match)
}
