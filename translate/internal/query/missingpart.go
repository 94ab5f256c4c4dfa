package query

import (
	"slices"

	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/translate/internal/read"
)

// What a multi-select list selects and is missing is null, and stays an element
// until a projection. Most of what a projection asks of null is null, which it drops;
// a function of null is an error, and a default stands in for it.

// projection is left[*].right. left may be left[], which flattens what it selects.
func projection(l *read.Lowering, left *jmespath.Expr, right *jmespath.Expr, cur *read.Operand) read.Operand {
	if left.Op != jmespath.Flatten {
		return read.InEach(eval(l, left, cur).Softly(), func(j read.Operand) read.Operand {
			if j.Form == read.ErrorForm { // unlike filters and flattening, this passes errors on
				return j
			}
			return read.InEach(project(l, read.AsSequence(l, j), right), func(projected read.Operand) read.Operand { return withMissing(l, j, right, projected) })
		})
	}
	return read.InEach(errorless(l, left.Args[0], cur), func(j read.Operand) read.Operand {
		return read.InEach(flatten(l, j), func(flat read.Operand) read.Operand {
			if flat.Form == read.ErrorForm {
				return flat
			}
			return read.InEach(project(l, read.AsSequence(l, flat), right), func(projected read.Operand) read.Operand { return withMissing(l, j, right, projected) })
		})
	})
}

// withMissing is a projection over what j selects. One that would make something of the
// parts that are missing has no native form.
func withMissing(l *read.Lowering, j read.Operand, right *jmespath.Expr, projected read.Operand) read.Operand {
	if j.Form != read.MultiForm || projected.Form != read.SequenceForm {
		return projected
	}
	if !slices.ContainsFunc(j.Multi, func(part read.Operand) bool { return !read.Present(l, part).IsTrue() }) {
		return projected
	}
	if of := ofNull(l, right); of.Form != read.LitForm || of.Lit != nil {
		panic(l.Unsupported("a projection over a selection of which a part may be missing, which makes something of null"))
	}
	return projected
}

// ofNull is what a projection makes of null.
func ofNull(l *read.Lowering, right *jmespath.Expr) read.Operand {
	return ofElement(l.Quietly(), right, read.LitOf(nil)) // they are told of the other elements
}
