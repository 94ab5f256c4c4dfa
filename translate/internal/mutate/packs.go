package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// A policy object of several policies has the rules on one kind that agree in all that an object
// has once. Which objects a policy is in is decided by what it says, and by nothing else. Between
// objects of their own an API server would promise no order; here it is that of the input.

// A Unit is what the rules of a policy change of one kind, in their order.
type Unit struct {
	Draft   *mutating.Draft // in which they are when nothing is shared
	Rules   []int           // their indexes in the policy
	policy  *policy.Policy
	targets []native.Target
	changes []change
	shares  bool // an object with other units
}

// unitOf is the unit of a draft.
func (w *mutateRules) unitOf(d sharedDraft) Unit {
	out := Unit{Draft: d.Draft, Rules: d.rules, policy: w.policy, changes: d.same[0].changes, shares: w.opts.PackMutations && !w.policy.Namespaced()}
	for _, m := range d.same {
		out.shares = out.shares && !isVague(m.target)
		if !slices.ContainsFunc(out.targets, func(t native.Target) bool { return t.Key() == m.target.Key() }) {
			out.targets = append(out.targets, m.target)
		}
	}
	out.shares = out.shares && !slices.ContainsFunc(out.changes, func(c change) bool {
		return len(c.conditions) > 0 || len(c.variables) > 0 || c.params != nil || c.asksAgain(c.guard())
	})
	return out
}

// attributes are what a policy object has once.
func (u Unit) attributes() string {
	first := u.changes[0]
	parts := []string{native.SelectorKey(first.selector), string(u.policy.FailurePolicy), u.Draft.Reinvocation, strings.Join(first.reaches, ",")}
	for _, r := range u.Draft.Constraints.Rules {
		for _, of := range [][]string{r.Groups, r.Versions, r.Resources, r.Operations, r.Names, {r.Scope}} {
			parts = append(parts, strings.Join(of, ","))
		}
	}
	return strings.Join(parts, "\x02")
}

// membersOfPack is how many rules an object has at most.
const membersOfPack = 100

// Shared are the drafts that units share, by those that they have alone.
type Shared map[*mutating.Draft]*mutating.Draft

// In are drafts of rules alone, or in their place those that are shared.
func (s Shared) In(alone []*mutating.Draft) (out []*mutating.Draft) {
	for _, d := range alone {
		if pack := s[d]; pack != nil {
			d = pack
		}
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// Packs are what units share.
func Packs(units []Unit, o *api.Options) Shared {
	var packs [][]Unit
	last := map[string]int{} // the pack that goes on, by attributes
	var changes [][]change   // of each pack
	for _, u := range units {
		if !u.shares {
			continue
		}
		i, ok := last[u.attributes()]
		if !ok || len(changes[i])+len(u.changes) > membersOfPack || slices.ContainsFunc(u.changes, func(c change) bool { return c.asksForZero(changes[i]) }) {
			i = len(packs)
			last[u.attributes()] = i
			packs, changes = append(packs, nil), append(changes, nil)
		}
		packs[i], changes[i] = append(packs[i], u), append(changes[i], u.changes...)
	}
	out := Shared{}
	used := map[string]bool{}
	for _, units := range packs {
		d := packed(units, o, used)
		for _, u := range units {
			out[u.Draft] = d
		}
	}
	return out
}

// packed is the draft of a pack.
func packed(units []Unit, o *api.Options, used map[string]bool) *mutating.Draft {
	first := units[0]
	var changes []change
	var policies []*policy.Policy
	for _, u := range units {
		changes = append(changes, u.changes...)
		if !slices.Contains(policies, u.policy) {
			policies = append(policies, u.policy)
		}
	}
	d := &mutating.Draft{Draft: vap.Draft{
		Base: nameOfPack(first, used), FailurePolicy: string(first.policy.FailurePolicy),
		Constraints: first.Draft.Constraints,
		Bindings:    []vap.Binding{{Reaches: first.changes[0].reaches}},
	}, Reinvocation: first.Draft.Reinvocation, Repeatable: true, Shared: true}
	for _, u := range units {
		d.Repeatable = d.Repeatable && u.Draft.Repeatable
		if len(d.Collapsed) == 0 {
			d.Collapsed = u.Draft.Collapsed
		}
		for _, c := range u.changes {
			d.Members = append(d.Members, vap.Member{Pos: c.rule.Pos, Policy: native.MemberName(u.policy), Rule: c.rule.Name, Origin: c.rule.Origin})
		}
	}
	alone, ignores := len(changes) == 1, first.policy.FailurePolicy == policy.Ignore
	guards := make([]cel.Bool, len(changes))
	for i, c := range changes {
		guards[i] = c.asked(d, alone)
	}
	for _, longest := range []int{packedLength, 0} { // where the server does not take one for all, each has its own
		var steps []step
		for i, c := range changes {
			steps = together(o, steps, c.step(i, guards[i], ignores), longest)
		}
		d.Mutations = mutationsOf(steps)
		nameParts(d)
		if o.Checker == nil || refusedMutations(d, o) == nil {
			break
		}
		d.Variables = nil
	}
	pack.Describe(&d.Draft, policies...)
	return d
}

// nameOfPack says what is in a pack, and nothing of the policies.
func nameOfPack(u Unit, used map[string]bool) string {
	parts := []string{"change"}
	if ops := u.Draft.Constraints.Rules[0].Operations; len(ops) == 1 {
		parts = append(parts, strings.ToLower(ops[0]))
	}
	if u.Draft.Reinvocation != mutating.IfNeeded {
		parts = append(parts, "once")
	}
	if u.policy.FailurePolicy == policy.Ignore {
		parts = append(parts, "ignore")
	}
	key := ""
	if !u.changes[0].selector.IsEmpty() || slices.ContainsFunc(u.targets, func(t native.Target) bool { return t.Parent != u.targets[0].Parent }) {
		key = u.attributes()
	}
	return pack.NameOfPack(u.targets[0], used, key, append(parts, u.changes[0].reaches...)...)
}
