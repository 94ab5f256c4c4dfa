package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// A choice has a branch for each way in which it may come out. Choices that meet
// in one expression would multiply, so what is built of them keeps to a bound.
const (
	// fewCases is how many branches are told apart where choices meet.
	fewCases = 8
	// manyCases is how many branches an operand may have in all.
	manyCases = 128
	// manySteps is how many patterns and expressions a walk goes through. What is
	// nested is gone through again for each case of what is around it, and what comes
	// of that may be small.
	manySteps = 10_000
	// manyParts is how many operands one may be made of. Parts are shared, so that a
	// short text makes one of billions, and whoever goes through it never ends.
	manyParts = 5_000
	// manyNodes is how large an expression may be on the way. One that prints as the
	// 100,000 characters that the API server takes has about as many; what doubles with
	// each step of the source is stopped before it costs as much as all else.
	manyNodes = 15_000
)

// step counts one of the steps of the walk.
func (l *lowering) step() {
	l.opts.Budget.Spend(1)
	l.steps++
	if l.steps > manySteps {
		panic(l.refuse(diag.TooLarge, "what is nested here comes out in too many ways to tell apart in CEL"))
	}
}

// cases is in how many ways j may come out.
func (j operand) cases() int { return max(1, j.branches) }

// bounded is j, unless it may come out in more ways than anybody would write down, or
// has more parts: what is built of it has a branch for each, wherever it is used.
func (l *lowering) bounded(j operand) operand {
	l.opts.Budget.Spend(j.cost())
	if j.cost() > manyNodes {
		panic(tooLarge(l.pos))
	}
	if j.parts() > manyParts {
		panic(l.refuse(diag.TooLarge, "this expression puts together more than %d values", manyParts))
	}
	if j.cases() > manyCases {
		panic(l.refuse(diag.TooLarge, "this expression may come out in more than %d ways, too many to tell apart in CEL", manyCases))
	}
	return j
}

// boundedOutcome is o, unless its expressions are larger than an expression may be.
func (l *lowering) boundedOutcome(o outcome) outcome {
	nodes := 0
	for _, s := range o {
		nodes += s.cond.Nodes()
	}
	l.opts.Budget.Spend(nodes)
	if nodes > manyNodes {
		panic(tooLarge(l.pos))
	}
	return o
}

// cost is what it takes to look at all of j once.
func (j operand) cost() int {
	if j.form == placeForm {
		return j.v.expr.Nodes()
	}
	return j.parts()
}

// some tells whether f is true of a branch of a choice.
func (j operand) some(f func(operand) bool) bool {
	if j.form != choiceForm {
		return f(j)
	}
	return j.then.some(f) || j.els.some(f)
}

// repeatable tells that j may be written more than once: each branch is a literal
// or a place in the request.
func (j operand) repeatable() bool {
	return !j.some(func(branch operand) bool {
		if branch.form != placeForm {
			return branch.form != litForm && branch.form != errorForm
		}
		_, _, path := branch.v.expr.OptionalPath()
		return !path
	})
}

// answers are what was asked on the way to a branch of a choice, and what came of it.
type answers []answer

type answer struct {
	c     cel.Bool
	is    bool
	falsy cel.Value // what is known to be falsy where it is there; or zero
}

// and are the answers where c holds.
func (a answers) and(c cel.Bool) answers { return append(slices.Clip(a), answer{c: c, is: true}) }

// without are the answers where c does not hold, and j is not what is chosen. If c asked
// whether it is falsy, it is.
func (a answers) without(j operand, c cel.Bool) answers {
	out := answer{c: c}
	if j.known.truthy && cel.Equal(j.known.by.Value, c.Value) {
		out.falsy = j.v.expr
	}
	return append(slices.Clip(a), out)
}

// of is what c is, where that was asked.
func (a answers) of(c cel.Bool) (is, known bool) {
	for _, b := range a {
		if cel.Equal(b.c.Value, c.Value) {
			return b.is, true
		}
	}
	return false, false
}

// left is j without the branches that these answers rule out.
func (a answers) left(j operand) operand {
	switch j.form {
	case placeForm:
		j.known.falsy = j.known.falsy || slices.ContainsFunc(a, func(b answer) bool { return !b.falsy.IsZero() && cel.Equal(b.falsy, j.v.expr) })
	case choiceForm:
		switch is, known := a.of(j.c); {
		case known && is:
			return a.left(*j.then)
		case known:
			return a.left(*j.els)
		}
		return j.with(a.and(j.c).left(*j.then), a.without(*j.then, j.c).left(*j.els))
	}
	return j
}

// multiply tells that texts joined branch by branch would be too many, or would
// repeat more than a name.
func multiply(a, b operand) bool {
	repeatsA, repeatsB := b.cases() > 1, a.cases() > 1
	return a.cases()*b.cases() > fewCases || repeatsA && !a.repeatable() || repeatsB && !b.repeatable()
}

// oneText is a choice among texts as one text. A choice of which a branch is an
// error for certain stays one.
func (l *lowering) oneText(j operand) operand {
	if j.form != choiceForm || j.some(func(branch operand) bool { return branch.form == errorForm }) {
		return j
	}
	text := l.chosenText(j)
	if j.some(isConfigured) {
		return configuredText(text)
	}
	return stringOf(text)
}

func (l *lowering) chosenText(j operand) cel.Value {
	if j.form != choiceForm {
		return l.text(j)
	}
	l.mustBeOfOneOrigin(j)
	var then, els cel.Value
	l.eitherWay(j.c,
		func() cel.Bool { then = l.chosenText(*j.then); return cel.True() },
		func() cel.Bool { els = l.chosenText(*j.els); return cel.True() })
	return cel.Cond(j.c, then, els)
}
