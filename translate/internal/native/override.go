package native

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// BaseAction is the action of a rule where no override hits.
func BaseAction(p *policy.Policy, r *policy.Rule) policy.Action {
	if a := r.Validate.Action; a != "" {
		return a
	}
	return p.Action
}

// OverridesOf are the overrides that count for a rule, in order. Those of the
// policy only come after those of the rule if the rule names no action itself.
func OverridesOf(p *policy.Policy, r *policy.Rule) []policy.ActionOverride {
	all := r.Validate.Overrides
	if r.Validate.Action == "" {
		all = slices.Concat(all, p.Overrides)
	}
	var out []policy.ActionOverride
	for _, o := range all {
		if o.NamespaceSelector != nil && RefusedSelector(o.NamespaceSelector) {
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

// WildOverrides tells of overrides that no selector can say.
func WildOverrides(overrides []policy.ActionOverride) bool {
	return slices.ContainsFunc(overrides, func(o policy.ActionOverride) bool {
		return slices.ContainsFunc(o.Namespaces, func(n string) bool { return scalar.IsWild(n) && !AnyNamespace(n) })
	})
}

// AnyNamespace tells of the wildcards that match the name of every namespace.
func AnyNamespace(pattern string) bool { return pattern == "*" || pattern == "?*" || pattern == "*?" }

// ClusterAction is the action for objects without a namespace.
func ClusterAction(base policy.Action, overrides []policy.ActionOverride) policy.Action {
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
