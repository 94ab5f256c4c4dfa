package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
)

// settled is after how long an API server judges by what was written: it takes up
// changes about once a second.
const settled = 5 * time.Second

// status is all that is known of the policy. The exceptions are those that count where no
// controller tells of the policy.
func (s *listedPolicy) status(now time.Time, counting []*policy.Exception) report.PolicyStatus {
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
	out.Mode, out.Stage, out.Exceptions = s.mode(), s.stage, s.exceptions(counting)
	for _, r := range s.rules {
		out.Rules = append(out.Rules, s.ruleStatus(r, now))
	}
	out.Conditions = s.conditions(out.Rules, now)
	return out
}

// exceptions are those from the policy that are in force.
func (s *listedPolicy) exceptions(counting []*policy.Exception) (out []report.ActiveException) {
	if s.controlled() {
		for _, e := range s.translation.Status.Exceptions {
			one := report.ActiveException{Namespace: e.Namespace, Name: e.Name, Rules: e.Rules}
			if e.Expires != nil {
				one.Expires = stamp(e.Expires.Time)
			}
			out = append(out, one)
		}
		return out
	}
	for _, e := range counting {
		if s.source != nil && e.IsFrom(s.source.Policy) {
			out = append(out, report.ActiveException{Namespace: e.Namespace, Name: e.Name, Rules: e.RulesOf(s.source.Policy)})
		}
	}
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

// modePending is the mode of a policy that the controller has not looked at yet.
const modePending = "pending"

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
	case len(s.claims) == 0 && (s.awaited || s.translation != nil):
		return modePending
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
		if m, _, ok := c.translation.Of(w.FieldRef); ok && m.Policy == own.Policy && m.Rule == own.Rule && w.Rule == rule {
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
		if one := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); one != nil {
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

// The values of a condition.
const (
	yes     = "True"
	no      = "False"
	unknown = "Unknown"
)

// conditions are what the controller says, where there is one, of what only it can
// know, and else what the objects show.
func (s *listedPolicy) conditions(rules []report.RuleStatus, now time.Time) []report.Condition {
	var list []report.Condition
	add := func(kind string, known bool, look func() report.Condition) {
		if c, ok := s.said(kind); ok {
			list = append(list, c)
		} else if known {
			list = append(list, look())
		}
	}
	deployed := len(s.claims) > 0
	add(v1alpha1.ConditionCompiled, s.source != nil, func() report.Condition { return s.compiledCondition(rules) })
	add(v1alpha1.ConditionKindsServed, false, nil)
	add(v1alpha1.ConditionSynced, deployed, s.syncedCondition)
	if deployed {
		params := s.paramsCondition()
		if c, ok := s.said(v1alpha1.ConditionParamsResolved); ok && c.Status == no && params.Status != no {
			params = c // of what the params are copied from
		}
		list = append(list, s.typeCheckedCondition(rules), params)
	} else {
		add(v1alpha1.ConditionParamsResolved, false, nil) // a rule may wait for what it reads
	}
	add(v1alpha1.ConditionEnforced, deployed, func() report.Condition { return s.enforcedCondition(now) })
	add(v1alpha1.ConditionFallbackActive, true, func() report.Condition { return fallbackCondition(rules) })
	return append([]report.Condition{s.readyCondition(list)}, list...)
}

func (s *listedPolicy) readyCondition(list []report.Condition) report.Condition {
	for _, c := range list {
		if c.Status == no {
			return report.Condition{Type: v1alpha1.ConditionReady, Status: no, Reason: c.Reason, Message: c.Message}
		}
	}
	if s.mode() == modePending {
		return report.Condition{Type: v1alpha1.ConditionReady, Status: unknown, Reason: "Pending", Message: "the controller has not looked at this policy yet; see that it runs"}
	}
	if len(s.claims) == 0 && !s.controlled() {
		return report.Condition{Type: v1alpha1.ConditionReady, Status: unknown, Reason: "NotDeployed", Message: "no native object enforces this policy"}
	}
	if c, ok := s.said(v1alpha1.ConditionReady); ok && c.Status == unknown { // as of an edit that is not enforced yet
		list = append(list, c)
	}
	for _, c := range list {
		if c.Status == unknown {
			return report.Condition{Type: v1alpha1.ConditionReady, Status: unknown, Reason: c.Reason, Message: c.Message}
		}
	}
	return report.Condition{Type: v1alpha1.ConditionReady, Status: yes, Reason: "AllTrue", Message: "the native rules are enforced"}
}

func (s *listedPolicy) compiledCondition(rules []report.RuleStatus) report.Condition {
	for _, d := range s.source.Found {
		if s.source.Policy.Invalid {
			return report.Condition{Type: v1alpha1.ConditionCompiled, Status: no, Reason: "Invalid", Message: fmt.Sprintf("%s: %s [%s]", d.Path, d.Message, d.Code)}
		}
	}
	var t [3]int
	for _, r := range rules {
		switch r.Target {
		case report.Native:
			t[0]++
		case report.Webhook:
			t[1]++
		default:
			t[2]++
		}
	}
	c := report.Condition{Type: v1alpha1.ConditionCompiled, Status: yes, Reason: "Compiled", Message: fmt.Sprintf("%d native, %d webhook, %d unsupported", t[0], t[1], t[2])}
	if t[2] > 0 {
		c.Status, c.Reason = no, "Unsupported"
	}
	return c
}

// syncedCondition tells whether the objects are those that the source asks for. There
// may be more: a source that was converted holds only the rules that were left.
func (s *listedPolicy) syncedCondition() report.Condition {
	c := report.Condition{Type: v1alpha1.ConditionSynced, Status: yes, Reason: "Deployed", Message: "every native rule has its objects"}
	if s.source == nil {
		c.Status, c.Reason, c.Message = yes, "NoSource", "the source is not in the cluster, so the objects are all there is"
		return c
	}
	var lacking []string
	for _, r := range s.rules {
		lacking = append(lacking, r.undeployed()...)
	}
	if len(lacking) > 0 {
		c.Status, c.Reason = no, "ObjectsMissing"
		c.Message = fmt.Sprintf("no object enforces %s; convert the policy again, and apply the result", strings.Join(lacking, ", "))
	}
	return c
}

func (s *listedPolicy) typeCheckedCondition(rules []report.RuleStatus) report.Condition {
	c := report.Condition{Type: v1alpha1.ConditionTypeChecked, Status: yes, Reason: "NoWarnings", Message: "the cluster's type checker has nothing to say"}
	meant, known := 0, 0
	for _, r := range rules {
		for _, w := range r.Warnings {
			if w.Known {
				known++
			} else {
				meant++
			}
		}
	}
	if known > 0 {
		c.Reason, c.Message = "KnownFalseAlarms", fmt.Sprintf("%d known false alarms of the cluster's type checker", known)
	}
	if meant > 0 {
		c.Status, c.Reason, c.Message = no, "Warnings", fmt.Sprintf("%d warnings of the cluster's type checker", meant)
		return c
	}
	for _, n := range nativesOf(s.claims) {
		if !n.checked {
			c.Status, c.Reason = unknown, "Pending"
			c.Message = fmt.Sprintf("the cluster's type checker has not looked at %s yet", n.Name)
		}
	}
	return c
}

func (s *listedPolicy) paramsCondition() report.Condition {
	c := report.Condition{Type: v1alpha1.ConditionParamsResolved, Status: yes, Reason: "NoParams", Message: "no binding needs params"}
	for _, n := range nativesOf(s.claims) {
		for _, b := range n.bindings {
			if b.Problem != nil {
				return report.Condition{Type: v1alpha1.ConditionParamsResolved, Status: no, Reason: b.Problem.Reason, Message: b.Problem.Message}
			}
			if len(b.Params) > 0 {
				c.Reason, c.Message = "Found", "every binding finds its params"
			}
		}
	}
	return c
}

// enforcedCondition is what the objects show; only a request would prove it.
func (s *listedPolicy) enforcedCondition(now time.Time) report.Condition {
	c := report.Condition{Type: v1alpha1.ConditionEnforced, Status: yes, Reason: "RefreshDelayPassed",
		Message: "every object is bound, and API servers have had the time to take it up"}
	switch enforced(s.claims, now) {
	case no:
		c.Status = no
		for _, n := range nativesOf(s.claims) {
			for _, p := range n.problems {
				if p.Reason == "Unbound" || p.Reason == kindUnserved {
					c.Reason, c.Message = p.Reason, p.Message
					return c
				}
			}
		}
	case unknown:
		c.Status, c.Reason, c.Message = unknown, "JustWritten", "an object was written a moment ago"
	}
	return c
}

// fallbackCondition is about the rules that have no native form. Without a
// controller nobody says who judges them.
func fallbackCondition(rules []report.RuleStatus) report.Condition {
	var left []string
	for _, r := range rules {
		if r.Target == report.Webhook {
			left = append(left, r.Name)
		}
	}
	if len(left) == 0 {
		return report.Condition{Type: v1alpha1.ConditionFallbackActive, Status: yes, Reason: "NotNeeded", Message: "no rule needs the webhook"}
	}
	return report.Condition{Type: v1alpha1.ConditionFallbackActive, Status: unknown, Reason: "NotObserved",
		Message: "no controller says whether the webhook judges " + strings.Join(left, ", ")}
}
