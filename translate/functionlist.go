package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
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
		return intOf(j.v.expr.Size())
	case schema.Object:
		return intOf(dyn(j.v.expr).Size())
	case schema.Any:
		x, _ := l.expr(j)
		return intOf(x.Size())
	}
	return typeError("length")
}

func (l *lowering) keysOf(j operand, values bool) operand {
	switch j.form {
	case imagesForm:
		panic(l.unsupported("the keys and values of images"))
	case errorForm:
		return j
	case litForm:
		m, ok := j.lit.(map[string]any)
		if !ok {
			return typeError("keys")
		}
		if len(m) == 0 {
			return litOf([]any{})
		}
		panic(l.refuse(diag.NoFunction, "the keys and values of a map of the policy have no native form"))
	case hashForm:
		panic(l.refuse(diag.NoFunction, "the keys and values of a map that is put together have no native form"))
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
	return l.inEach(j, func(j operand) operand {
		if list, ok := j.lit.([]any); ok && j.form == litForm {
			return litOf(scalar.Sorted(list))
		}
		s := l.sequence(j)
		if s == nil {
			return typeError("sort")
		}
		switch kindOf(s.elem()) {
		case schema.Object, schema.Map, schema.List, schema.Bool, schema.IntOrString, schema.Any:
			panic(l.unsupported("sort() of what is neither texts nor numbers"))
		}
		l.need(cel.Not(s.null()))
		return sequenceOf(sortedSequence{s})
	})
}
