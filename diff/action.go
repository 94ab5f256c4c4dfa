package diff

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/verify"
)

// actionsOf are what follows from a violation of a rule, or of a policy in CEL, as that of a
// binding: the rule's first override for the namespace, its own action, the policy's first
// override, or the policy's action.
func actionsOf(p *policy.Policy, rule *policy.Rule, r *verify.Request) []string {
	if p.Validating != nil {
		if len(p.Validating.Actions) == 0 {
			return []string{"Deny"}
		}
		return p.Validating.Actions
	}
	var action policy.Action
	if rule != nil && rule.Validate != nil {
		if action = overridden(rule.Validate.Overrides, r); action == "" {
			action = rule.Validate.Action
		}
	}
	if action == "" {
		action = overridden(p.Overrides, r)
	}
	if action == "" {
		action = p.Action
	}
	out := []string{"Audit"}
	if action == policy.Enforce {
		out = []string{"Deny"}
	}
	if p.EmitWarning {
		out = append(out, "Warn")
	}
	return out
}

// overridden is the action of the first override for the namespace of a request; "" if none is.
func overridden(overrides []policy.ActionOverride, r *verify.Request) policy.Action {
	for _, o := range overrides {
		named := o.Namespaces == nil || slices.ContainsFunc(o.Namespaces, func(pattern string) bool { return policy.Wildcard(pattern, r.Namespace) })
		if named && (o.NamespaceSelector == nil || selects(o.NamespaceSelector, r.NamespaceLabels)) {
			return o.Action
		}
	}
	return ""
}

// selects tells whether a selector takes labels. One that cannot be read takes none.
func selects(s *policy.Selector, have map[string]string) bool {
	as := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, l := range s.MatchLabels {
		as.MatchLabels[l.Key] = l.Value
	}
	for _, e := range s.Expressions {
		as.MatchExpressions = append(as.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values})
	}
	selector, err := metav1.LabelSelectorAsSelector(as)
	return err == nil && selector.Matches(labels.Set(have))
}
