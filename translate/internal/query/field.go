package query

import (
	"slices"

	"github.com/kvap/kvap/cel"
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

// What a filter or a projection asks of an element may be an error, as a function of
// what the element lacks is. A single one makes the whole an error, whatever the
// other elements say; flattening reads it as null. && and exists() would hide it.

// withoutErrors is j, made of e of each element, and an error where e of some element
// is one.
func withoutErrors(l *read.Lowering, s read.Sequence, e *jmespath.Expr, j read.Operand) read.Operand {
	if !mayFail(e) {
		return j
	}
	null := read.LitOf(nil)
	safe := s.Quantify(l, cel.ForAll, false, func(x read.Operand) cel.Bool { return succeeds(l, e, &x) })
	if some := anyNull(l, s); !some.IsFalse() && !succeeds(l, e, &null).IsTrue() {
		safe = cel.And(cel.Not(some), safe)
	}
	return j.Demanding(read.Demand("", safe.Simplify()))
}

// anyNull is: null is among the elements, of which a sequence has none itself.
func anyNull(l *read.Lowering, s read.Sequence) cel.Bool {
	switch s := s.(type) {
	case read.Filtered:
		if s.NonNull {
			return s.Of.Quantify(l, cel.ForSome, false, func(x read.Operand) cel.Bool { return read.IsNull(x.V.Expr) })
		}
	case read.Flat:
		inner := s.Of.Quantify(l, cel.ForSome, false, func(x read.Operand) cel.Bool { return anyNull(l, s.F(l, x)) })
		return cel.Or(anyNull(l, s.Of), inner)
	case read.Concat:
		some := make([]cel.Bool, len(s))
		for i, part := range s {
			some[i] = anyNull(l, part)
		}
		return cel.Or(some...)
	case read.Branch:
		return cel.CondBool(s.C, anyNull(l, s.Then), anyNull(l, s.Els))
	}
	return cel.False()
}

// mayFail tells that an expression may be an error other than that of a missing key:
// it calls a function.
func mayFail(e *jmespath.Expr) bool { return hasOp(e, jmespath.Call) }

// hasOp tells that an expression has one of a kind in it.
func hasOp(e *jmespath.Expr, op jmespath.Op) bool {
	found := false
	jmespath.Walk(e, func(e *jmespath.Expr) bool {
		found = found || e.Op == op
		return !found
	})
	return found
}

// succeeds is: e of the current node is no error but that of a missing key.
func succeeds(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) cel.Bool {
	quiet := l.Quietly()
	d, _ := read.DemandsOf(quiet, eval(quiet, e, cur).Softly())
	if d.Unsure {
		panic(l.Unsupported("an expression that may be an error where what it gives may not be needed"))
	}
	return d.All().Simplify()
}

// faultless is j where it is known to be no error.
func faultless(j read.Operand) read.Operand {
	if j.Form != read.ChoiceForm {
		return j
	}
	isError := func(j *read.Operand) bool { return j.Form == read.ErrorForm && j.Hard }
	switch {
	case isError(j.Els):
		return faultless(*j.Then)
	case isError(j.Then):
		return faultless(*j.Els)
	}
	return j.With(faultless(*j.Then), faultless(*j.Els))
}

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
