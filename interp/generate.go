package interp

import (
	"context"
	"maps"

	"github.com/kvap/kvap/policy"
)

// A GenerateAction is what a request asks of a generate rule.
type GenerateAction string

// The actions. The empty one is nothing.
const (
	GenerateTargets GenerateAction = "generate"
	DeleteTargets   GenerateAction = "delete"
)

// A GenerateTrigger is what a request means to a generate rule. The status is Pass
// for an object that triggers the rule, Fail for one that no longer does, Skip where
// preconditions or exceptions keep it from it.
type GenerateTrigger struct {
	RuleResult
	Action GenerateAction
	// Trigger is the object that the action is about: the new one, or the old one
	// where that is no longer a trigger. It may not be changed.
	Trigger map[string]any
}

// GenerateTriggers tells what a request means to the generate rules, and to
// GeneratingPolicies, each of which is a rule with the name of the policy. What they
// generate is found out later, by Generate with the same request.
func (in *Interpreter) GenerateTriggers(ctx context.Context, req *Request) []GenerateTrigger {
	a := newReview(ctx, req, in.world, in.limits)
	var out []GenerateTrigger
	for _, p := range in.policies {
		if p.making != nil {
			out = append(out, p.making.triggered(in, a))
			continue
		}
		rules := p.generating(in)
		if len(rules) == 0 {
			continue
		}
		open, err := p.gate(a)
		done := !open
		for _, r := range rules {
			var t GenerateTrigger
			t.RuleResult = r.result(none())
			switch {
			case err != nil:
				t.RuleResult = r.result(say(Error, "%v", err))
			case !done:
				t = r.triggered(a)
				done = p.ApplyOne && t.Status != None && t.Status != Skip
			}
			out = append(out, t)
		}
	}
	return out
}

// A generateRule is a generate rule, read once for all requests.
type generateRule struct {
	*rule
	target *generateTarget // nil where there are loops
	loops  []*generateLoop
}

func (c *compiledPolicy) generating(in *Interpreter) []*generateRule {
	c.generateOnce.Do(func() {
		for _, r := range c.Rules {
			if r.Generate != nil {
				c.generateRules = append(c.generateRules, in.readGenerateRule(c.Policy, r))
			}
		}
	})
	return c.generateRules
}

func (in *Interpreter) readGenerateRule(p *policy.Policy, r *policy.Rule) *generateRule {
	out := &generateRule{rule: in.readRule(p, r)}
	if r.Invalid {
		return out
	}
	if len(r.Generate.ForEach) == 0 {
		out.target = readGenerateTarget(&r.Generate.GenerateTarget)
	}
	for _, f := range r.Generate.ForEach {
		out.loops = append(out.loops, readGenerateLoop(p, f))
	}
	return out
}

// result is a verdict of the rule.
func (r *rule) result(v verdict) RuleResult {
	out := RuleResult{Policy: r.policy.Name, Rule: r.Name, Status: v.status, Kyverno: v.kyverno, Message: v.message, Exceptions: v.exceptions}
	if r.policy.Namespaced() {
		out.Namespace = r.policy.Namespace
	}
	return out
}

// triggered says what a request means to a rule.
func (r *generateRule) triggered(a *preparedRequest) (out GenerateTrigger) {
	defer func() {
		if p := recover(); p != nil {
			out = GenerateTrigger{RuleResult: r.result(say(Error, "%v: %v", errPanic, p))}
		}
	}()
	v := r.decide(a)
	out.RuleResult = r.result(v)
	switch {
	case v.status == Pass:
		out.Action, out.Trigger = GenerateTargets, a.object
	case v.status != Fail:
	case a.operation == "DELETE" && listsOperation(r.Match, "DELETE"):
		out.Action, out.Trigger = GenerateTargets, a.old
	case r.Generate.Synchronize:
		out.Action, out.Trigger = DeleteTargets, a.old
	}
	return out
}

// decide is Pass for a trigger, and Fail for what was one.
func (r *generateRule) decide(a *preparedRequest) verdict {
	if r.Invalid {
		return say(Error, "the rule has errors; see what reading the policy reported")
	}
	isNow, was := r.appliesTo(a, a.object), r.appliesTo(a, a.old)
	switch {
	case a.labelsErr != nil:
		return say(Error, "%v", a.labelsErr)
	case !isNow && !was:
		return none()
	}
	v := newVars(a)
	if excepted := r.matchingExceptions(a, v); len(excepted) > 0 {
		return skipByExceptions(excepted)
	}
	if !isNow {
		return say(Fail, "the object is no longer a trigger")
	}
	holds, message, err := r.conditionsOf(a)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate preconditions: %v", err)
	case holds:
		return say(Pass, "the rule is triggered")
	}
	if a.old != nil {
		if held, _, err := r.conditionsOf(a.before()); err == nil && held {
			return say(Fail, "the object is no longer a trigger: %s", joinMessages("preconditions not met", message))
		}
	}
	return say(Skip, "%s", joinMessages("preconditions not met", message))
}

// appliesTo tells whether the rule is about an object of the request.
func (r *generateRule) appliesTo(a *preparedRequest, object map[string]any) bool {
	if object == nil {
		return false
	}
	s := a.subject()
	s.object = object
	return ruleApplies(r.policy, r.Rule, s)
}

// conditionsOf evaluates the preconditions of the rule.
func (r *generateRule) conditionsOf(a *preparedRequest) (bool, string, error) {
	v := newVars(a)
	v.defineImages(a, r.rule)
	v.defineAll(r.entries, a)
	return r.preconditions.holds(v)
}

// before is a review of the old object in the place of the new one.
func (a *preparedRequest) before() *preparedRequest {
	out := *a
	out.data = maps.Clone(a.data)
	if request, ok := a.data["request"].(map[string]any); ok {
		out.data["request"] = maps.Clone(request)
	}
	out.setObject(a.old)
	return &out
}
