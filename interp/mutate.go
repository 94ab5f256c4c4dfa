package interp

import (
	"context"
	"maps"

	"github.com/kvap/kvap/interp/internal/jsonpatch"
	"github.com/kvap/kvap/policy"
)

// A MutationResult is what mutate rules make of a request.
type MutationResult struct {
	// Rules has a result for every mutate rule, in the order in which they run.
	Rules []RuleMutation
	// Before is the object of the request, and After what it is after all rules.
	// They are nil where the request has no object. Neither may be changed.
	Before, After map[string]any
}

// Changed tells whether the object is another.
func (m *MutationResult) Changed() bool { return !sameObject(m.Before, m.After) }

// Patch is a JSON patch that makes After of Before.
func (m *MutationResult) Patch() []PatchOperation { return diffObjects(m.Before, m.After) }

// A RuleMutation is what one mutate rule, or a form of a MutatingPolicy, makes of an
// object. Its Status is never Fail. It is Pass if a rule changed the object, and Skip if it
// had nothing to change; that of a MutatingPolicy is Pass either way.
type RuleMutation struct {
	RuleResult
	// Before and After are the object in front of the rule and behind it. They are
	// the same unless the rule passed. Neither may be changed.
	Before, After map[string]any

	idle bool
}

// Idle reports whether the rule is about the object, and the object is as the rule makes it.
func (m *RuleMutation) Idle() bool {
	return m.idle || m.Status == Pass && sameObject(m.Before, m.After)
}

// Patch is a JSON patch of what the rule changed.
func (m *RuleMutation) Patch() []PatchOperation { return diffObjects(m.Before, m.After) }

// A PatchOperation is a step of a JSON patch.
type PatchOperation = jsonpatch.Operation

func diffObjects(before, after map[string]any) []PatchOperation {
	if sameObject(before, after) {
		return nil
	}
	return jsonpatch.Diff(before, after)
}

// Mutate lets the mutate rules of all policies change the object of a request, one
// after the other, each with what the ones before made of it. Rules with targets
// change other objects, and nothing here.
//
// A policy in which a rule errs leaves the object as it was: what its other rules
// did shows in their results only. Whether the request is then refused is the
// caller's to decide.
func (in *Interpreter) Mutate(ctx context.Context, req *Request) *MutationResult {
	a := newReview(ctx, req, in.world, in.limits)
	a.object, a.asked = withoutOwnNamespace(a.object), withoutOwnNamespace(a.asked)
	out := &MutationResult{Before: a.object}
	for _, p := range in.policies {
		before := a.object
		var results []RuleMutation
		switch {
		case p.Mutating != nil:
			results = in.mutateInCEL(a, p)
		case !p.InCEL():
			results = in.mutatePolicy(a, p)
		}
		out.Rules = append(out.Rules, results...)
		for _, r := range results {
			if r.Status == Error {
				a.setObject(before)
				break
			}
		}
	}
	out.After = a.object
	return out
}

func (in *Interpreter) mutatePolicy(a *preparedRequest, p *compiledPolicy) []RuleMutation {
	rules := p.mutations(in)
	if len(rules) == 0 {
		return nil
	}
	out := make([]RuleMutation, len(rules))
	open, err := p.gate(a)
	done := !open
	for i, r := range rules {
		m := RuleMutation{Before: a.object, After: a.object}
		m.Policy, m.Rule, m.Status, m.Kyverno = p.Name, r.Name, None, None
		if p.Namespaced() {
			m.Namespace = p.Namespace
		}
		if err != nil && !a.deletes() {
			m.Status, m.Kyverno, m.Message = Error, Error, err.Error()
		}
		if !done {
			verdict, after := r.run(a)
			if a.deletes() { // nothing is changed that goes away: no server asks
				verdict = verdictOfKyverno(verdict.kyverno)
			}
			m.Status, m.Kyverno, m.Message = verdict.status, verdict.kyverno, verdict.message
			m.Exceptions, m.Code, m.idle = verdict.exceptions, verdict.code, verdict.idle
			if verdict.status == Pass {
				m.After = after
				a.setObject(after)
			}
			done = p.ApplyOne && verdict.status == Pass
		}
		out[i] = m
	}
	return out
}

// withoutOwnNamespace is an object that is in no namespace if it is one: some
// clients send a Namespace as if it were in itself.
func withoutOwnNamespace(object map[string]any) map[string]any {
	if object["kind"] != "Namespace" || metaText(object, "namespace") == "" {
		return object
	}
	meta := maps.Clone(digMap(object, "metadata"))
	delete(meta, "namespace")
	object = maps.Clone(object)
	object["metadata"] = meta
	return object
}

// setObject puts another object in the place of the request's.
func (a *preparedRequest) setObject(object map[string]any) {
	a.object = object
	if request, ok := a.data["request"].(map[string]any); ok && object != nil {
		request["object"] = object
	}
}

// mutations are the mutate rules that run at admission. Those for pod controllers
// are tried on every object; what they match decides.
func (c *compiledPolicy) mutations(in *Interpreter) []*mutateRule {
	c.mutateOnce.Do(func() {
		for _, r := range policy.Expand(c.Policy) {
			if r.Mutate != nil && !r.Mutate.Existing {
				c.mutateRules = append(c.mutateRules, in.readMutateRule(c.Policy, r))
			}
		}
	})
	return c.mutateRules
}

// A mutateRule is a mutate rule, read once for all requests.
type mutateRule struct {
	*rule
	body *mutateBody
}

func (in *Interpreter) readMutateRule(p *policy.Policy, r *policy.Rule) *mutateRule {
	out := &mutateRule{rule: in.readRule(p, r)}
	if !r.Invalid {
		out.body = readMutateBody(p, r.Mutate.Patch, r.Mutate.ForEach, "request.object")
	}
	return out
}

// run says what a rule makes of a request. Whatever goes wrong in it stays in it.
func (r *mutateRule) run(a *preparedRequest) (out verdict, after map[string]any) {
	before := a.object
	defer func() {
		if p := recover(); p != nil {
			out, after = say(Error, "%v: %v", errPanic, p), before
		}
		if out.status != Pass {
			// Kyverno goes on with an empty object, which no later rule matches
			// (deviation 14).
			a.setObject(before)
			after = before
		}
	}()
	if err := givenUp(a.ctx); err != nil {
		return say(Error, "%v", err), nil
	}
	if r.Invalid {
		return say(Error, "the rule has errors; see what reading the policy reported"), nil
	}
	begun, v := r.begin(a)
	if begun.status != Pass {
		return begun, nil
	}
	m := &mutateRun{vars: v, review: a, left: maxElements, now: a.object, show: a.setObject}
	if a.object == nil { // on DELETE: a patch of nothing errs, a loop over nothing does not
		m.now, m.show = map[string]any{}, func(map[string]any) {}
	}
	return r.body.patch(m)
}

// begin tells whether a mutate rule has something to do for a request: it passes with
// the variables that the rule then has.
func (r *rule) begin(a *preparedRequest) (verdict, *vars) {
	applicable := ruleApplies(r.policy, r.Rule, a.subject())
	observe(a.ctx, Observation{Rule: r.Name, Holds: applicable, Err: a.labelsErr})
	switch {
	case a.namespaceUnknown() && mayApply(r.policy, r.Rule, a.subject()):
		return unknownNamespace(), nil
	case a.labelsErr != nil:
		return say(Error, "%v", a.labelsErr), nil
	case !applicable:
		return none(), nil
	}
	v := newVars(a)
	v.defineImages(a, r)
	v.defineAll(r.entries, a)
	applies, message, err := r.preconditions.holds(v)
	switch {
	case err != nil:
		return say(Error, "failed to evaluate preconditions: %v", err), nil
	case !applies:
		return say(Skip, "%s", joinMessages("preconditions not met", message)), nil
	}
	if r.mayBeExcepted(a, v) {
		return unknownNamespace(), nil
	}
	if excepted := r.matchingExceptions(a, v); len(excepted) > 0 {
		return skipByExceptions(excepted), nil
	}
	return say(Pass, "the rule is triggered"), v
}
