package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// settled is after how long an API server judges by what was written: it takes up
// changes about once a second.
const settled = 5 * time.Second

// status is all that is known of the policy.
func (s *listedPolicy) status(now time.Time) report.PolicyStatus {
	var out report.PolicyStatus
	out.Namespace, out.Name, out.Kind = s.title()
	if s.source != nil {
		out.Group, out.Created = s.source.Group, stamp(s.source.Created)
	} else {
		out.Created = stamp(s.oldest())
		if s.translation != nil {
			out.Group, out.Created = s.translation.Spec.Source.Group, stamp(s.translation.CreationTimestamp.Time)
		}
	}
	out.Mode, out.Stage = s.mode(), s.stage
	for _, r := range s.rules {
		out.Rules = append(out.Rules, s.ruleStatus(r, now))
	}
	out.Conditions = s.conditions(out.Rules, now)
	return out
}

// oldest is when the first of the objects was made.
func (s *listedPolicy) oldest() (t time.Time) {
	for _, c := range s.claims {
		if at := c.CreationTimestamp.Time; t.IsZero() || at.Before(t) {
			t = at
		}
	}
	return t
}

// mode is what was asked for, else what the objects show.
func (s *listedPolicy) mode() string {
	if s.translation != nil && s.translation.Status.Mode != "" {
		return s.translation.Status.Mode
	}
	if s.source != nil {
		if m := s.source.mode(); m != "" {
			return m
		}
	}
	denies := slices.ContainsFunc(s.claims, func(c claim) bool { return slices.Contains(c.action(), "Deny") })
	switch {
	case len(s.claims) == 0:
		return v1alpha1.ModeOff
	case denies:
		return v1alpha1.ModeEnforce
	case s.source == nil: // nobody knows whether the rules are to deny
		return ""
	case s.source.denies():
		return v1alpha1.ModeShadow
	}
	return v1alpha1.ModeEnforce
}

// denies tells whether some rule of the policy is to deny.
func (s *Source) denies() bool {
	p := s.Policy
	if v := p.Validating; v != nil {
		return slices.Contains(v.Actions, "Deny") || len(v.Actions) == 0
	}
	asks := func(a policy.Action, list []policy.ActionOverride) bool {
		return a == policy.Enforce || slices.ContainsFunc(list, func(o policy.ActionOverride) bool { return o.Action == policy.Enforce })
	}
	return slices.ContainsFunc(p.Rules, func(r *policy.Rule) bool {
		return r.Validate != nil && asks(cmp.Or(r.Validate.Action, p.Action), slices.Concat(r.Validate.Overrides, p.Overrides))
	})
}

// ruleStatus is where a rule is judged, and by what.
func (s *listedPolicy) ruleStatus(r *rule, now time.Time) report.RuleStatus {
	out := report.RuleStatus{Name: r.name, Target: report.Native}
	switch {
	case r.row != nil:
		out.Target, out.Codes, out.Reason = report.Target(r.row.Target), r.row.Codes, r.row.Reason
		if r.row.CostPercent != 0 { // of what the API server allows
			out.Cost = fmt.Sprintf("%d%%", r.row.CostPercent)
		}
	case r.compiled != nil:
		out.Codes = []string{}
		for _, c := range r.compiled.Codes {
			out.Codes = append(out.Codes, c.String())
		}
		if len(r.claims) == 0 {
			out.Target, out.Reason = report.Target(r.compiled.Target), r.compiled.Reason
		}
	}
	var all []string
	for _, n := range nativesOf(r.claims) {
		out.Objects, out.Bindings = append(out.Objects, n.Name), append(out.Bindings, n.bindings...)
		all = append(all, n.action()...)
	}
	if len(out.Objects) == 0 && r.row != nil { // of what mutates the controller alone tells
		out.Objects = r.row.Objects
	}
	for _, c := range r.claims {
		out.Warnings = append(out.Warnings, c.ownWarnings(r.name)...)
	}
	out.Action, out.Enforced = report.JoinActions(all), s.enforcedRule(r, now)
	if out.Action == "" && r.row != nil { // the webhook's
		out.Action = r.row.Action
	}
	return out
}

// ownWarnings are the warnings about the validations of this member.
func (c claim) ownWarnings(rule string) []report.TypeWarning {
	var out []report.TypeWarning
	own := c.translation.Members[c.member]
	for _, w := range c.warnings {
		if m, _, _, ok := c.translation.Of(w.FieldRef); ok && m.Policy == own.Policy && m.Rule == own.Rule && w.Rule == rule {
			out = append(out, w)
		}
	}
	return out
}

// enforcedRule tells whether a rule is enforced: by the API server as the objects
// show, or by the webhook as the controller says.
func (s *listedPolicy) enforcedRule(r *rule, now time.Time) string {
	if r.row != nil && r.row.Target == string(report.Webhook) {
		c, _ := s.said(v1alpha1.ConditionFallbackActive)
		return c.Status
	}
	if r.row != nil && r.row.Type == "mutate" && r.row.Target == string(report.Native) {
		c, _ := s.said(v1alpha1.ConditionEnforced)
		return c.Status
	}
	return enforced(r.claims, now)
}

// enforced tells whether the API server judges by the objects of some claims, as far
// as they show: "" where there is none.
func enforced(claims []claim, now time.Time) string {
	out := ""
	for _, n := range nativesOf(claims) {
		switch {
		case n.has("Unbound"), n.has(kindUnserved):
			return "False"
		case now.Sub(n.changed) < settled:
			out = "Unknown"
		case out == "":
			out = "True"
		}
	}
	return out
}

// nativesOf are the policies of claims, each once.
func nativesOf(claims []claim) []*nativePolicy {
	var out []*nativePolicy
	for _, c := range claims {
		if !slices.Contains(out, c.nativePolicy) {
			out = append(out, c.nativePolicy)
		}
	}
	return out
}

// undeployed are the forms of a rule that have a native form, and no object.
func (r *rule) undeployed() []string {
	var out []string
	if r.compiled == nil || r.compiled.Target != translate.Native {
		return nil
	}
	for _, f := range r.compiled.Forms {
		deployed := slices.ContainsFunc(r.claims, func(c claim) bool { return c.translation.Members[c.member].Rule == f.Name })
		if len(f.Places) > 0 && !deployed {
			out = append(out, f.Name)
		}
	}
	return out
}

// cleanups are the policies that delete on a schedule, as the controller that runs them
// tells. They have no rules.
func (c Snapshot) cleanups() (out []report.PolicyStatus) {
	for _, t := range c.Translations {
		ref := t.Spec.Source
		if t.Status.Cleanup == nil || !c.Filter.matches(ref.Name, ref.Namespace, t.Labels) {
			continue
		}
		p := report.PolicyStatus{Name: ref.Name, Namespace: ref.Namespace, Kind: ref.Kind, Group: ref.Group, Mode: t.Status.Mode, Created: stamp(t.CreationTimestamp.Time)}
		for _, one := range t.Status.Conditions {
			p.Conditions = append(p.Conditions, report.Condition{Type: one.Type, Status: string(one.Status), Reason: one.Reason, Message: one.Message + runs(t.Status.Cleanup)})
		}
		out = append(out, p)
	}
	return out
}

// runs says when a policy ran and runs.
func runs(c *v1alpha1.CleanupStatus) (out string) {
	if c.LastExecutionTime != nil {
		out += fmt.Sprintf("; it ran last at %s", c.LastExecutionTime.UTC().Format(time.RFC3339))
	}
	if c.NextExecutionTime != nil {
		out += fmt.Sprintf("; it runs next at %s", c.NextExecutionTime.UTC().Format(time.RFC3339))
	}
	return out
}
