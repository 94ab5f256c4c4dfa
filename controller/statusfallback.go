package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
)

func (o *passResult) fallbackActive(m *conditionSet, s *policySource, rules []*compile.Rule, left int32) {
	names, why := idle(rules)
	switch {
	case len(names) > 0 && s.mode != v1alpha1.ModeShadow:
		m.no(v1alpha1.ConditionFallbackActive, "NotCarriedOut", "%s: %s", strings.Join(names, ", "), why)
	case left == 0:
		m.yes(v1alpha1.ConditionFallbackActive, "NotNeeded", "no rule needs the webhook")
	case s.mode == v1alpha1.ModeShadow:
		m.yes(v1alpha1.ConditionFallbackActive, "Shadow", "%s: %d", o.rehearsal(s), left)
	case o.fallback != nil:
		m.no(v1alpha1.ConditionFallbackActive, reasonOf(o.fallback), "rules that no one judges, for want of the webhook: %d: %v", left, o.fallback)
	case o.problemsOf(s, true) != "":
		m.no(v1alpha1.ConditionFallbackActive, "LeftOut", "rules that no one judges: %d: %s", left, o.problemsOf(s, true))
	case o.forbids(s):
		m.no(v1alpha1.ConditionFallbackActive, "PermissionMissing", "%s", o.problemsOf(s, false))
	case o.problemsOf(s, false) != "":
		m.yes(v1alpha1.ConditionFallbackActive, "Serving", "rules that the webhook serves: %d. Note: %s", left, o.problemsOf(s, false))
	default:
		m.yes(v1alpha1.ConditionFallbackActive, "Serving", "rules that the webhook serves: %d", left)
	}
}

// rehearsal is what becomes of the rules that remain of a policy in shadow. Whoever
// enforces the policy now goes on, whatever that is.
func (o *passResult) rehearsal(s *policySource) string {
	switch {
	case o.fallback != nil:
		return fmt.Sprintf("rules left to whoever enforces the policy now (the webhook does not judge them beside: %v)", o.fallback)
	case o.problemsOf(s, true) != "":
		return fmt.Sprintf("rules left to whoever enforces the policy now (the webhook does not judge them beside: %s)", o.problemsOf(s, true))
	}
	return "rules that the webhook judges beside whoever enforces the policy now, without effect"
}

// problemsOf are what the Fallback says of a policy: why it leaves it out, or what it
// is well to know.
func (o *passResult) problemsOf(s *policySource, leftOut bool) string {
	var out []string
	for _, p := range o.problems {
		if p.Source == s.ref && p.LeftOut == leftOut && !p.Broken && !slices.Contains(out, p.Message) {
			out = append(out, p.Message)
		}
	}
	return strings.Join(out, "; ")
}

// forbids tells that a rule of the policy cannot do its work for want of a permission.
func (o *passResult) forbids(s *policySource) bool {
	return slices.ContainsFunc(o.problems, func(p FallbackProblem) bool { return p.Forbidden && p.Source == s.ref })
}

// idle are the names of the rules that nothing carries out, and why that is for the
// first.
func idle(rules []*compile.Rule) (names []string, why string) {
	for _, r := range rules {
		if reason := r.NotServed(); reason != "" {
			names = append(names, r.Name())
			why = cmp.Or(why, reason)
		}
	}
	return names, why
}

// brokenOf is which expressions of a policy that the webhook judges by do not compile.
func (o *passResult) brokenOf(s *policySource) string {
	for _, p := range o.problems {
		if p.Broken && p.Source == s.ref {
			return p.Message
		}
	}
	return ""
}
