package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/read"
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

// Each mutation of a policy costs an API server as much as all its expressions do a hundred times:
// it converts the object for CEL, merges it and converts it back. So rules that do not depend on
// each other change it in one mutation, each behind its own conditions:
//
//	- {metadata: {labels: {a: b}}}       Object{metadata: Object.metadata{labels: {'a': 'b', ?'c': … }}}
//	- {metadata: {labels: {+(c): d}}}
//
// All of it is worked out from the object as it was. That is the same where nothing that one rule
// reads, asks or writes is what another one writes. Rules that change elements of the same list,
// and have them come to its front, do so one after the other.

// A step is what one mutation does, or one change that takes several.
type step struct {
	changes   []change
	members   []int
	edits     []edit // of all, each behind what its rule asks; nil where nobody knows them
	mutations []mutating.Mutation
	ignored   bool // it may be an error that is ignored, which would take the others with it
}

// isOne tells of a step that may be one with others: merges that take one mutation.
func (s step) isOne() bool {
	return len(s.mutations) == 1 && !s.ignored && !slices.ContainsFunc(s.changes, func(c change) bool { return c.rule.Mutate.Merge == nil })
}

// length is what a mutation that does the work of several rules may have in characters.
const (
	readableLength = 300
	packedLength   = 20_000
)

// step is a change by itself, behind a guard.
func (c change) step(member int, guard cel.Bool, ignores bool) step {
	out := step{changes: []change{c}, members: []int{member}, ignored: c.mayBeIgnored(ignores)}
	for k, m := range c.mutations {
		if k == 0 || !guard.IsTrue() { // the conditions are about the object as it is then
			m.Expr = m.Expr.Knowing(c.told())
		}
		m.Expr = cel.Simplify(behind(guard, m)).Short()
		out.mutations = append(out.mutations, m)
	}
	// && would swallow what errs in front of a field that is there already.
	if c.edits == nil || len(out.mutations) != 1 || c.pre.Errs {
		return out
	}
	if out.edits = c.edits; !guard.IsTrue() {
		out.edits = guarded(guard.Rooted(), c.edits)
	}
	return out
}

// mutationsOf are the mutations of steps.
func mutationsOf(steps []step) (out []mutating.Mutation) {
	for _, s := range steps {
		for _, m := range s.mutations {
			m.Member, m.Also = s.members[0], s.members[1:]
			out = append(out, m)
		}
	}
	return out
}

// together puts a change into a step before it where that is the same, or behind all.
func together(o *api.Options, steps []step, s step, longest int) []step {
	for i := len(steps) - 1; i >= 0 && s.isOne(); i-- {
		if one, ok := steps[i].with(o, s, longest); ok {
			steps[i] = one
			return steps
		}
		if !steps[i].isApart(s, false) {
			break
		}
	}
	return append(steps, s)
}

// with is a step that does what another one does too; false where none does that.
func (s step) with(o *api.Options, other step, longest int) (step, bool) {
	if !s.isOne() || !other.isOne() || s.mutations[0].Type != other.mutations[0].Type || length(s.mutations)+length(other.mutations) > 2*longest || !s.isApart(other, true) {
		return s, false
	}
	edits, ok := joined(s.edits, other.edits)
	if s.edits == nil || other.edits == nil || !ok {
		return s.beside(other, longest)
	}
	target := s.changes[0].target
	l := &read.Lowering{Opts: o, Release: read.Release(o.Release), Gathered: read.NewGathered(), Environment: read.Environment{Target: target, Binders: &cel.Scope{}}}
	m := &merging{Lowering: l, kind: target.GVK, gates: &[]cel.Bool{}}
	var made []mutating.Mutation
	if l.Attempt(func() { made = m.written(s.mutations[0].Type, edits) }) != nil || len(made) != 1 {
		return s, false
	}
	made[0].Pos = s.mutations[0].Pos
	made[0].Expr = cel.Simplify(made[0].Expr).Short()
	if length(made) > longest {
		return s, false
	}
	return step{changes: slices.Concat(s.changes, other.changes), members: slices.Concat(s.members, other.members), edits: edits, mutations: made}, true
}

// beside is a JSON patch with the operations of another one behind, where both are about different
// fields of a Pod's spec or metadata, which are there: what both make would be made twice.
func (s step) beside(other step, longest int) (step, bool) {
	if s.mutations[0].Type != mutating.JSONPatch || podSpecOf(s.changes[0].target.GVK) != "spec" || !s.isApart(other, false) {
		return s, false
	}
	for _, path := range s.writes() {
		for _, with := range other.writes() {
			if n := min(len(path), len(with), 2); slices.Equal(path[:n], with[:n]) {
				return s, false
			}
		}
	}
	made := slices.Clone(s.mutations)
	made[0].Expr = made[0].Expr.Plus(other.mutations[0].Expr).Short()
	if length(made) > longest {
		return s, false
	}
	return step{changes: slices.Concat(s.changes, other.changes), members: slices.Concat(s.members, other.members), mutations: made}, true
}

// writes are the paths that a step writes.
func (s step) writes() (out [][]string) {
	for _, c := range s.changes {
		out = append(out, c.effect().writes...)
	}
	return out
}

// written are edits as mutations of a type.
func (m *merging) written(t mutating.PatchType, edits []edit) []mutating.Mutation {
	if t == mutating.ApplyConfiguration {
		return []mutating.Mutation{{Type: t, Expr: cel.Struct("Object", m.structFields(edits, "Object")...)}}
	}
	return m.asOperations(edits, m.Pos)
}

// isApart tells that two steps have the same outcome in any order; or, with ordered, in this
// one, where elements that come to the front of a list do so in their order.
func (s step) isApart(other step, ordered bool) bool {
	return !slices.ContainsFunc(s.changes, func(c change) bool {
		return slices.ContainsFunc(other.changes, func(d change) bool { return !c.isApart(d, ordered) })
	})
}

func (c change) isApart(d change, ordered bool) bool {
	before, behind := c.effect(), d.effect()
	if before.never || behind.never {
		return false
	}
	writes := behind.writes
	if ordered {
		writes = slices.DeleteFunc(slices.Clone(writes), func(path []string) bool { return path[len(path)-1] == cel.Order })
	}
	return !slices.ContainsFunc(writes, func(path []string) bool { return meets(path, before.writes) }) && !c.asksFor(behind) && !d.asksFor(before)
}

// effect is all that a change does, and what decides about it.
func (c change) effect() (out effect) {
	for _, e := range c.effects {
		out.join(e)
	}
	return out
}

// asksFor tells that what an effect writes decides whether a change is made, and what or where.
func (c change) asksFor(e effect) bool {
	if slices.ContainsFunc(c.effect().orders, func(path []string) bool { return meets(path, e.writes) }) {
		return true
	}
	composed := byName(c.variables)
	reads := append(c.effect().reads, placedValue{c.match.Value, nil}, placedValue{c.pre.Expr.Value, nil})
	return slices.ContainsFunc(reads, func(r placedValue) bool { return r.meets(e.writes, composed) })
}

// writesElements tells of elements of lists that are written: a JSON patch of them is worked out anew.
func writesElements(edits []edit) bool {
	return slices.ContainsFunc(edits, func(e edit) bool {
		return writesElements(e.fields) || e.list != nil && slices.ContainsFunc(e.list.items, func(i itemEdit) bool { return i.x.IsZero() || writesElements(i.fields) })
	})
}

// joined are edits of two rules in one tree; false where it cannot have both.
func joined(a, b []edit) ([]edit, bool) {
	out := slices.Clone(a)
	for _, e := range b {
		i := slices.IndexFunc(out, func(o edit) bool { return e.key.IsZero() && o.key.IsZero() && o.name == e.name })
		if i < 0 {
			out = append(out, e)
			continue
		}
		both, ok := out[i].with(e)
		if !ok {
			return nil, false
		}
		out[i] = both
	}
	slices.SortStableFunc(out, func(a, b edit) int { return strings.Compare(a.name, b.name) })
	return out, true
}

// with is what two rules make of one field.
func (e edit) with(other edit) (edit, bool) {
	ok := false
	switch {
	case e.fields != nil && other.fields != nil:
		a, b := e.fields, other.fields
		if !sameGuard(e.guard, other.guard) {
			a, b = guarded(e.guard, a), guarded(other.guard, b)
			// Where one rule changes nothing in it, all that it would add is there, and so is the map.
			e.guard = either(e.guard, other.guard)
		}
		e.fields, ok = joined(a, b)
	case e.list != nil && other.list != nil:
		if !e.isOfTemplates() || !other.isOfTemplates() || !cel.Equal(e.list.items[0].x, other.list.items[0].x) {
			return e, false
		}
		list := *e.list
		list.items = slices.Concat(e.ownItems(), other.ownItems())
		e.list, e.guard = &list, cel.Bool{}
		var fields []edit
		ok = true
		for _, item := range list.items {
			if ok {
				fields, ok = joined(fields, item.guarded())
			}
		}
	}
	return e, ok
}

// isOfTemplates tells of a list of which there are templates of all elements, which no API
// server has two of one key of.
func (e edit) isOfTemplates() bool {
	return !slices.ContainsFunc(e.list.items, func(i itemEdit) bool { return i.x.IsZero() }) && e.list.unique
}

// ownItems are the templates of a list, each behind what the list was behind.
func (e edit) ownItems() []itemEdit {
	out := slices.Clone(e.list.items)
	for i := range out {
		out[i].guard = both(e.guard, out[i].guard)
	}
	return out
}

// front is what holds of the elements that come to the front for a template.
func (i itemEdit) front() cel.Bool {
	if i.guard.IsZero() || i.chosen.IsTrue() { // all of them move to where they are
		return i.chosen
	}
	return cel.And(i.guard, i.chosen)
}

// guarded are the edits of an element, behind what the template asks.
func (i itemEdit) guarded() []edit {
	guard := i.guard
	if !i.asked.IsTrue() {
		guard = both(guard, i.asked)
	}
	return guarded(guard, i.fields)
}

// guarded are edits behind a guard; zero is none.
func guarded(guard cel.Bool, edits []edit) []edit {
	out := slices.Clone(edits)
	for i := range out {
		out[i].guard = both(guard, out[i].guard)
	}
	return out
}

func sameGuard(a, b cel.Bool) bool {
	return a.IsZero() == b.IsZero() && (a.IsZero() || cel.Equal(a.Value, b.Value))
}

// both is two guards, of which zero asks nothing.
func both(a, b cel.Bool) cel.Bool {
	switch {
	case a.IsZero():
		return b
	case b.IsZero():
		return a
	}
	return cel.And(a, b)
}

// either is one of two guards.
func either(a, b cel.Bool) cel.Bool {
	if a.IsZero() || b.IsZero() {
		return cel.Bool{}
	}
	return cel.Or(a, b)
}

// workedOut are edits of which all values are known as both mutations have them: what lowers a
// rule is not there any more when it comes together with others.
func (m *merging) workedOut(edits []edit, typ string) []edit {
	out := slices.Clone(edits)
	for i := range out {
		e := &out[i]
		inner := ""
		if typ != "" {
			inner = typ + "." + e.name
		}
		switch {
		case e.list != nil:
			*e = e.withItems(func(item itemEdit) []edit { return m.workedOut(item.fields, inner) })
		case e.fields != nil:
			if e.at.Kind() == schema.Map {
				inner = ""
			}
			e.fields = m.workedOut(e.fields, inner)
		case e.value != nil && e.set.IsZero():
			e.plain, e.struck = written(m.Lowering, e.value, e.at.Typ, ""), written(m.Lowering, e.value, e.at.Typ, inner)
		}
	}
	return out
}
