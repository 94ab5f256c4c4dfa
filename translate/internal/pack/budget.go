package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// packBudget is a third of what the API server lets the validations of one policy
// and binding cost (10 million): a pack keeps a wide margin, for an error of the
// estimate and for objects larger than any that it assumes.
const packBudget = 10_000_000 / 3

// packMembers bounds a pack by what a person can still read, and by what an object
// says of its members.
const packMembers = 100

// longestGuard is how long a guard is at most on one line. The API server parses
// expressions of 100,000 characters; broken into lines, they are longer.
const longestGuard = 60_000

// withinBudget splits a group whose members would together cost too much. A member
// that is too costly alone is alone. The others are split by their names.
func (g group) withinBudget(o Options) []group {
	if g.byKind && len(g.units) == 1 { // and it stays alone when others come
		g.alone = g.costly(o)
	}
	if g.fits(o) {
		return []group{g}
	}
	var out []group
	var others []Unit
	for _, u := range g.units {
		one := g.with([]Unit{u})
		if one.costly(o) {
			one.alone = true
			out = append(out, one)
		} else {
			others = append(others, u)
		}
	}
	if len(others) > 0 {
		out = append(g.with(others).split(o, letters{last: lastSymbol}), out...)
	}
	return out
}

func (g *group) fits(o Options) bool {
	return len(g.units) == 1 || len(g.units) <= packMembers && !g.costly(o)
}

// costly tells that the API server might stop evaluating the validations of a
// group, or its guard, on an object that people could write; or that the guard is
// so long that it would be left out.
func (g *group) costly(o Options) bool {
	var spent int64
	for _, u := range g.units {
		spent += u.cost()
	}
	if spent > packBudget {
		return true
	}
	g.made = g.draft(o)
	guard := g.made.Guard
	if guard.IsZero() || guard.IsTrue() {
		return false
	}
	return len(guard.String()) > longestGuard || slices.ContainsFunc(g.worstCases(), func(w worstCase) bool {
		return w.exceeds(guard.Value, guardBudget)
	})
}

// worstCases are those of the group's targets.
func (g group) worstCases() []worstCase {
	bound := boundOf(g.units[0].failurePolicy())
	var out []worstCase
	for _, t := range g.targets {
		out = append(out, newWorstCase(bound, t.Body, native.PodOf(t.Target)))
	}
	return out
}

// withoutCostlyGuard takes the guard of a draft away where it may cost more than the
// API server allows, and none of the expressions behind it costs as much: only
// then would it be to blame for an error. Only a rule that is alone can have such
// a guard.
func (g group) withoutCostlyGuard(d *vap.Draft) {
	if len(g.units) > 1 || d.Guard.IsZero() || d.Guard.IsTrue() {
		return
	}
	for _, w := range g.worstCases() {
		if !w.exceeds(d.Guard.Value, guardBudget) {
			continue
		}
		place, cost := w.dearest(d.Guard.Value)
		// mostly that is what the guard guards, and what fills it costs that as much
		asMuch := func(v cel.Value) bool {
			if w.costAt(v, place) >= cost {
				return true
			}
			_, most := w.dearest(v)
			return most >= cost
		}
		if !slices.ContainsFunc(d.Validations, func(v vap.Validation) bool { return asMuch(v.Expr.Value) }) &&
			!slices.ContainsFunc(d.Variables, func(v vap.Variable) bool { return asMuch(v.Expr) }) {
			d.Unguard()
			return
		}
	}
}
