package compile

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// FirstMutations is the first release that serves MutatingAdmissionPolicies of the version that
// is there to stay.
const FirstMutations = mutating.Stable

// tellOrder tells of policies that may write the same field of the same objects: an API server
// promises no order among them, as little as Kyverno does.
func (c *compilation) tellOrder(rules []*Rule) (found diag.List) {
	told := map[[2]*policy.Policy]bool{}
	owner := make([]*policy.Policy, len(c.mutating))
	sets := make([][]string, len(c.mutating))
	for _, r := range rules {
		for _, i := range r.Mutating {
			owner[i] = r.Policy
		}
	}
	for i, o := range c.mutating {
		for _, m := range o.Draft.Mutations {
			sets[i] = append(sets[i], m.Expr.Sets()...)
		}
	}
	for i, a := range c.mutating {
		for k, b := range c.mutating[:i] {
			p, q := owner[i], owner[k]
			path, both := sharedPath(sets[i], sets[k])
			if p == q || !both || told[[2]*policy.Policy{p, q}] || !mayMeet(a, b) {
				continue
			}
			told[[2]*policy.Policy{p, q}] = true
			found = append(found, diag.Warnf(p.Pos, diag.MutationOrder,
				"the policies %s and %s may both write %s of an object, and an API server promises no order among policies; put what depends on it into one policy", q.FullName(), p.FullName(), path))
			for _, r := range rules {
				if (r.Policy == p || r.Policy == q) && len(r.Mutating) > 0 && !slices.Contains(r.Codes, diag.MutationOrder) {
					r.Codes = append(r.Codes, diag.MutationOrder)
				}
			}
		}
	}
	return found
}

// sharedPath is a path that is in both lists, or above one that is.
func sharedPath(as, bs []string) (path string, ok bool) {
	for _, a := range as {
		for _, b := range bs {
			if strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/") {
				if len(a) > len(b) {
					a = b
				}
				return "/" + a, true
			}
		}
	}
	return "", false
}

// mayMeet tells whether two policies may be about one object, as far as their resources tell.
func mayMeet(a, b mutating.Objects) bool {
	shared := func(x, y []string) bool {
		return slices.Contains(x, "*") || slices.Contains(y, "*") || slices.ContainsFunc(x, func(s string) bool { return slices.Contains(y, s) })
	}
	any := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") })
	}
	return slices.ContainsFunc(a.Draft.Constraints.Rules, func(r vap.ResourceRule) bool {
		return slices.ContainsFunc(b.Draft.Constraints.Rules, func(s vap.ResourceRule) bool {
			return shared(r.Groups, s.Groups) && shared(r.Operations, s.Operations) && (any(r.Resources) || any(s.Resources) || shared(r.Resources, s.Resources))
		})
	})
}
