package translate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

const nameLabel = "kubernetes.io/metadata.name"

// bindings say where a rule counts and what a violation leads to.
func bindings(u unit) []vap.Binding {
	base := vap.Binding{Actions: actions(u.action(), u.policy.EmitWarning)}
	if u.policy.Namespaced() {
		base.NamespaceSelector.Labels = []vap.Label{{Key: nameLabel, Value: u.policy.Namespace}}
	}
	return []vap.Binding{base}
}

// actions are the validation actions for a failure action.
func actions(a policy.Action, warn bool) []string {
	switch {
	case a == policy.Enforce:
		return []string{"Deny"}
	case warn:
		return []string{"Audit", "Warn"}
	}
	return []string{"Audit"}
}

// matchPos is where a rule's match block stands.
func matchPos(u unit) diag.Pos {
	if u.rule.Match != nil {
		return u.rule.Match.Pos
	}
	return u.rule.Pos
}
