package mutate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
)

// Where an apply configuration says most of a patch, and an atomic list or map in it nothing can
// but a JSON patch, one mutation of each kind says it in fewer words than a JSON patch of all:
//
//	containers:
//	- (name): "*"
//	  securityContext:
//	    privileged: false          the apply configuration
//	    capabilities: {drop: [ALL]}  the JSON patch behind it
//
// The second sees what the first made. It is made only where that is the same to it: nothing that
// it reads or asks is what the first writes, and no element moves.

// parts are the mutations that make edits in two steps, where these are shorter than whole; none
// where they are not.
func (m *merging) parts(edits []edit, n *policy.Node, whole []mutating.Mutation) []mutating.Mutation {
	if !m.canMerge() || len(whole) != 1 || whole[0].Type != mutating.JSONPatch {
		return nil
	}
	first, second := m.split(edits)
	if len(first) == 0 || len(second) == 0 || moves(first) || moves(second) || m.meet(first, second) {
		return nil
	}
	behind := *m
	behind.given = m.makes(first)
	out := slices.Concat(m.mutations(first, n), behind.mutations(second, n))
	if len(out) != 2 || length(out)+secondMutation > length(whole) {
		return nil
	}
	return out
}

// secondMutation is what another mutation is worth, in characters.
const secondMutation = 60

func length(mutations []mutating.Mutation) (n int) {
	for _, m := range mutations {
		n += len(m.Expr.Short().String())
	}
	return n
}

// split parts edits into those that an apply configuration makes, and the others.
func (m *merging) split(edits []edit) (first, second []edit) {
	for _, e := range edits {
		how := m.Opts.Merging.Of(m.kind.Group, m.kind.Version, m.kind.Kind, e.path)
		a, b := e, e
		switch {
		case m.canApply([]edit{e}):
			first = append(first, e)
			continue
		case e.fields != nil && how.Known && !how.Atomic && e.key.IsZero():
			a.fields, b.fields = m.split(e.fields)
		case e.list != nil && m.canApply([]edit{e.withItems(func(itemEdit) []edit { return nil })}):
			a = e.withItems(func(i itemEdit) []edit { f, _ := m.split(i.fields); return f })
			b = e.withItems(func(i itemEdit) []edit { _, s := m.split(i.fields); return s })
		default:
			second = append(second, e)
			continue
		}
		if a.changes() {
			first = append(first, a)
		}
		if b.changes() {
			second = append(second, b)
		}
	}
	return first, second
}

// makes are the paths of maps that edits write something into, and make if they have to.
func (m *merging) makes(edits []edit) (out [][]string) {
	for _, e := range edits {
		if e.list != nil {
			for _, item := range e.list.items {
				out = append(out, m.makes(item.fields)...)
			}
		}
		if slices.ContainsFunc(e.fields, edit.isSet) {
			out = append(out, e.path)
		}
		out = append(out, m.makes(e.fields)...)
	}
	return out
}

// isSet tells of an edit that leaves something, whatever was there.
func (e edit) isSet() bool {
	if e.fields != nil {
		return slices.ContainsFunc(e.fields, edit.isSet)
	}
	return e.list == nil && !e.remove && e.when.IsTrue()
}

// withItems is an edit of a list with other edits of its elements.
func (e edit) withItems(fields func(itemEdit) []edit) edit {
	list := *e.list
	list.items = slices.Clone(list.items)
	for i := range list.items {
		list.items[i].fields = fields(list.items[i])
	}
	e.list = &list
	return e
}

// changes tells of an edit of fields, or of elements, that has some.
func (e edit) changes() bool {
	if e.list != nil {
		return slices.ContainsFunc(e.list.items, func(i itemEdit) bool { return len(i.fields) > 0 })
	}
	return len(e.fields) > 0
}

// moves tells of edits that write elements, or some of a list, which come to its front.
func moves(edits []edit) bool {
	return slices.ContainsFunc(edits, func(e edit) bool {
		return moves(e.fields) || e.list != nil && slices.ContainsFunc(e.list.items, func(i itemEdit) bool {
			return i.x.IsZero() || !i.chosen.IsTrue() || moves(i.fields)
		})
	})
}

// meet tells that what some edits write decides about others.
func (m *merging) meet(first, second []edit) bool {
	before, behind := m.effectOf(first, nil), m.effectOf(second, nil)
	return slices.ContainsFunc(behind.reads, func(r placedValue) bool { return r.meets(before.writes, map[string]cel.Value{}) }) ||
		slices.ContainsFunc(behind.writes, func(path []string) bool { return meets(path, before.writes) })
}
