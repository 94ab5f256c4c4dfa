package translate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
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

// action is the unit's action where no override hits.
func (u unit) action() policy.Action { return baseAction(u.policy, u.rule) }

func baseAction(p *policy.Policy, r *policy.Rule) policy.Action {
	if a := r.Validate.Action; a != "" {
		return a
	}
	return p.Action
}

// overridesOf are the overrides that count for a rule, in order. Those of the
// policy only come after those of the rule if the rule names no action itself.
func overridesOf(p *policy.Policy, r *policy.Rule) []policy.ActionOverride {
	all := r.Validate.Overrides
	if r.Validate.Action == "" {
		all = slices.Concat(all, p.Overrides)
	}
	var out []policy.ActionOverride
	for _, o := range all {
		if o.NamespaceSelector != nil && refusedSelector(o.NamespaceSelector) {
			continue // it never hits
		}
		out = append(out, possible(o))
	}
	return out
}

// possible is the override without what can be no namespace's name, which no
// selector may say.
func possible(o policy.ActionOverride) policy.ActionOverride {
	if o.Namespaces == nil {
		return o
	}
	names := []string{}
	for _, n := range o.Namespaces {
		if scalar.IsWild(n) || len(validation.IsValidLabelValue(n)) == 0 {
			names = append(names, n)
		}
	}
	o.Namespaces = names
	return o
}

// refusedSelector tells whether Kubernetes refuses a selector without wildcards.
func refusedSelector(s *policy.Selector) bool {
	return slices.ContainsFunc(s.Expressions, isInvalid) || slices.ContainsFunc(s.MatchLabels, func(p policy.Pair) bool {
		return isInvalid(policy.SelectorExpression{Key: p.Key, Operator: "In", Values: []string{p.Value}})
	})
}

// checkOverrides refuses overrides that no selector can say, and tells of those
// that Kyverno reads in two ways.
func (l *lowering) checkOverrides() {
	overrides := overridesOf(l.policy, l.rule)
	for _, o := range overrides {
		l.setPos(o.Pos)
		if o.NamespaceSelector != nil && wildOverrides(overrides) {
			panic(l.unsupported("a selector in an action override, while a wildcard names namespaces in one,"))
		}
		if o.Namespaces != nil && o.NamespaceSelector != nil {
			l.note(diag.OverrideBoth, "an action override with namespaces and a selector: Kyverno takes one or the other in one place, and both in another; here both must hold")
		}
	}
	l.setPos(l.rule.Pos)
}

// wildOverrides tells of overrides that no selector can say.
func wildOverrides(overrides []policy.ActionOverride) bool {
	return slices.ContainsFunc(overrides, func(o policy.ActionOverride) bool {
		return slices.ContainsFunc(o.Namespaces, func(n string) bool { return scalar.IsWild(n) && !anyNamespace(n) })
	})
}

// byAction is the draft of a group, or one for each action where a match condition
// says which of them is meant.
func (g group) byAction(d *vap.Draft) []*vap.Draft {
	u := g.units[0]
	overrides := overridesOf(u.policy, u.rule)
	if !wildOverrides(overrides) {
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
	outer := clusterAction(base, overrides) == action
	inNamespaces, outside := g.scopes()
	switch {
	case !inNamespaces:
		return cel.Lit(outer)
	case !outside:
		return actionIn(req.Field("namespace"), action, base, overrides)
	}
	when := actionIn(req.Opt("namespace").OrValue(cel.String("")), action, base, overrides)
	if !slices.ContainsFunc(g.targets, func(t placed) bool {
		return wildScope(t.target) || t.parent == schema.GVK{Version: "v1", Kind: "Namespace"}
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
			hit = inTexts(name, o.Namespaces)
		}
		if o.Action == action {
			out = cel.Or(hit, out)
		} else {
			out = cel.And(cel.Not(hit), out)
		}
	}
	return out.Simplify()
}

// anyNamespace tells of the wildcards that match the name of every namespace.
func anyNamespace(pattern string) bool { return pattern == "*" || pattern == "?*" || pattern == "*?" }

// actionKey is everything that the unit's bindings depend on, but for its targets.
func (u unit) actionKey() string {
	parts := []string{string(u.action())}
	for _, o := range overridesOf(u.policy, u.rule) {
		parts = append(parts, string(o.Action))
		if o.Namespaces != nil {
			parts = append(parts, "in", strings.Join(o.Namespaces, ","))
		}
		if s := o.NamespaceSelector; s != nil {
			parts = append(parts, selectorKey(plainSelector(s)))
		}
	}
	return strings.Join(parts, "\x03")
}

// selectorKey is everything that a selector says.
func selectorKey(s vap.Selector) string {
	parts := []string{"selector"}
	for _, l := range s.Labels {
		parts = append(parts, l.Key+"="+l.Value)
	}
	for _, e := range s.Expressions {
		parts = append(parts, e.Key+" "+e.Operator+" "+strings.Join(e.Values, ","))
	}
	return strings.Join(parts, "\x04")
}

// plainSelector is a selector in which nothing is a wildcard.
func plainSelector(s *policy.Selector) vap.Selector {
	var out vap.Selector
	for _, p := range s.MatchLabels {
		out.Labels = append(out.Labels, vap.Label{Key: p.Key, Value: p.Value})
	}
	for _, e := range s.Expressions {
		out.Expressions = append(out.Expressions, vap.Requirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	return out
}

// clusterAction is the action for objects without a namespace.
func clusterAction(base policy.Action, overrides []policy.ActionOverride) policy.Action {
	for _, o := range overrides {
		if (o.Namespaces == nil || scalar.AnyWild(o.Namespaces, "")) && selectsNothing(o.NamespaceSelector) {
			return o.Action
		}
	}
	return base
}

// selectsNothing tells whether a selector selects what has no labels.
func selectsNothing(s *policy.Selector) bool {
	return s == nil || len(s.MatchLabels) == 0 && !slices.ContainsFunc(s.Expressions, func(e policy.SelectorExpression) bool {
		return e.Operator == "In" || e.Operator == "Exists"
	})
}
