package mutate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// What a mutate rule asks before it changes anything becomes match conditions where the rule has
// its policy object for itself; where others share it, each mutation asks. What has been asked is
// not asked again in what is made.

// inlined is a condition with the variables written out, for match conditions, which have none.
func (c change) inlined(b cel.Bool) cel.Bool {
	return vap.Inlined(b.Value, c.variables).AsBool()
}

// told is what holds where a mutation is made.
func (c change) told() cel.Bool {
	return c.inlined(c.guard())
}

// asked makes match conditions of what a change asks, where it is alone and they can ask it;
// guard is the rest.
func (c change) asked(d *mutating.Draft, alone bool) (guard cel.Bool) {
	if !alone || native.Mentions(c.told().Value, "namespaceObject") {
		return c.guard()
	}
	if !c.match.IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: c.rule.Match.Pos, Name: "match", Expr: c.inlined(c.match).Rooted(), Sound: true})
	}
	if !c.pre.Expr.IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: c.rule.Mutate.Pos, Name: "preconditions", Expr: c.inlined(c.pre.Expr).Rooted(), Sound: !c.pre.Errs})
	}
	return cel.True()
}

// guard is all that a change asks.
func (c change) guard() cel.Bool { return partial.Sure(c.match).Then(c.pre).Expr }

// mayBeIgnored tells that a change may be an error which a failure policy ignores.
func (c change) mayBeIgnored(ignores bool) bool { return ignores && (c.errs || c.pre.Errs) }

// asksAgain tells of a patch in several steps behind conditions about the object, which would be
// asked of what the first step has made of it.
func (c change) asksAgain(guard cel.Bool) bool {
	return len(c.mutations) > 1 && native.Mentions(guard.Value, "object")
}

// behind is a mutation that is made where guard holds.
func behind(guard cel.Bool, m mutating.Mutation) cel.Value {
	if guard.IsTrue() {
		return m.Expr
	}
	return cel.Cond(guard.Rooted(), m.Expr, nothing(m.Type))
}

// nothing is what changes nothing.
func nothing(kind mutating.PatchType) cel.Value {
	if kind == mutating.ApplyConfiguration {
		return cel.Struct("Object")
	}
	return cel.List()
}

// unread is what filling in a patch demands, and it does not look for itself when it is made: a
// mutation that reads what is not there is an error too. That is so where nothing is asked in
// between. What is demanded it reads then, and does not ask for.
func unread(l *read.Lowering, p patch) (left read.Demands, some bool) {
	if len(p.mutations) != 1 || !p.asked.Expr.IsTrue() {
		return p.filling, false
	}
	left = p.filling
	all := left.All()
	m := &p.mutations[0]
	m.Expr = m.Expr.Knowing(all)
	rest := m.Expr.AsBool().Unread(all, func(name string) (cel.Value, bool) { return read.Defined(l, name) })
	left.Conds, left.Loads = []cel.Bool{rest}, nil
	return left, !cel.Equal(rest.Value, all.Value)
}
