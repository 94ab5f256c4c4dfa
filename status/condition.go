package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
)

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
	if len(s.claims) == 0 && !s.controlled() {
		return report.Condition{Type: v1alpha1.ConditionReady, Status: unknown, Reason: "NotDeployed", Message: "no native object enforces this policy"}
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
		c.Message = fmt.Sprintf("no object enforces %s; convert the policy again and apply", strings.Join(lacking, ", "))
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
		Message: "no controller says who judges " + strings.Join(left, ", ")}
}
