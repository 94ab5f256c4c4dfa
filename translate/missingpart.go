package translate

import (
	"slices"

	"github.com/kvap/kvap/jmespath"
)

// What a multi-select list selects and is missing is null, and stays an element
// until a projection. Most of what a projection asks of null is null, which it drops;
// a function of null is an error, and a default stands in for it.

// projection is left[*].right. left may be left[], which flattens what it selects.
func (l *lowering) projection(left *jmespath.Expr, right *jmespath.Expr, cur *operand) operand {
	if left.Op != jmespath.Flatten {
		return l.inEach(l.eval(left, cur).softly(), func(j operand) operand {
			if j.form == errorForm { // unlike filters and flattening, this passes errors on
				return j
			}
			return l.inEach(l.project(l.sequence(j), right), func(projected operand) operand { return l.withMissing(j, right, projected) })
		})
	}
	return l.inEach(l.errorless(left.Args[0], cur), func(j operand) operand {
		return l.inEach(l.flatten(j), func(flat operand) operand {
			if flat.form == errorForm {
				return flat
			}
			return l.inEach(l.project(l.sequence(flat), right), func(projected operand) operand { return l.withMissing(j, right, projected) })
		})
	})
}

// withMissing is a projection over what j selects. One that would make something of the
// parts that are missing has no native form.
func (l *lowering) withMissing(j operand, right *jmespath.Expr, projected operand) operand {
	if j.form != multiForm || projected.form != sequenceForm {
		return projected
	}
	if !slices.ContainsFunc(j.multi, func(part operand) bool { return !l.present(part).IsTrue() }) {
		return projected
	}
	if of := l.ofNull(right); of.form != litForm || of.lit != nil {
		panic(l.unsupported("a projection over a selection of which a part may be missing, which makes something of null"))
	}
	return projected
}

// ofNull is what a projection makes of null.
func (l *lowering) ofNull(right *jmespath.Expr) operand {
	var out operand
	l.silently(func() { out = l.ofElement(right, litOf(nil)) }) // they are told of the other elements
	return out
}
