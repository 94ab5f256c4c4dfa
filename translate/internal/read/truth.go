package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// Present is: j is found and not null.
func Present(l *Lowering, j Operand) cel.Bool {
	switch j.Form {
	case LitForm:
		return cel.Lit(j.Lit != nil)
	case ErrorForm:
		return cel.False()
	case SequenceForm:
		return cel.Not(j.S.Null())
	case ImagesForm:
		return j.Images.Present(l)
	case ChoiceForm:
		return cel.CondBool(j.C, Present(l, *j.Then), Present(l, *j.Els))
	case PlaceForm:
		if j.V.Never {
			return cel.False()
		}
		if j.V.Dynamic() && !j.Traits().Present {
			return cel.And(j.V.Found(), cel.Not(IsNull(j.V.Expr)))
		}
		return j.V.Found()
	}
	return cel.True()
}

// Truthy is JMESPath's truth: not false, null, "", [] or {}.
func Truthy(l *Lowering, j Operand) cel.Bool {
	if j.Form == ImagesForm {
		return j.Images.Present(l)
	}
	if j.Form == MultiForm { // what is missing is null, and an element
		return cel.Lit(len(j.Multi) > 0)
	}
	if b, ok := truthOfParts(l, j); ok {
		return b
	}
	return Holds(l, j, false, Table{
		Lit:   func(v any) cel.Bool { return cel.Lit(IsTruthy(v)) },
		truth: true,
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch KindOf(t) {
			case schema.Bool:
				return IsTrue(x, t)
			case schema.String, schema.IntOrString:
				if IsQuantityType(t) { // which is never empty
					return cel.True()
				}
				return x.Ne(cel.String(""))
			case schema.List, schema.Map:
				if t.Filled {
					return cel.True()
				}
				return x.Size().Compare(cel.Greater, cel.Int(0))
			case schema.Int, schema.Number:
				return cel.True()
			case schema.Object: // {} is false; the type checker knows no == of an object type
				return Dyn(x).Ne(cel.Map())
			}
			return cel.Not(Amongst(x, cel.Null(), cel.Lit(false).Value, cel.String(""), cel.List(), cel.Map()))
		},
		Sequence: func(s Sequence) cel.Bool {
			if list, ok := s.List(l, false); ok {
				if _, plain := s.(ListOf); plain {
					return list.Size().Compare(cel.Greater, cel.Int(0))
				}
			}
			return s.Quantify(l, cel.ForSome, false, func(Operand) cel.Bool { return cel.True() })
		},
	})
}

// truthOfParts is the truth of a comparison, which is false where it is null, and
// of && and ||, of which the side that is taken need not be looked at again.
func truthOfParts(l *Lowering, j Operand) (cel.Bool, bool) {
	switch {
	case j.Form == PlaceForm && j.V.Origin == FromOrdering:
		return j.V.Expr.AsBool(), true
	case j.Form == ChoiceForm:
		then, els := Truthy(l, *j.Then), Truthy(l, *j.Els)
		switch {
		case cel.Equal(els.Value, j.C.Value):
			return cel.And(j.C, then), true
		case cel.Equal(then.Value, j.C.Value):
			return cel.Or(j.C, els), true
		}
	}
	return cel.Bool{}, false
}

// IsTruthy is how JMESPath reads a value of the policy as a boolean.
func IsTruthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// Knows tells that a condition is known to hold.
func Knows(l *Lowering, c cel.Bool) bool { return listed(c, l.Facts) }
