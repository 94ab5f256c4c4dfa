package interp

import (
	"maps"

	"github.com/kvap/kvap/policy"
)

// withExisting judges the new object and, where the rule enforces and allows
// existing violations, lets an update through whose old object violates the rule
// as well. Only the status counts: the violations may differ. What Kyverno calls
// an error, and no failure (deviation 2), neither excuses nor is excused.
func (val *validation) withExisting(c *check) verdict {
	val.filled = &filledPatterns{}
	now := val.judge(c)
	if now.kyverno != Fail || !val.rule.allowsExisting(val.review) {
		return now
	}
	if val.judgeOld(c).kyverno != Fail {
		return now
	}
	return say(Skip, "skipping the rule evaluation as pre-existing violations are allowed")
}

// allowsExisting tells whether a violation that was there before is let through:
// on updates, if the rule enforces. Overrides of the action do not count.
func (r *rule) allowsExisting(a *preparedRequest) bool {
	update := a.operation == "UPDATE" || a.operation == "" && a.object != nil && a.old != nil
	return update && r.Validate.AllowExisting && (actionOf(r, a) == policy.Enforce || r.policy.Rehearses(r.Rule))
}

// oldApplies tells whether the rule applies to the old object as if it were
// created by nobody in particular. Rules with preconditions never do, nor do
// those that match by user. What is created has no subresource, and is of the kind
// of the object itself: in a request for deployments/scale, of the kind Scale.
func (r *rule) oldApplies(a *preparedRequest) bool {
	return a.old != nil && r.Preconditions == nil && ruleApplies(r.policy, r.Rule, &filterInput{
		object: a.old, kind: objectKind(a.request.Admission), operation: "CREATE", user: nobody(), namespaceLabels: a.namespaceLabels,
	})
}

// nobody is whom Kyverno takes for the creator of the old object. No filter of match
// is about it; in exclude, wildcards are.
func nobody() user {
	return user{name: "kyverno:kyverno-invalid-controller", groups: []string{"kyverno:invalidgroup"}, bogus: true}
}

// judgeOld judges the old object as if it were created. Context entries that are
// loaded already, patterns and images keep the values that they have for the new
// one.
func (val *validation) judgeOld(c *check) verdict {
	if !val.rule.oldApplies(val.review) {
		return say(Skip, "the old object does not match")
	}
	old := *val
	old.object = val.review.old
	restore := val.vars.simulate(val.review.old)
	defer restore()
	return old.judge(c)
}

// simulate makes the request the creation of an object.
func (v *vars) simulate(object map[string]any) (restore func()) {
	before := v.request
	request := maps.Clone(before["request"].(map[string]any))
	request["object"], request["oldObject"], request["operation"] = object, map[string]any{}, "CREATE"
	v.request = maps.Clone(before)
	v.request["request"] = request
	return func() { v.request = before }
}
