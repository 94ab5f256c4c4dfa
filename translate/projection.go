package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// elements2 is a value as the list that a projection goes through; nil where it
// is no list, which gives null.
func (l *lowering) elements2(j jval) stream {
	switch j.form {
	case streamForm:
		return j.s
	case multiForm:
		return l.multiStream(j)
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
	case valForm:
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
func (l *lowering) nonNullItems(s listOf) stream {
	if kindOf(s.elem()) != schema.Any {
		return s
	}
	return filtered{of: s, keep: func(_ *lowering, x jval) cel.Bool { return cel.Not(isNull(x.v.expr)) }}
}

// hint is the last field on the way to a value, to name its elements after.
func (l *lowering) hint(v val) string { return v.expr.LastField() }

func (l *lowering) values(j jval) stream {
	if j.form == valForm && !j.v.never && (j.v.kind() == schema.Map || j.v.kind() == schema.Object) {
		return entries{v: j.v, values: true}
	}
	if j.form == litForm {
		if m, ok := j.lit.(map[string]any); ok {
			var out concat
			for _, k := range sortedKeys(m) {
				out = append(out, single{litOf(m[k])})
			}
			return out
		}
		return nil
	}
	if j.form == hashForm {
		var out concat
		for _, x := range j.multi {
			out = append(out, single{x})
		}
		return out
	}
	if j.form == valForm && !j.v.dynamic() {
		return nil
	}
	panic(l.unsupported("the values of a map whose type is not known"))
}

func (l *lowering) filterBy(s stream, cond *jmespath.Expr) stream {
	if s == nil {
		return nil
	}
	return inParts(s, func(s stream) stream {
		return filtered{of: s, keep: func(l *lowering, x jval) cel.Bool { return l.truthy(l.perElement(cond, x)) }}
	})
}

// perElement is e of an element, errors of a missing key swallowed. What must be
// there is asked for where the element is in scope, not before.
func (l *lowering) perElement(e *jmespath.Expr, x jval) jval {
	saved := l.found
	l.found = nil
	defer func() { l.found = saved }()
	return l.eval(e, &x).softly()
}

// project is right of each element, nulls dropped.
func (l *lowering) project(s stream, right *jmespath.Expr) jval {
	if s == nil {
		return litOf(nil)
	}
	if right.Op == jmespath.Current {
		return streamOf(s)
	}
	return streamOf(inParts(s, func(s stream) stream {
		return mapped{l: l, of: s, f: func(l *lowering, x jval) jval { return l.perElement(right, x) }}
	}))
}

// flatten is j[]: elements that are lists give their elements, others themselves.
func (l *lowering) flatten(j jval) jval {
	return j.over(func(j jval) jval {
		if j.form == multiForm {
			var out concat
			for _, part := range j.multi {
				out = append(out, l.flatPart(part.softly()))
			}
			return streamOf(out)
		}
		s := l.elements2(j)
		if s == nil {
			return litOf(nil)
		}
		return streamOf(inParts(s, l.flattened))
	})
}

// flattened is the elements of a stream's elements.
func (l *lowering) flattened(s stream) stream {
	switch s := s.(type) {
	case single:
		return l.flatPart(s.j)
	case mapped: // what is missing or null gives no elements anyway
		return flat{l: l, of: s.of, f: func(l *lowering, x jval) stream { return l.flatPart(s.f(l, x)) }}
	}
	switch kindOf(s.elem()) {
	case schema.List, schema.Any:
		return flat{l: l, of: s, f: func(l *lowering, x jval) stream { return l.flatPart(x) }}
	}
	return s
}

// flatPart is one element of a flattened list: a list's elements, or itself.
func (l *lowering) flatPart(j jval) stream {
	switch j.form {
	case imagesForm, imageForm:
		return filtered{of: single{j}, keep: func(l *lowering, _ jval) cel.Bool { return l.present(j) }}
	case streamForm, multiForm:
		return l.elements2(j)
	case litForm:
		if list := l.elements2(j); list != nil {
			return list
		}
		if j.lit == nil {
			return concat{}
		}
		return single{j}
	case errorForm:
		return concat{}
	case choiceForm:
		return branch{j.c, l.flatPart(*j.then), l.flatPart(*j.els)}
	}
	if j.v.never {
		return concat{}
	}
	switch j.v.kind() {
	case schema.List:
		return l.elements2(j)
	case schema.Any:
		list := l.elements2(j)
		one := filtered{of: single{j}, keep: func(_ *lowering, x jval) cel.Bool {
			return cel.And(x.v.found(), cel.Not(isNull(x.v.expr)), cel.Not(isList(x.v.expr)))
		}}
		return concat{list, one}
	}
	return filtered{of: single{j.settled()}, keep: func(*lowering, jval) cel.Bool { return l.present(j) }}
}

// multiStream is a multi-select list as a stream; its nulls count as elements
// only until the first projection, and no reader of streams sees them.
func (l *lowering) multiStream(j jval) stream {
	var out concat
	for _, part := range j.multi {
		p := l.present(part)
		switch {
		case p.IsTrue():
			out = append(out, single{part})
		case p.IsFalse():
		default:
			part := part
			out = append(out, filtered{of: single{part.settled()}, keep: func(l *lowering, _ jval) cel.Bool { return l.present(part) }})
		}
	}
	return out
}
