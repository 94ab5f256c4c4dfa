package query

import (
	"slices"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

func fieldOf(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	if e.Dynamic != nil {
		key := Template(l, e.Dynamic)
		if key.Form == read.ChoiceForm && key.Some(func(j read.Operand) bool { return j.Form == read.LitForm && j.Lit == nil }) {
			return read.InEach(key, func(key read.Operand) read.Operand { return fieldCalled(l, cur, key) })
		}
		return fieldCalled(l, cur, key)
	}
	return member(l, cur, e.Name)
}

// fieldCalled is the value of a key that stands in the query as a text.
func fieldCalled(l *read.Lowering, cur *read.Operand, key read.Operand) read.Operand {
	if key.Form == read.LitForm {
		return member(l, cur, scalar.Text(key.Lit)).Demanding(key.Anyway())
	}
	return dynamicField(l, cur, key)
}

func member(l *read.Lowering, cur *read.Operand, name string) read.Operand {
	if cur == nil {
		return TopLevel(l, name)
	}
	return read.InEach(*cur, func(j read.Operand) read.Operand { return known(l, field(l, j, name)) })
}

// field is j.name.
func field(l *read.Lowering, j read.Operand, name string) read.Operand {
	switch j.Form {
	case read.PlaceForm:
		v := j.V.Field(name)
		if v.Typ != nil && v.Typ.Format == schema.Withheld {
			panic(l.Refuse(diag.OutsideData, "the field %s of an item of a list, which the API server leaves out, cannot be read", name))
		}
		return read.OperandAt(v)
	case read.LitForm:
		m, ok := j.Lit.(map[string]any)
		if !ok {
			return read.LitOf(nil)
		}
		v, ok := m[name]
		if !ok {
			return read.Operand{Form: read.ErrorForm, Hint: name}
		}
		return read.LitOf(v)
	case read.HashForm:
		for i, k := range j.Keys {
			if k == name {
				return l.Read(j.Multi[i])
			}
		}
		if j.Hint == someKeys {
			panic(l.Refuse(diag.OutsideData, "the field %s of an answer of the API server cannot be read", name))
		}
		return read.Operand{Form: read.ErrorForm, Hint: name}
	case read.ImagesForm:
		panic(l.Unsupported("the image of one container"))
	case read.SequenceForm, read.MultiForm:
		panic(l.Unsupported("a field of a list"))
	case read.ErrorForm:
		return j
	}
	return read.LitOf(nil)
}

// dynamicField is the value of a key that is only known at run time.
func dynamicField(l *read.Lowering, cur *read.Operand, key read.Operand) read.Operand {
	switch read.KindOf(key.Typ()) {
	case schema.Bool, schema.Int, schema.IntOrString:
		key = asText(l, key) // as it stands in the query
	case schema.Any, schema.Number:
		panic(l.Unsupported("a field whose name may be another thing than a text"))
	}
	if mayBeNull(key) {
		panic(l.Unsupported("a field whose name may be null"))
	}
	k, d, ok := read.Strictly(l, key)
	if t := read.KindOf(key.Typ()); t == schema.List || t == schema.Map || t == schema.Object || key.Form == read.SequenceForm || key.Form == read.MultiForm {
		panic(l.Unsupported("a field whose name is a list or a map"))
	}
	if cur == nil || cur.Form != read.PlaceForm || !ok || cur.V.Kind() != schema.Map {
		panic(l.Unsupported("a field whose name is a variable"))
	}
	v := cur.V
	w := read.Place{Expr: v.Expr.Index(k).OfKind(native.Kind(v.Elem())), Typ: v.Elem(), Origin: v.Origin}
	w.Guards = append(slices.Clip(v.Guards), read.Guard{Cond: k.In(v.Expr)})
	return read.OperandAt(w).Demanding(d)
}

// index is j[n]; null beyond the ends.
func index(l *read.Lowering, j read.Operand, n int) read.Operand {
	switch j.Form {
	case read.LitForm:
		list, _ := j.Lit.([]any)
		if n < 0 {
			n += len(list)
		}
		if n >= 0 && n < len(list) {
			return read.LitOf(list[n])
		}
		return read.LitOf(nil)
	case read.ErrorForm:
		return j
	case read.PlaceForm:
		if j.V.Kind() == schema.List || j.V.Dynamic() {
			return read.OperandAt(j.V.Item(n))
		}
		w, c := j.V.Demanded() // null, and an error where a key on the way is missing
		return read.Choice(c, read.Choice(w.KeysFound(), read.LitOf(nil), read.Operand{Form: read.ErrorForm, Hint: "missing"}), read.TypeError("value"))
	case read.MultiForm:
		panic(l.Unsupported("an element of a selection"))
	case read.SequenceForm:
		if item, ok := imageItem(l, j, n); ok {
			return item
		}
		s := read.AsSequence(l, j)
		list, ok := read.InOrder(l, s)
		if !ok {
			panic(l.Unsupported("an element of a nested projection, before Kubernetes 1.35"))
		}
		return read.OperandAt(read.PlaceOf(list, &schema.Type{Kind: schema.List, Elem: s.Elem()}).Item(n)).Softly()
	}
	return read.LitOf(nil)
}

// mayBeNull tells of a choice of which one is null, or is where it is missing.
func mayBeNull(j read.Operand) bool {
	if j.Form != read.ChoiceForm {
		return false
	}
	return slices.ContainsFunc([]*read.Operand{j.Then, j.Els}, func(part *read.Operand) bool {
		return part.Form == read.LitForm && part.Lit == nil || part.Form == read.PlaceForm && !part.V.Certain() || mayBeNull(*part)
	})
}
