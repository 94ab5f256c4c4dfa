package pack

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// byAction is the draft of a group, or one for each action where a match condition
// says which of them is meant.
func (g group) byAction(d *vap.Draft) []*vap.Draft {
	u := g.units[0]
	overrides := native.OverridesOf(u.Policy, u.Rule)
	if !native.WildOverrides(overrides) {
		return []*vap.Draft{d}
	}
	var out []*vap.Draft
	for _, action := range []policy.Action{policy.Enforce, policy.Audit} {
		when := g.takes(action, u.action(), overrides)
		if when.IsFalse() {
			continue
		}
		one := *d
		one.Bindings = []vap.Binding{u.binding(action)}
		if !when.IsTrue() {
			name := strings.ToLower(string(action))
			one.Base += "-" + name
			one.Conditions = append([]vap.Condition{{Pos: overrides[0].Pos, Name: name, Expr: when}}, d.Conditions...)
		}
		out = append(out, &one)
	}
	return out
}

// takes is: the overrides give the action for the request. Without a namespace,
// and for Namespaces themselves, that is known.
func (g group) takes(action, base policy.Action, overrides []policy.ActionOverride) cel.Bool {
	req := cel.Ident("request")
	outer := native.ClusterAction(base, overrides) == action
	inNamespaces, outside := g.scopes()
	switch {
	case !inNamespaces:
		return cel.Lit(outer)
	case !outside:
		return actionIn(req.Field("namespace"), action, base, overrides)
	}
	when := actionIn(req.Optional("namespace").OrValue(cel.String("")), action, base, overrides)
	if !slices.ContainsFunc(g.targets, func(t placed) bool {
		return t.Target.IsAnyResource() || t.Parent == schema.GVK{Version: "v1", Kind: "Namespace"}
	}) {
		return when
	}
	resource := req.Field("resource")
	itself := cel.And(resource.Field("group").Eq(cel.String("")), resource.Field("resource").Eq(cel.String("namespaces")))
	if outer {
		return cel.Or(itself, when).Simplify()
	}
	return cel.And(cel.Not(itself), when).Simplify()
}

// actionIn is: the overrides give the action in the namespace of that name.
func actionIn(name cel.Value, action, base policy.Action, overrides []policy.ActionOverride) cel.Bool {
	out := cel.Lit(base == action)
	for _, o := range slices.Backward(overrides) {
		hit := cel.Lit(o.Namespaces == nil)
		if slices.Contains(o.Namespaces, "*") {
			hit = cel.True()
		} else if len(o.Namespaces) > 0 {
			hit = native.OneOfTexts(name, o.Namespaces)
		}
		if o.Action == action {
			out = cel.Or(hit, out)
		} else {
			out = cel.And(cel.Not(hit), out)
		}
	}
	return out.Simplify()
}
