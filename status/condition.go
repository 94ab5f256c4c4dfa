package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/kvap/kvap/report"
)

// The conditions of a policy, in the order in which they are told. Ready is what the
// others come to.
const (
	ready          = "Ready"
	compiled       = "Compiled"
	synced         = "Synced"
	typeChecked    = "TypeChecked"
	paramsResolved = "ParamsResolved"
	isEnforced     = "Enforced"
	fallbackActive = "FallbackActive"
)

// The values of a condition.
const (
	yes     = "True"
	no      = "False"
	unknown = "Unknown"
)

// conditions are what the objects show.
func (s *subject) conditions(rules []report.RuleStatus, now time.Time) []report.Condition {
	var list []report.Condition
	add := func(c report.Condition) { list = append(list, c) }
	if s.source != nil {
		add(s.compiledCondition(rules))
	}
	if len(s.claims) > 0 {
		add(s.syncedCondition())
		add(s.typeCheckedCondition(rules))
		add(s.paramsCondition())
		add(s.enforcedCondition(now))
	}
	if c, any := fallbackCondition(rules); any {
		add(c)
	}
	return append([]report.Condition{s.readyCondition(list)}, list...)
}

func (s *subject) readyCondition(list []report.Condition) report.Condition {
	for _, c := range list {
		if c.Status == no {
			return report.Condition{Type: ready, Status: no, Reason: c.Reason, Message: c.Message}
		}
	}
	if len(s.claims) == 0 {
		return report.Condition{Type: ready, Status: unknown, Reason: "NotDeployed", Message: "no native object enforces this policy"}
	}
	for _, c := range list {
		if c.Status == unknown {
			return report.Condition{Type: ready, Status: unknown, Reason: c.Reason, Message: c.Message}
		}
	}
	return report.Condition{Type: ready, Status: yes, Reason: "AllTrue", Message: "the native rules are enforced"}
}

func (s *subject) compiledCondition(rules []report.RuleStatus) report.Condition {
	for _, d := range s.source.Found {
		if s.source.Policy.Invalid {
			return report.Condition{Type: compiled, Status: no, Reason: "Invalid", Message: fmt.Sprintf("%s: %s [%s]", d.Path, d.Message, d.Code)}
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
	c := report.Condition{Type: compiled, Status: yes, Reason: "Compiled", Message: fmt.Sprintf("%d native, %d webhook, %d unsupported", t[0], t[1], t[2])}
	if t[2] > 0 {
		c.Status, c.Reason = no, "Unsupported"
	}
	return c
}

// syncedCondition tells whether the objects are those that the source asks for. There
// may be more: a source that was converted holds only the rules that were left.
func (s *subject) syncedCondition() report.Condition {
	c := report.Condition{Type: synced, Status: yes, Reason: "Deployed", Message: "every native rule has its objects"}
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
		c.Message = fmt.Sprintf("no object enforces %s; convert the policy again and apply", strings.Join(lacking, ", "))
	}
	return c
}

func (s *subject) typeCheckedCondition(rules []report.RuleStatus) report.Condition {
	c := report.Condition{Type: typeChecked, Status: yes, Reason: "NoWarnings", Message: "the cluster's type checker has nothing to say"}
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

func (s *subject) paramsCondition() report.Condition {
	c := report.Condition{Type: paramsResolved, Status: yes, Reason: "NoParams", Message: "no binding needs params"}
	for _, n := range nativesOf(s.claims) {
		for _, b := range n.bindings {
			if b.Problem != nil {
				return report.Condition{Type: paramsResolved, Status: no, Reason: b.Problem.Reason, Message: b.Problem.Message}
			}
			if len(b.Params) > 0 {
				c.Reason, c.Message = "Found", "every binding finds its params"
			}
		}
	}
	return c
}

// enforcedCondition is what the objects show; only a request would prove it.
func (s *subject) enforcedCondition(now time.Time) report.Condition {
	c := report.Condition{Type: isEnforced, Status: yes, Reason: "RefreshDelayPassed",
		Message: "every object is bound, and is older than an API server takes to judge by it"}
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

// fallbackCondition is about the rules that have no native form, if there are any.
func fallbackCondition(rules []report.RuleStatus) (report.Condition, bool) {
	var left []string
	for _, r := range rules {
		if r.Target == report.Webhook {
			left = append(left, r.Name)
		}
	}
	return report.Condition{Type: fallbackActive, Status: unknown, Reason: "NotObserved",
		Message: "no PolicyTranslation says who judges " + strings.Join(left, ", ")}, len(left) > 0
}
