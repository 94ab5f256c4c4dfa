package check

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/cel"
)

// A bound is what bindings of both kinds have.
type bound struct {
	object   *Object
	mutating bool
	policy   string
	match    *admissionregistrationv1.MatchResources
	param    *admissionregistrationv1.ParamRef
	actions  []admissionregistrationv1.ValidationAction
}

// boundOf is not ok for a policy.
func boundOf(o *Object) (bound, bool) {
	switch {
	case o.Binding != nil:
		spec := o.Binding.Spec
		return bound{object: o, policy: spec.PolicyName, match: spec.MatchResources, param: spec.ParamRef, actions: spec.ValidationActions}, true
	case o.MutatingBinding != nil:
		spec := o.MutatingBinding.Spec
		return bound{object: o, mutating: true, policy: spec.PolicyName, match: spec.MatchResources, param: spec.ParamRef}, true
	}
	return bound{}, false
}

// does tells that a binding has an action. What a MutatingAdmissionPolicy errs on is
// refused, whatever the binding says.
func (b bound) does(action admissionregistrationv1.ValidationAction) bool {
	return b.mutating && action == admissionregistrationv1.Deny || slices.Contains(b.actions, action)
}

// bindings are those of a policy, in the input and for a release that both are for.
func (c *checking) bindings(s *anyPolicy) []bound {
	var out []bound
	for _, o := range c.objects {
		b, ok := boundOf(o)
		if ok && b.policy == s.name && b.mutating == (s.object.Mutating != nil) && together(o, s.object) {
			out = append(out, b)
		}
	}
	return out
}

// together tells that two objects are for the same release.
func together(a, b *Object) bool {
	return len(a.Releases) == 0 || len(b.Releases) == 0 ||
		slices.ContainsFunc(a.Releases, func(r cel.Release) bool { return slices.Contains(b.Releases, r) })
}

// some tells that the input has an object of some sort.
func (c *checking) some(is func(*Object) bool) bool { return slices.ContainsFunc(c.objects, is) }

// lint looks for traps that are neither types nor cost.
func (c *checking) lint(r *Result, s *anyPolicy) {
	if b, ok := boundOf(r.Object); ok {
		c.lintBinding(r, b)
		return
	}
	newest := r.Releases[len(r.Releases)-1]
	set := c.of(newest).set
	bindings := c.bindings(s)
	c.lintUnbound(r, s, bindings)
	lintParams(r, s, bindings, set)
	lintBootstrap(r, s, bindings, set)
	lintSelectors(r, s.constraints, s.rules(), "spec.matchConstraints", set)
	lintRequest(r, s, set)
	lintAuthorizer(r, s)
	lintMessages(r, s, set)
	lintUnreachable(r, s)
	lintUnguarded(r, s, set)
	c.lintNull(r, s)
}
