package match

import (
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// ConstraintsOf are matchConstraints; without any nothing matches.
func ConstraintsOf(m *policy.MatchConstraints) vap.Constraints {
	if m == nil {
		return vap.Constraints{}
	}
	return vap.Constraints{
		Rules: constraintRules(m.Rules), Exclude: constraintRules(m.Exclude), MatchPolicy: m.MatchPolicy,
		NamespaceSelector: native.PlainSelector(m.NamespaceSelector), ObjectSelector: native.PlainSelector(m.ObjectSelector),
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
