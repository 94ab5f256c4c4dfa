package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// A Place is where a value of the request stands: an expression, what the schema knows of it,
// and the guards that say whether anything is there.
//
// The guards are in the order of the path. Each evaluates without error where
// those before it hold; the expression does where all of them hold, and is an
// error ("no such key") where a key is missing. So a place can be read strictly,
// where Kyverno errs on a missing key as well, or softly, behind its guards.
type Place struct {
	Expr   cel.Value
	Typ    *schema.Type
	Guards []Guard
	// Never tells that nothing can be there: the schema has no such field.
	Never  bool
	Origin origin
	Part   metadataPart
}

// A Guard is one condition on the way to a place.
type Guard struct {
	Cond cel.Bool
	// Shape tells that the guard is about the type of the parent (a failure means
	// null to JMESPath, a wrong structure to a pattern), not about a key's presence.
	Shape bool
	// Hard tells that what is missing stays an error where a missing key would be
	// null: a context entry that has no value.
	Hard bool
}

// PlaceOf is a place without guards.
func PlaceOf(expr cel.Value, typ *schema.Type) Place { return Place{Expr: expr, Typ: typ} }

// OptionalField is a field of v that may be missing.
func OptionalField(v cel.Value, name string, t *schema.Type) Place {
	return Place{Expr: v.Field(name).OfKind(native.Kind(t)), Typ: t, Guards: []Guard{{Cond: v.Has(name)}}}
}

// AnyType is the type of a value that no schema tells of.
func AnyType() *schema.Type { return &schema.Type{Kind: schema.Any} }

// StringType is the type of texts.
func StringType() *schema.Type { return &schema.Type{Kind: schema.String} }

// PlainText is the type of texts without wildcards, as a name that the API server gave out,
// or a part of an image's reference.
func PlainText() *schema.Type { return &schema.Type{Kind: schema.String, Format: schema.Plain} }

// IsPlain tells of such texts.
func IsPlain(t *schema.Type) bool { return KindOf(t) == schema.String && t.Format == schema.Plain }

// Kind is the kind of the value; Any when it is not known.
func (v Place) Kind() schema.Kind {
	if v.Typ == nil {
		return schema.Any
	}
	return v.Typ.Kind
}

// Dynamic tells that the type is only known at run time.
func (v Place) Dynamic() bool { return v.Kind() == schema.Any }

// Field is the place of a key.
func (v Place) Field(name string) Place {
	w := v.below(name)
	w.Part = partOf(v.Part, name)
	return w
}

func (v Place) below(name string) Place {
	if v.Never { // nor is anything in it
		return v
	}
	switch v.Kind() {
	case schema.Object:
		f, ok := v.Typ.Fields[name]
		if !ok {
			if v.Typ.Published { // the cluster's own type checker may know no such field
				v.Expr = Dyn(v.Expr)
			}
			if v.Typ.Open {
				return v.step(name, AnyType(), false)
			}
			return v.none(name)
		}
		return v.step(name, f.Type, f.Required)
	case schema.Map:
		return v.step(name, v.Typ.Elem, false)
	case schema.Any:
		return v.ShapedBy(IsMap(v.Expr)).step(name, AnyType(), false)
	}
	return v.none(name)
}

// ShapedBy is v behind a guard about its structure.
func (v Place) ShapedBy(shape cel.Bool) Place {
	v.Guards = append(slices.Clip(v.Guards), Guard{Cond: shape, Shape: true})
	return v
}

// none is a field that the schema does not have. Reading it strictly is an
// error, as in Kyverno; dyn keeps the type checker from saying so of every request.
func (v Place) none(name string) Place {
	shape := v.Kind() != schema.Object && v.Kind() != schema.Map
	cond := cel.False()
	if shape && v.MayMiss() { // false too, but an error where v is missing
		cond = IsMap(v.Expr)
	}
	return Place{
		Expr:   cel.Func(cel.FuncDyn, v.Expr).Field(name),
		Typ:    AnyType(),
		Guards: append(slices.Clip(v.Guards), Guard{Cond: cond, Shape: shape}),
		Never:  true,
	}
}

func (v Place) step(name string, typ *schema.Type, required bool) Place {
	if typ != nil && typ.Nullable && typ.Kind != schema.List { // of what may be null no type is known
		return v.step(name, AnyType(), required)
	}
	w := Place{Expr: v.Expr.Field(name).OfKind(native.Kind(typ)), Typ: typ, Guards: v.Guards, Never: v.Never, Origin: v.Origin}
	if required {
		w.Expr = w.Expr.Sure()
		return w
	}
	w.Guards = append(slices.Clip(v.Guards), Guard{Cond: v.Expr.Has(name)})
	if typ != nil && typ.Nullable { // a list that the API server writes as null when it is empty
		return w.ShapedBy(Dyn(w.Expr).Ne(cel.Null()))
	}
	return w
}

// Matched is the place of a key as a pattern looks at it: null is a value to it.
func (v Place) Matched(key string) Place {
	w := v.Field(key)
	if w.Typ == nil || !w.Typ.Nullable || w.Dynamic() {
		return w
	}
	w.Guards = w.Guards[:len(w.Guards)-1]
	w.Typ = AnyType()
	return w
}

// Found tells that there is a value, which may still be null where the type is
// not known.
func (v Place) Found() cel.Bool {
	conds := make([]cel.Bool, len(v.Guards))
	for i, g := range v.Guards {
		conds[i] = g.Cond
	}
	return cel.And(conds...)
}

// Demanded is the place where it is no error of a context entry, and what must hold
// for that; true where nothing must.
func (v Place) Demanded() (Place, cel.Bool) {
	var hard []cel.Bool
	var rest []Guard
	for _, g := range v.Guards {
		if g.Hard {
			hard = append(hard, g.Cond)
		} else {
			rest = append(rest, g)
		}
	}
	v.Guards = rest
	return v, cel.And(hard...)
}

// Shaped tells that every step of the path has the structure it needs; unlike
// found it errs where a key is missing.
func (v Place) Shaped() cel.Bool {
	var conds []cel.Bool
	for _, g := range v.Guards {
		if g.Shape {
			conds = append(conds, g.Cond)
		}
	}
	return cel.And(conds...)
}

// Certain tells that the value is always there.
func (v Place) Certain() bool { return len(v.Guards) == 0 }

// Settled is the place inside a context where its guards are known to hold.
func (v Place) Settled() Place {
	v.Guards = nil
	return v
}

// Soft is pred where the value is found and missing where it is not.
func (v Place) Soft(missing bool, pred func(cel.Value) cel.Bool) cel.Bool {
	if v.Never {
		return cel.Lit(missing)
	}
	if v.Certain() {
		return pred(v.Expr)
	}
	if missing {
		return cel.Implies(v.Found(), pred(v.Expr))
	}
	return cel.And(v.Found(), pred(v.Expr))
}

// TypeIs tells that a value of unknown type is of a CEL type.
func TypeIs(v cel.Value, name string) cel.Bool { return v.Type().Eq(cel.Ident(name)) }

// IsMap is: v is a map.
func IsMap(v cel.Value) cel.Bool { return TypeIs(v, "map") }

// IsList is: v is a list.
func IsList(v cel.Value) cel.Bool { return TypeIs(v, "list") }

// IsString is: v is a text.
func IsString(v cel.Value) cel.Bool { return TypeIs(v, "string") }

// IsNull is: v is null.
func IsNull(v cel.Value) cel.Bool { return v.Eq(cel.Null()) }

// IsNumber tells that v is an int or a double.
func IsNumber(v cel.Value) cel.Bool { return cel.Or(TypeIs(v, "int"), TypeIs(v, "double")) }

// IsScalar tells that v is a string, a number or a boolean.
func IsScalar(v cel.Value) cel.Bool { return cel.Not(cel.Or(IsNull(v), IsMap(v), IsList(v))) }

// Amongst is v in [...] for literals of several types.
func Amongst(v cel.Value, ws ...cel.Value) cel.Bool {
	for i := range ws {
		ws[i] = Dyn(ws[i])
	}
	return v.In(cel.List(ws...))
}

// AsMap is a place of unknown type that is known to be a map.
func (v Place) AsMap() Place {
	v.Typ = MapOf(AnyType())
	return v
}

// MayMiss tells that reading the value strictly may be an error.
func (v Place) MayMiss() bool {
	return slices.ContainsFunc(v.Guards, func(g Guard) bool { return !g.Shape })
}

// KeysFound is: no key on the way is missing, or a step before it is no map.
func (v Place) KeysFound() cel.Bool {
	out := cel.True()
	for i := len(v.Guards) - 1; i >= 0; i-- {
		if g := v.Guards[i]; g.Shape {
			out = cel.Implies(g.Cond, out)
		} else {
			out = cel.And(g.Cond, out)
		}
	}
	return out
}

// MapOf is the type of maps to values of a type.
func MapOf(elem *schema.Type) *schema.Type { return &schema.Type{Kind: schema.Map, Elem: elem} }

// Elem is the type of a list's items or a map's values.
func (v Place) Elem() *schema.Type {
	if v.Typ == nil || v.Typ.Elem == nil || v.Typ.Elem.Nullable {
		return AnyType()
	}
	return v.Typ.Elem
}

// asList is a place of unknown type as a list; where it is none it counts as null.
func (v Place) asList() Place {
	w := v.ShapedBy(IsList(v.Expr))
	w.Typ = &schema.Type{Kind: schema.List, Elem: AnyType()}
	return w
}

// OrElse is v, and another value where nothing is found. It is short where the guards ask for
// keys alone.
func (v Place) OrElse(other cel.Value) (out cel.Value, short bool) {
	if v.Certain() {
		return v.Expr, true
	}
	if out, short = v.Expr.OrElse(v.Found(), other); short {
		return out, true
	}
	return cel.Cond(v.Found(), v.Expr, other), false
}

// source is a list or a map to go through. Read softly, it is empty where it is missing;
// read strictly it is null, which has no elements to CEL either, where a value of unknown
// type is something else.
func (v Place) source(strict bool, empty cel.Value) cel.Value {
	soft, keysAlone := v.OrElse(empty)
	switch {
	case !strict:
		return soft
	case keysAlone || v.Shaped().IsTrue():
		return v.Expr
	}
	return cel.Cond(v.Shaped(), v.Expr, Dyn(cel.Null()))
}

// Item is the place of a list's element.
func (v Place) Item(n int) Place {
	w := v
	if v.Dynamic() {
		w = v.ShapedBy(IsList(v.Expr))
	}
	i, least := cel.Int(int64(n)), n+1
	if n < 0 {
		i, least = v.Expr.Size().Binary(cel.Minus, cel.Int(int64(-n))), -n
	}
	w = w.ShapedBy(v.Expr.Size().Compare(cel.Greater, cel.Int(int64(least-1))))
	w.Expr, w.Typ = v.Expr.Index(i).OfKind(native.Kind(v.Elem())), v.Elem()
	return w
}

// Dyn is v for the type checker to know nothing of.
func Dyn(v cel.Value) cel.Value { return cel.Func(cel.FuncDyn, v) }

// A metadataPart says how deep below metadata a pattern is: keys of labels and
// annotations may hold wildcards.
type metadataPart int

// The parts of metadata.
const (
	elsewhere metadataPart = iota
	inMetadata
	InLabels
)

func partOf(parent metadataPart, key string) metadataPart {
	switch {
	case key == "metadata":
		return inMetadata
	case parent == inMetadata && (key == "labels" || key == "annotations"):
		return InLabels
	}
	return elsewhere
}
