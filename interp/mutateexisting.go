package interp

import (
	"context"
	"fmt"
	"slices"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/policy"
)

// A TargetMutation is what a rule makes of one existing object. Where its status is
// Pass, After is to be written in the place of Before, at its subresource if it
// names one.
type TargetMutation struct {
	RuleMutation
	APIVersion, Kind, Subresource string
}

// Triggered tells which rules with targets, and MutatingPolicies that change existing
// objects, a request triggers: their status is Pass. Skip is that of a rule whose preconditions or exceptions keep it from it.
// What they change is found out later, by MutateExisting with the same request.
func (in *Interpreter) Triggered(ctx context.Context, req *Request) []RuleResult {
	a := newReview(ctx, req, in.world, in.limits)
	var out []RuleResult
	for _, p := range in.policies {
		if p.Mutating != nil && p.Mutating.Existing {
			out = append(out, p.changing[0].triggered(in, a))
			continue
		}
		open, err := p.gate(a)
		done := !open
		for _, r := range p.existing(in) {
			result := RuleResult{Policy: p.Name, Rule: r.Name, Status: None, Kyverno: None}
			if p.Namespaced() {
				result.Namespace = p.Namespace
			}
			verdict := none()
			switch {
			case err != nil:
				verdict = say(Error, "%v", err)
			case !done:
				verdict, _ = r.trigger(a)
				done = p.ApplyOne && verdict.status == Pass
			}
			result.Status, result.Kyverno, result.Message = verdict.status, verdict.kyverno, verdict.message
			result.Exceptions = verdict.exceptions
			out = append(out, result)
		}
	}
	return out
}

// MutateExisting is what a rule with targets wants of the objects that it selects,
// when the request triggers it. Nothing is written; nil comes back where the request
// does not trigger the rule. The policy goes by its full name.
func (in *Interpreter) MutateExisting(ctx context.Context, req *Request, fullName, rule string, objects ObjectReader) []TargetMutation {
	a := newReview(ctx, req, in.world, in.limits)
	for _, p := range in.policies {
		if p.FullName() != fullName {
			continue
		}
		if p.Mutating != nil && p.Mutating.Existing && p.Name == rule {
			return p.changing[0].mutateTargets(in, a, objects)
		}
		for _, r := range p.existing(in) {
			if r.Name == rule {
				return r.mutateTargets(a, p, objects)
			}
		}
	}
	return nil
}

// existing are the rules with targets.
func (c *compiledPolicy) existing(in *Interpreter) []*existingRule {
	c.existingOnce.Do(func() {
		for _, r := range c.Rules {
			if r.Mutate == nil || !r.Mutate.Existing {
				continue
			}
			e := &existingRule{rule: in.readRule(c.Policy, r)}
			if !r.Invalid {
				e.body = readMutateBody(c.Policy, r.Mutate.Patch, r.Mutate.ForEach, "target")
				for _, t := range r.Mutate.Targets {
					e.targets = append(e.targets, readTarget(c.Policy, t))
				}
			}
			c.existingRules = append(c.existingRules, e)
		}
	})
	return c.existingRules
}

// An existingRule is a mutate rule with targets, read once.
type existingRule struct {
	*rule
	body    *mutateBody
	targets []*mutateTarget
}

// trigger tells whether a request triggers the rule, with the variables that the
// rule then has.
func (r *existingRule) trigger(a *preparedRequest) (out verdict, v *vars) {
	defer func() {
		if p := recover(); p != nil {
			out, v = say(Error, "%v: %v", errPanic, p), nil
		}
	}()
	if r.Invalid {
		return say(Error, "the rule has errors; see what reading the policy reported"), nil
	}
	if a.operation == "DELETE" && !listsOperation(r.Match, "DELETE") {
		return none(), nil
	}
	return r.begin(a)
}

// listsOperation tells whether a filter of a block names an operation.
func listsOperation(b *policy.MatchBlock, operation string) bool {
	if b == nil {
		return false
	}
	filters := append(slices.Clone(b.Any), b.All...)
	if b.Legacy != nil {
		filters = append(filters, b.Legacy)
	}
	return slices.ContainsFunc(filters, func(f *policy.Filter) bool { return slices.Contains(f.Operations, operation) })
}

func (r *existingRule) mutateTargets(a *preparedRequest, p *compiledPolicy, objects ObjectReader) (out []TargetMutation) {
	named := func(verdict verdict) TargetMutation {
		var m TargetMutation
		m.Policy, m.Rule = p.Name, r.Name
		if p.Namespaced() {
			m.Namespace = p.Namespace
		}
		m.Status, m.Kyverno, m.Message, m.Exceptions = verdict.status, verdict.kyverno, verdict.message, verdict.exceptions
		return m
	}
	verdict, v := r.trigger(a)
	switch {
	case verdict.status == None:
		return nil
	case verdict.status != Pass:
		return []TargetMutation{named(verdict)}
	}
	for _, t := range r.targets {
		s, err := t.selection(v, p.Policy)
		var found []map[string]any
		if err == nil {
			found, err = s.find(v, objects)
		}
		if err != nil {
			out = append(out, named(say(Error, "failed to find the targets: %v", err)))
			continue
		}
		for _, object := range found {
			verdict, after := r.mutateTarget(t, v, a, object)
			m := named(verdict)
			m.APIVersion, m.Kind, m.Subresource = digText(object, "apiVersion"), s.kind, s.subresource
			m.Before, m.After = object, after
			out = append(out, m)
		}
	}
	return out
}

// mutateTarget changes one object. Expressions see it as target; request.object
// stays the trigger. Kyverno puts the target in its place behind a loop.
func (r *existingRule) mutateTarget(t *mutateTarget, v *vars, a *preparedRequest, object map[string]any) (out verdict, after map[string]any) {
	depth := len(v.levels)
	defer func() {
		if p := recover(); p != nil {
			out = say(Error, "%v: %v", errPanic, p)
		}
		if out.status != Pass {
			after = object
		}
		for len(v.levels) > depth {
			v.pop()
		}
	}()
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err), nil
	}
	theRequests := expr.Provenance{Origin: expr.OfRequest}
	level := v.push(map[string]expr.Value{"target": {Data: object, From: theRequests}})
	v.defineAll(t.entries, a)
	applies, message, err := t.preconditions.holds(v)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate preconditions: %v", err), nil
	case !applies:
		return say(Skip, "%s", joinMessages("preconditions not met", message)), nil
	}
	return r.body.patch(&mutateRun{vars: v, review: a, left: maxElements, now: object, show: func(o map[string]any) {
		level.values["target"] = expr.Value{Data: o, From: theRequests}
	}})
}

// named is what a message calls an object.
func namedObject(object map[string]any) string {
	text := fmt.Sprintf("%v/%s", object["kind"], objectName(object))
	if namespace := metaText(object, "namespace"); namespace != "" {
		text += " in namespace " + namespace
	}
	return text
}
