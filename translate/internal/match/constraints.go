package match

import (
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// ConstraintsOf are matchConstraints; without any nothing matches.
func ConstraintsOf(m *policy.MatchConstraints) vap.Constraints {
	if m == nil {
		return vap.Constraints{}
	}
	return vap.Constraints{
		Rules: constraintRules(m.Rules), Exclude: constraintRules(m.Exclude), MatchPolicy: m.MatchPolicy,
		NamespaceSelector: constraintSelector(m.NamespaceSelector), ObjectSelector: constraintSelector(m.ObjectSelector),
	}
}

func constraintRules(rules []policy.ResourceRule) []vap.ResourceRule {
	var out []vap.ResourceRule
	for _, r := range rules {
		out = append(out, vap.ResourceRule{
			Groups: r.Groups, Versions: r.Versions, Resources: r.Resources, Operations: r.Operations, Names: r.Names, Scope: r.Scope,
		})
	}
	return out
}

func constraintSelector(s *policy.Selector) vap.Selector {
	var out vap.Selector
	if s == nil {
		return out
	}
	for _, l := range s.MatchLabels {
		out.Labels = append(out.Labels, vap.Label{Key: l.Key, Value: l.Value})
	}
	for _, e := range s.Expressions {
		out.Expressions = append(out.Expressions, vap.Requirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	return out
}
