package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// length is the number of elements, entries or characters.
func (l *lowering) length(j operand) operand {
	switch j.form {
	case litForm:
		switch v := j.lit.(type) {
		case string:
			return litOf(float64(len([]rune(v))))
		case []any:
			return litOf(float64(len(v)))
		case map[string]any:
			return litOf(float64(len(v)))
		}
		return typeError("length")
	case imagesForm:
		return l.imageCount(j.images)
	case imageForm:
		panic(l.unsupported("the length of an image"))
	case errorForm:
		return j
	case sequenceForm:
		return intOf(j.s.count(l, true))
	case multiForm:
		return litOf(float64(len(j.multi)))
	case hashForm:
		return litOf(float64(len(j.multi)))
	}
	switch j.v.kind() {
	case schema.String, schema.List, schema.Map:
		l.errs = l.errs || !j.v.certain()
		return intOf(j.v.expr.Size())
	case schema.Object:
		l.errs = l.errs || !j.v.certain()
		return intOf(dyn(j.v.expr).Size())
	case schema.Any:
		x, _ := l.expr(j)
		l.unlessAsked()
		return intOf(x.Size())
	}
	return typeError("length")
}

func (l *lowering) keysOf(j operand, values bool) operand {
	switch j.form {
	case imagesForm, imageForm:
		panic(l.unsupported("the keys and values of images"))
	case errorForm:
		return j
	case litForm:
		m, ok := j.lit.(map[string]any)
		if !ok {
			return typeError("keys")
		}
		return literalEntries(m, values)
	case hashForm:
		return l.hashEntries(j, values)
	case placeForm:
		switch j.v.kind() {
		case schema.Map, schema.Object:
			return sequenceOf(entries{v: j.v, values: values, given: true})
		case schema.Any:
			w := j.v
			w.guards = append(w.guards[:len(w.guards):len(w.guards)], guard{cond: isMap(w.expr), shape: true})
			w.typ, w.opt = mapOf(anyType()), cel.Value{}
			return sequenceOf(entries{v: w, values: values, given: true})
		}
	}
	return typeError("keys")
}

// literalEntries are the keys, or the values, of a map that is known when compiling.
func literalEntries(m map[string]any, values bool) operand {
	out := []any{}
	var elements concat
	for _, k := range sortedKeys(m) {
		var entry any = k
		if values {
			entry = m[k]
		}
		out, elements = append(out, entry), append(elements, single{litOf(entry)})
	}
	if len(out) < 2 {
		return litOf(out)
	}
	return sequenceOf(fromMap{elements})
}

// hashEntries are the keys, or the values, of a multi-select hash, null where they are
// missing.
func (l *lowering) hashEntries(j operand, values bool) operand {
	var keys concat
	for _, k := range j.keys {
		keys = append(keys, single{litOf(k)})
	}
	switch {
	case !values:
		return sequenceOf(mapOrdered(keys))
	case len(keys) == 1:
		return selectionOf(multiForm, nil, []operand{l.read(j.multi[0])})
	}
	panic(l.unsupported("the values of a map that is put together from several expressions"))
}

func (l *lowering) joined(glue, list operand) operand {
	isChoice := func(part operand) bool { return part.form == choiceForm }
	if i := slices.IndexFunc(list.multi, isChoice); i >= 0 && list.form == multiForm {
		return list.multi[i].over(func(part operand) operand {
			parts := slices.Clone(list.multi)
			parts[i] = part
			return l.joined(glue, selectionOf(multiForm, nil, parts))
		})
	}
	g, ok := l.stringArg(glue)
	if list.form == multiForm {
		texts := make([]cel.Value, len(list.multi))
		for i, part := range list.multi { // null is no text either
			x, isText := l.stringArg(part)
			texts[i], ok = x, ok && isText
		}
		if !ok {
			return typeError("join")
		}
		if slices.ContainsFunc(list.multi, func(part operand) bool { return part.form != litForm }) {
			for i := range texts { // a list has items of one type, and fields are of any
				texts[i] = dyn(texts[i])
			}
		}
		return stringOf(cel.List(texts...).Call(cel.FuncJoin, g))
	}
	if list.form == errorForm {
		return list
	}
	l.mustBeOrdered(list)
	if kindOf(list.typ().Elem) != schema.String { // only texts can be joined
		l.errs = true
	}
	v, ok2 := l.expr(list)
	if ok2 {
		l.mustHaveShape(list) // null has no texts
	}
	switch {
	case !ok || kindOf(list.typ()) == schema.String:
		return typeError("join")
	case !ok2 && list.form == sequenceForm:
		panic(l.refuse(diag.NoFunction, "join() of this list has no native form"))
	case !ok2:
		return typeError("join")
	}
	return stringOf(v.Call(cel.FuncJoin, g))
}

func (l *lowering) toArray(j operand) operand {
	switch j.form {
	case sequenceForm:
		return arrayOf(j, j.s)
	case multiForm:
		return j
	case litForm:
		if _, ok := j.lit.([]any); ok {
			return j
		}
		return litOf([]any{j.lit})
	case placeForm:
		if j.v.kind() == schema.List {
			return arrayOf(j, l.sequence(j))
		}
		if j.v.certain() && !j.v.dynamic() {
			return sequenceOf(concat{single{j}})
		}
	}
	panic(l.unsupported("this use of to_array"))
}

// arrayOf is j, a list whose elements are s, and [null] where j is null.
func arrayOf(j operand, s sequence) operand {
	if null := s.null(); !null.IsFalse() {
		return sequenceOf(branch{null, concat{single{litOf(nil)}}, orEmpty{s}})
	}
	return j
}

// sorted keeps a list as it is where CEL cannot sort yet: two sorted lists are
// then compared by what they hold.
func (l *lowering) sorted(j operand) operand {
	return j.over(func(j operand) operand {
		if list, ok := j.lit.([]any); ok && j.form == litForm {
			return litOf(scalar.Sorted(list))
		}
		s := l.sequence(j)
		if s == nil {
			return typeError("sort")
		}
		switch kindOf(s.elem()) {
		case schema.Object, schema.Map, schema.List, schema.Bool:
			panic(l.unsupported("sort() of what is neither texts nor numbers"))
		}
		return choice(s.null(), typeError("sort"), sequenceOf(sortedSequence{s}))
	})
}

func (l *lowering) extreme(f jmespath.Func, list operand) operand {
	if list.form == errorForm {
		return list
	}
	v, ok := l.expr(list)
	elem := kindOf(list.typ().Elem)
	if !ok || elem != schema.Int && elem != schema.String {
		panic(l.refuse(diag.NoFunction, "the function %s of this list has no native form", f))
	}
	best := cel.FuncMin
	if f == jmespath.FuncMax {
		best = cel.FuncMax
	}
	value := valueOf(v.Call(best), list.typ().Elem)
	return choice(v.Size().Compare(cel.Greater, cel.Int(0)), value, litOf(nil))
}
