package translate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

const nameLabel = "kubernetes.io/metadata.name"

// bindings say where a rule counts and what a violation leads to. Each object that
// the group is about falls under exactly one of them.
func (g group) bindings() []vap.Binding {
	u := g.units[0]
	if u.policy.Namespaced() {
		b := u.binding(u.action())
		b.NamespaceSelector.Labels = []vap.Label{{Key: nameLabel, Value: u.policy.Namespace}}
		return []vap.Binding{b}
	}
	overrides := overridesOf(u.policy, u.rule)
	if wildOverrides(overrides) { // see byAction
		return []vap.Binding{u.binding(u.action())}
	}
	inNamespaces, outside := g.scopes()
	other := clusterAction(u.action(), overrides)
	if !inNamespaces {
		return []vap.Binding{u.binding(other)}
	}
	sets := namespaceSets(u.action(), overrides)
	if len(sets) == 1 && (!outside || sets[0].action == other) {
		return []vap.Binding{u.binding(sets[0].action)}
	}
	var out []vap.Binding
	for _, r := range sets {
		b := u.binding(r.action)
		b.NamespaceSelector, b.Suffix = r.selector(), suffix(string(r.action), out)
		if outside {
			b.Rules = everything("Namespaced")
		}
		out = append(out, b)
	}
	if outside {
		b := u.binding(other)
		b.Rules, b.Suffix = everything("Cluster"), suffix(string(other)+"-cluster", out)
		out = append(out, b)
	}
	return out
}

// scopes tells whether the group is about objects in namespaces, and about others.
func (g group) scopes() (inNamespaces, outside bool) {
	for _, t := range g.targets {
		inNamespaces = inNamespaces || t.scope != cluster
		outside = outside || t.scope != namespaced
	}
	return inNamespaces, outside
}

// everything is a rule for all that a policy matches, of one scope.
func everything(scope string) []vap.ResourceRule {
	all := []string{"*"}
	return []vap.ResourceRule{{Groups: all, Versions: all, Resources: []string{"*/*"}, Operations: all, Scope: scope}}
}

// suffix tells a binding from the policy's other ones.
func suffix(what string, others []vap.Binding) string {
	what = strings.ToLower(what)
	name := what
	for i := 2; slices.ContainsFunc(others, func(b vap.Binding) bool { return b.Suffix == name }); i++ {
		name = what + "-" + strconv.Itoa(i)
	}
	return name
}

// binding is a binding with an action, for everything.
func (u unit) binding(a policy.Action) vap.Binding {
	b := vap.Binding{Actions: actions(a, u.policy.EmitWarning)}
	u.params.refer(&b, u, a)
	if u.native != nil && u.native.paramRef != nil {
		ref := *u.native.paramRef
		if a != policy.Enforce || u.policy.FailurePolicy == policy.Ignore {
			// Without params a rule is an error, which denies only under Enforce and
			// Fail. The API server would refuse requests whatever the binding's actions.
			ref.NotFound = "Allow"
		}
		b.Param = &ref
	}
	return b
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
