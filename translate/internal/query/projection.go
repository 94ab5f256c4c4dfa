package query

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
)

func values(l *read.Lowering, j read.Operand) read.Sequence {
	if j.Form == read.PlaceForm && !j.V.Never && (j.V.Kind() == schema.Map || j.V.Kind() == schema.Object) {
		return read.Entries{V: j.V, Values: true}
	}
	if j.Form == read.LitForm {
		if _, isMap := j.Lit.(map[string]any); isMap {
			panic(l.Unsupported("the values of a map of the policy"))
		}
		return nil
	}
	if j.Form == read.HashForm {
		panic(l.Unsupported("the values of a map that is put together"))
	}
	if j.Form == read.PlaceForm && !j.V.Dynamic() {
		return nil
	}
	panic(l.Unsupported("the values of a map whose type is not known"))
}

// filterBy is right of each element for which cond is true.
func filterBy(l *read.Lowering, s read.Sequence, cond, right *jmespath.Expr) read.Operand {
	if s == nil {
		return read.LitOf(nil)
	}
	kept := read.InParts(s, func(s read.Sequence) read.Sequence {
		return read.Filtered{Of: s, Keep: func(l *read.Lowering, x read.Operand) cel.Bool { return read.Truthy(l, perElement(l, cond, x)) }}
	})
	return withoutErrors(l, s, cond, project(l, kept, right))
}

// perElement is e of an element, errors of a missing key swallowed. Other errors are
// what withoutErrors demands.
func perElement(l *read.Lowering, e *jmespath.Expr, x read.Operand) read.Operand {
	out := ofElement(l, e, x)
	if out.Form == read.ErrorForm && out.Hard { // of every element
		return read.LitOf(nil)
	}
	return out
}

// ofElement is perElement, which is an error where it is one of every element.
func ofElement(l *read.Lowering, e *jmespath.Expr, x read.Operand) read.Operand {
	return faultless(eval(l, e, &x).Softly().Undemanding())
}

// project is right of each element, nulls dropped.
func project(l *read.Lowering, s read.Sequence, right *jmespath.Expr) read.Operand {
	if s == nil {
		return read.LitOf(nil)
	}
	if right.Op == jmespath.Current {
		return read.SequenceOf(s)
	}
	return withoutErrors(l, s, right, read.SequenceOf(read.InParts(s, func(s read.Sequence) read.Sequence {
		return read.Mapped{L: l, Of: s, F: func(l *read.Lowering, x read.Operand) read.Operand { return perElement(l, right, x) }}
	})))
}

// flatten is j[]: elements that are lists give their elements, others themselves.
func flatten(l *read.Lowering, j read.Operand) read.Operand {
	return read.InEach(j, func(j read.Operand) read.Operand {
		if j.Form == read.MultiForm {
			var out read.Concat
			for _, part := range j.Multi {
				out = append(out, flatPart(l, part.Softly()))
			}
			return read.SequenceOf(out)
		}
		s := read.AsSequence(l, j)
		if s == nil {
			return read.LitOf(nil)
		}
		return read.SequenceOf(read.InParts(s, func(s read.Sequence) read.Sequence { return flattened(l, s) }))
	})
}

// flattened is the elements of a sequence's elements.
func flattened(l *read.Lowering, s read.Sequence) read.Sequence {
	switch s := s.(type) {
	case read.Single:
		return flatPart(l, s.J)
	case read.Mapped: // what is missing or null gives no elements anyway
		return read.Flat{L: l, Of: s.Of, F: func(l *read.Lowering, x read.Operand) read.Sequence { return flatPart(l, s.F(l, x)) }}
	}
	switch read.KindOf(s.Elem()) {
	case schema.List, schema.Any:
		return read.Flat{L: l, Of: s, F: func(l *read.Lowering, x read.Operand) read.Sequence { return flatPart(l, x) }}
	}
	return s
}

// flatPart is one element of a flattened list: a list's elements, or itself.
func flatPart(l *read.Lowering, j read.Operand) read.Sequence {
	read.Step(l)
	switch j.Form {
	case read.ImagesForm:
		return read.Filtered{Of: read.Single{J: j}, Keep: func(l *read.Lowering, _ read.Operand) cel.Bool { return read.Present(l, j) }}
	case read.SequenceForm, read.MultiForm:
		return read.AsSequence(l, j)
	case read.LitForm:
		if list := read.AsSequence(l, j); list != nil {
			return list
		}
		if j.Lit == nil {
			return read.Concat{}
		}
		return read.Single{J: j}
	case read.ErrorForm:
		return read.Concat{}
	case read.HashForm: // which is there whatever its parts are
		return read.Single{J: j}
	case read.ChoiceForm:
		return read.Branch{C: j.C, Then: flatPart(l, *j.Then), Els: flatPart(l, *j.Els)}
	}
	if j.V.Never {
		return read.Concat{}
	}
	switch j.V.Kind() {
	case schema.List:
		return read.AsSequence(l, j)
	case schema.Any:
		list := read.AsSequence(l, j)
		one := read.Filtered{Of: read.Single{J: j}, Keep: func(_ *read.Lowering, x read.Operand) cel.Bool {
			return cel.And(x.V.Found(), cel.Not(read.IsNull(x.V.Expr)), cel.Not(read.IsList(x.V.Expr)))
		}}
		return read.Concat{list, one}
	}
	return read.Filtered{Of: read.Single{J: j.Settled()}, Keep: func(*read.Lowering, read.Operand) cel.Bool { return read.Present(l, j) }}
}
