package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// sequence is a value as the list that a projection goes through; nil where it
// is no list, which gives null.
func (l *lowering) sequence(j operand) sequence {
	switch j.form {
	case sequenceForm:
		return j.s
	case multiForm:
		return l.selection(j)
	case litForm:
		list, ok := j.lit.([]any)
		if !ok {
			return nil
		}
		var out concat
		for _, item := range list {
			if item != nil {
				out = append(out, single{litOf(item)})
			}
		}
		return out
	case placeForm:
		switch {
		case j.v.never:
			return nil
		case j.v.kind() == schema.List:
			return l.nonNullItems(listOf{v: j.v, hint: l.hint(j.v)})
		case j.v.dynamic():
			return l.nonNullItems(listOf{v: j.v.asList(), hint: l.hint(j.v)})
		}
	}
	return nil
}

// nonNullItems drops null elements, which only lists of unknown type can have.
func (l *lowering) nonNullItems(s listOf) sequence {
	if kindOf(s.elem()) != schema.Any {
		return s
	}
	return nonNull{filtered{of: s, keep: func(_ *lowering, x operand) cel.Bool { return cel.Not(isNull(x.v.expr)) }}}
}

// hint is the last field on the way to a value, to name its elements after.
func (l *lowering) hint(v place) string { return v.expr.LastField() }

func (l *lowering) values(j operand) sequence {
	if j.form == placeForm && !j.v.never && (j.v.kind() == schema.Map || j.v.kind() == schema.Object) {
		return entries{v: j.v, values: true}
	}
	if j.form == litForm {
		if _, isMap := j.lit.(map[string]any); isMap {
			panic(l.unsupported("the values of a map of the policy"))
		}
		return nil
	}
	if j.form == hashForm {
		panic(l.unsupported("the values of a map that is put together"))
	}
	if j.form == placeForm && !j.v.dynamic() {
		return nil
	}
	panic(l.unsupported("the values of a map whose type is not known"))
}

// filterBy is right of each element for which cond is true.
func (l *lowering) filterBy(s sequence, cond, right *jmespath.Expr) operand {
	if s == nil {
		return litOf(nil)
	}
	kept := inParts(s, func(s sequence) sequence {
		return filtered{of: s, keep: func(l *lowering, x operand) cel.Bool { return l.truthy(l.perElement(cond, x)) }}
	})
	return l.withoutErrors(s, cond, l.project(kept, right))
}

// perElement is e of an element, errors of a missing key swallowed. What must be
// there is asked for where the element is in scope, not before; other errors,
// withoutErrors asks for.
func (l *lowering) perElement(e *jmespath.Expr, x operand) operand {
	out := l.ofElement(e, x)
	if out.form == errorForm && out.hard { // of every element
		return litOf(nil)
	}
	return out
}

// ofElement is perElement, which is an error where it is one of every element.
func (l *lowering) ofElement(e *jmespath.Expr, x operand) operand {
	var out operand
	l.collected(func() { out = faultless(l.eval(e, &x).softly()) })
	return out
}

// project is right of each element, nulls dropped.
func (l *lowering) project(s sequence, right *jmespath.Expr) operand {
	if s == nil {
		return litOf(nil)
	}
	if right.Op == jmespath.Current {
		return sequenceOf(s)
	}
	return l.withoutErrors(s, right, sequenceOf(inParts(s, func(s sequence) sequence {
		return mapped{l: l, of: s, f: func(l *lowering, x operand) operand { return l.perElement(right, x) }}
	})))
}

// flatten is j[]: elements that are lists give their elements, others themselves.
func (l *lowering) flatten(j operand) operand {
	return l.inEach(j, func(j operand) operand {
		if j.form == multiForm {
			var out concat
			for _, part := range j.multi {
				out = append(out, l.flatPart(part.softly()))
			}
			return sequenceOf(out)
		}
		s := l.sequence(j)
		if s == nil {
			return litOf(nil)
		}
		return sequenceOf(inParts(s, l.flattened))
	})
}

// flattened is the elements of a sequence's elements.
func (l *lowering) flattened(s sequence) sequence {
	switch s := s.(type) {
	case single:
		return l.flatPart(s.j)
	case mapped: // what is missing or null gives no elements anyway
		return flat{l: l, of: s.of, f: func(l *lowering, x operand) sequence { return l.flatPart(s.f(l, x)) }}
	}
	switch kindOf(s.elem()) {
	case schema.List, schema.Any:
		return flat{l: l, of: s, f: func(l *lowering, x operand) sequence { return l.flatPart(x) }}
	}
	return s
}

// flatPart is one element of a flattened list: a list's elements, or itself.
func (l *lowering) flatPart(j operand) sequence {
	l.step()
	switch j.form {
	case imagesForm:
		return filtered{of: single{j}, keep: func(l *lowering, _ operand) cel.Bool { return l.present(j) }}
	case sequenceForm, multiForm:
		return l.sequence(j)
	case litForm:
		if list := l.sequence(j); list != nil {
			return list
		}
		if j.lit == nil {
			return concat{}
		}
		return single{j}
	case errorForm:
		return concat{}
	case hashForm: // which is there whatever its parts are
		return single{j}
	case choiceForm:
		return branch{j.c, l.flatPart(*j.then), l.flatPart(*j.els)}
	}
	if j.v.never {
		return concat{}
	}
	switch j.v.kind() {
	case schema.List:
		return l.sequence(j)
	case schema.Any:
		list := l.sequence(j)
		one := filtered{of: single{j}, keep: func(_ *lowering, x operand) cel.Bool {
			return cel.And(x.v.found(), cel.Not(isNull(x.v.expr)), cel.Not(isList(x.v.expr)))
		}}
		return concat{list, one}
	}
	return filtered{of: single{j.settled()}, keep: func(*lowering, operand) cel.Bool { return l.present(j) }}
}

// selection is a multi-select list as a sequence; its nulls count as elements
// only until the first projection, and no reader of sequences sees them.
func (l *lowering) selection(j operand) sequence {
	var out concat
	for _, part := range j.multi {
		p := l.present(part)
		switch {
		case p.IsTrue():
			out = append(out, single{part})
		case p.IsFalse():
		default:
			part := part
			out = append(out, filtered{of: single{part.settled()}, keep: func(l *lowering, _ operand) cel.Bool { return l.present(part) }})
		}
	}
	return out
}
