package translate

import (
	"hash/fnv"
	"io"
	"slices"
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// packBudget is a third of what the API server lets the validations of one policy
// and binding cost (10 million): a pack keeps a wide margin, for an error of the
// estimate and for objects larger than any that it assumes.
const packBudget = 10_000_000 / 3

// packMembers bounds a pack by what a person can still read.
const packMembers = 50

// withinBudget splits a group whose members would together cost too much. A member
// that is too costly alone is alone. The others are halved by a hash of their names,
// and again, until they fit: so one that changes, comes or goes moves no other.
func (g group) withinBudget(o *Options) []group {
	if g.fits(o) {
		return []group{g}
	}
	var out []group
	rest := g
	rest.units = nil
	for _, u := range g.units {
		one := g
		one.units = []unit{u}
		if one.costly(o) {
			one.alone = true
			out = append(out, one)
		} else {
			rest.units = append(rest.units, u)
		}
	}
	return append(rest.halved(o), out...)
}

func (g group) halved(o *Options) []group {
	if len(g.units) == 0 {
		return nil
	}
	if g.fits(o) || len(g.half) == maxHalvings {
		return []group{g}
	}
	halves := []group{g, g}
	for i := range halves {
		halves[i].units, halves[i].half = nil, g.half+strconv.Itoa(i)
	}
	for _, u := range g.units {
		i := hashOf(memberName(u.policy), u.rule.Name) >> len(g.half) & 1
		halves[i].units = append(halves[i].units, u)
	}
	return append(halves[0].halved(o), halves[1].halved(o)...)
}

// maxHalvings bounds how often a group is halved, if hashes should not tell its
// members apart.
const maxHalvings = 16

func (g group) fits(o *Options) bool {
	return len(g.units) == 1 || len(g.units) <= packMembers && !g.costly(o)
}

// costly tells that the API server might stop evaluating the validations of a
// group, or its guard, on an object that people could write.
func (g group) costly(o *Options) bool {
	var spent int64
	for _, u := range g.units {
		spent += u.cost()
	}
	if spent > packBudget {
		return true
	}
	guard := g.draft(o).Guard
	return !guard.IsZero() && !guard.IsTrue() && slices.ContainsFunc(g.targets, func(t placed) bool {
		l := &lowering{opts: o, environment: environment{target: t.target}}
		return worstCost(guard, l.objectType(t.target), largestObject) > guardBudget
	})
}

func hashOf(texts ...string) uint32 {
	h := fnv.New32a()
	for _, s := range texts {
		io.WriteString(h, s+"\x00")
	}
	return h.Sum32()
}

// noteCost tells of a rule that the API server would stop evaluating on an object
// as large as the estimate assumes.
func (l *lowering) noteCost(u unit) {
	const perExpression = 1_000_000
	if cel.Cost(u.holds.b.Value, nil) > perExpression {
		l.setPos(l.rule.Pos)
		l.note(diag.Costly, "the rule goes through lists inside lists; on a very large object the API server may stop evaluating it, which counts as an error")
	}
}
