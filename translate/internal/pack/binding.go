package pack

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// The action of a violation can depend on the namespace: the first override that
// hits decides. A binding has one action and a selector of namespaces, which is a
// conjunction; so the overrides are taken apart into sets of namespaces that exclude each
// other, each a conjunction with one action.
//
// A selector of namespaces never leaves out an object without a namespace. Such
// objects, and Namespaces themselves, have the action that Kyverno finds for the
// namespace "" without labels; where a policy meets both kinds of objects, their
// bindings are told apart by scope.
//
// No selector knows wildcards. Overrides with a wildcard for namespaces make two
// policy objects, one for each action, which a match condition tells apart.

// NameLabel is the label with the name that every namespace has.
const NameLabel = "kubernetes.io/metadata.name"

// bindings say where a rule counts and what a violation leads to. Each object that
// the group is about falls under exactly one of them.
func (g group) bindings() []vap.Binding {
	u := g.units[0]
	if u.Policy.Namespaced() {
		b := u.binding(u.action())
		b.NamespaceSelector.Labels = []vap.Label{{Key: NameLabel, Value: u.Policy.Namespace}}
		return []vap.Binding{b}
	}
	overrides := native.OverridesOf(u.Policy, u.Rule)
	if native.WildOverrides(overrides) { // see byAction
		return []vap.Binding{u.binding(u.action())}
	}
	inNamespaces, outside := g.scopes()
	other := native.ClusterAction(u.action(), overrides)
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
		inNamespaces = inNamespaces || t.Scope != native.Cluster
		outside = outside || t.Scope != native.Namespaced
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
func (u Unit) binding(a policy.Action) vap.Binding {
	b := vap.Binding{Actions: actions(a, u.Policy.EmitWarning), Reaches: u.Reaches}
	if p := u.Params; p != nil {
		b.Param = &vap.ParamRef{Name: p.Name, Namespace: p.Namespace, NotFound: "Deny"}
	}
	if u.CEL != nil && u.CEL.ParamRef != nil {
		ref := *u.CEL.ParamRef
		b.Param = &ref
	}
	if b.Param != nil && (a != policy.Enforce || u.Policy.FailurePolicy == policy.Ignore) {
		// Without params a rule is an error, which denies only under Enforce and
		// Fail. The API server would refuse requests whatever the binding's actions.
		b.Param.NotFound = "Allow"
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
func matchPos(u Unit) diag.Pos {
	if u.Rule.Match != nil {
		return u.Rule.Match.Pos
	}
	return u.Rule.Pos
}
