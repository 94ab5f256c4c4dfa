package translate

import (
	"github.com/kvap/kvap/cel"
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

// withMissing is a projection over what j selects, and over the parts that are
// missing.
func (l *lowering) withMissing(j operand, right *jmespath.Expr, projected operand) operand {
	if j.form != multiForm || projected.form != sequenceForm {
		return projected
	}
	var missing []cel.Bool
	for _, part := range j.multi {
		if p := l.present(part); !p.IsTrue() {
			missing = append(missing, cel.Not(p))
		}
	}
	if len(missing) == 0 {
		return projected
	}
	switch of := l.ofNull(right); {
	case of.form == errorForm:
		return sequenceOf(complete{projected.s, cel.Or(missing...)})
	case of.form != litForm || of.lit != nil:
		out := concat{projected.s}
		for _, m := range missing {
			out = append(out, branch{m, single{of}, concat{}})
		}
		return sequenceOf(unordered{out})
	}
	return projected
}

// ofNull is what a projection makes of null.
func (l *lowering) ofNull(right *jmespath.Expr) operand {
	var out operand
	l.silently(func() { out = l.ofElement(right, litOf(nil)) }) // they are told of the other elements
	return out
}

// complete is a sequence that is an error where some part of it is missing.
type complete struct {
	sequence
	missing cel.Bool
}

func (s complete) quantify(l *lowering, q cel.Quantifier, strict bool, body func(operand) cel.Bool) cel.Bool {
	l.need(cel.Not(s.missing))
	return s.sequence.quantify(l, q, strict, body)
}

func (s complete) count(l *lowering, strict bool) cel.Value {
	l.need(cel.Not(s.missing))
	return s.sequence.count(l, strict)
}

func (s complete) list(l *lowering, strict bool) (cel.Value, bool) {
	l.need(cel.Not(s.missing))
	return s.sequence.list(l, strict)
}

// unordered is a sequence whose elements are not in order, so it is no list.
type unordered struct{ sequence }

func (unordered) list(*lowering, bool) (cel.Value, bool) { return cel.Value{}, false }

func (unordered) ordered() bool { return false }
