package read

import "github.com/kvap/kvap/diag"

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
	// ManyNodes is how large an expression may be on the way. One that prints as the
	// 100,000 characters that the API server takes has about as many; what doubles with
	// each step of the source is stopped before it costs as much as all else.
	ManyNodes = 15_000
)

// Step counts one of the steps of the walk.
func Step(l *Lowering) {
	l.Opts.Budget.Spend(1)
	l.steps++
	if l.steps > manySteps {
		panic(l.Refuse(diag.TooLarge, "what is nested here comes out in too many ways to tell apart in CEL"))
	}
}

// cases is in how many ways j may come out.
func (j Operand) cases() int { return max(1, j.branches) }

// Bounded is j, unless it may come out in more ways than anybody would write down, or
// has more parts: what is built of it has a branch for each, wherever it is used.
func Bounded(l *Lowering, j Operand) Operand {
	l.Opts.Budget.Spend(j.cost())
	if j.cost() > ManyNodes {
		panic(TooLarge(l.Pos))
	}
	if j.parts() > manyParts {
		panic(l.Refuse(diag.TooLarge, "this expression puts together more than %d values", manyParts))
	}
	if j.cases() > manyCases {
		panic(l.Refuse(diag.TooLarge, "this expression may come out in more than %d ways, too many to tell apart in CEL", manyCases))
	}
	return j
}

// cost is what it takes to look at all of j once.
func (j Operand) cost() int {
	if j.Form == PlaceForm {
		return j.V.Expr.Nodes()
	}
	return j.parts()
}

// Some tells whether f is true of a branch of a choice.
func (j Operand) Some(f func(Operand) bool) bool {
	if j.Form != ChoiceForm {
		return f(j)
	}
	return j.Then.Some(f) || j.Els.Some(f)
}

// repeatable tells that j may be written more than once: each branch is a literal
// or a place in the request.
func (j Operand) repeatable() bool {
	return !j.Some(func(branch Operand) bool {
		if branch.Form != PlaceForm {
			return branch.Form != LitForm && branch.Form != ErrorForm
		}
		_, _, path := branch.V.Expr.OptionalPath()
		return !path
	})
}

// Multiply tells that texts joined branch by branch would be too many, or would
// repeat more than a name.
func Multiply(a, b Operand) bool {
	repeatsA, repeatsB := b.cases() > 1, a.cases() > 1
	return a.cases()*b.cases() > fewCases || repeatsA && !a.repeatable() || repeatsB && !b.repeatable()
}
