package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// AsSequence is a value as the list that a projection goes through; nil where it
// is no list, which gives null.
func AsSequence(l *Lowering, j Operand) Sequence {
	switch j.Form {
	case SequenceForm:
		return j.S
	case MultiForm:
		return selection(l, j)
	case LitForm:
		list, ok := j.Lit.([]any)
		if !ok {
			return nil
		}
		var out Concat
		for _, item := range list {
			if item != nil {
				out = append(out, Single{LitOf(item)})
			}
		}
		return out
	case PlaceForm:
		switch {
		case j.V.Never:
			return nil
		case j.V.Kind() == schema.List:
			return nonNullItems(ListOf{V: j.V, Hint: Hint(j.V)})
		case j.V.Dynamic():
			return nonNullItems(ListOf{V: j.V.asList(), Hint: Hint(j.V)})
		}
	}
	return nil
}

// nonNullItems drops null elements, which only lists of unknown type can have.
func nonNullItems(s ListOf) Sequence {
	if KindOf(s.Elem()) != schema.Any {
		return s
	}
	return Filtered{Of: s, Keep: func(_ *Lowering, x Operand) cel.Bool { return cel.Not(IsNull(x.V.Expr)) }, NonNull: true}
}

// Hint is the last field on the way to a value, to name its elements after.
func Hint(v Place) string { return v.Expr.LastField() }

// EveryPart is a multi-select list as a value, in which what is missing is null.
func EveryPart(j Operand) Sequence {
	out := make(Concat, len(j.Multi))
	for i, part := range j.Multi {
		out[i] = Single{part.Over(listOrNull)}
	}
	return out
}

// listOrNull is a list with null apart, which a projection of what is missing is.
func listOrNull(j Operand) Operand {
	if j.Form != SequenceForm {
		return j
	}
	return Choice(cel.Not(j.S.Null()), j.Settled(), LitOf(nil))
}

// selection is a multi-select list as a projection goes through it, which drops nulls.
func selection(l *Lowering, j Operand) Sequence {
	var out Concat
	for _, part := range j.Multi {
		p := Present(l, part)
		switch {
		case p.IsTrue():
			out = append(out, Single{part})
		case p.IsFalse():
		default:
			out = append(out, Filtered{Of: Single{part.Settled()}, Keep: func(l *Lowering, _ Operand) cel.Bool { return Present(l, part) }})
		}
	}
	return out
}
