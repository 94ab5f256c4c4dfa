package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/read"
)

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
