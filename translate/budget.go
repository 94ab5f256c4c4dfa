package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// packBudget is a third of what the API server lets the validations of one policy
// and binding cost (10 million): a pack keeps a wide margin, for an error of the
// estimate and for objects larger than any that it assumes.
const packBudget = 10_000_000 / 3

// packMembers bounds a pack by what a person can still read.
const packMembers = 50

// withinBudget splits a group whose members would together cost too much. A
// member that is too costly alone stays alone.
func (g group) withinBudget() []group {
	var out []group
	var spent int64
	var part []unit
	flush := func() {
		if len(part) > 0 {
			out = append(out, group{units: part, targets: g.targets})
		}
		part, spent = nil, 0
	}
	for _, u := range g.units {
		c := u.cost()
		if len(part) > 0 && (spent+c > packBudget || len(part) == packMembers) {
			flush()
		}
		part = append(part, u)
		spent += c
	}
	flush()
	return out
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
