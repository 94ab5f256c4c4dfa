package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A place is where a value of the request stands: an expression, what the schema knows of it,
// and the guards that say whether anything is there.
//
// The guards are in the order of the path. Each evaluates without error where
// those before it hold; the expression does where all of them hold, and is an
// error ("no such key") where a key is missing. So a place can be read strictly,
// where Kyverno errs on a missing key as well, or softly, behind its guards.
type place struct {
	expr   cel.Value
	typ    *schema.Type
	opt    cel.Value // expr as a CEL optional; zero where the path holds a step of unknown type
	guards []guard
	// never tells that nothing can be there: the schema has no such field.
	never  bool
	origin origin
	part   metadataPart
}

// A guard is one condition on the way to a place.
type guard struct {
	cond cel.Bool
	// shape tells that the guard is about the type of the parent (a failure means
	// null to JMESPath, a wrong structure to a pattern), not about a key's presence.
	shape bool
	// hard tells that what is missing stays an error where a missing key would be
	// null: a context entry that has no value.
	hard bool
}

// placeOf is a place without guards.
func placeOf(expr cel.Value, typ *schema.Type) place { return place{expr: expr, typ: typ} }

func anyType() *schema.Type { return &schema.Type{Kind: schema.Any} }

func stringType() *schema.Type { return &schema.Type{Kind: schema.String} }

// kind is the kind of the value; Any when it is not known.
func (v place) kind() schema.Kind {
	if v.typ == nil {
		return schema.Any
	}
	return v.typ.Kind
}

// dynamic tells that the type is only known at run time.
func (v place) dynamic() bool { return v.kind() == schema.Any }

// field is the place of a key.
func (v place) field(name string) place {
	w := v.below(name)
	w.part = partOf(v.part, name)
	return w
}

func (v place) below(name string) place {
	if v.never { // nor is anything in it
		return v
	}
	switch v.kind() {
	case schema.Object:
		f, ok := v.typ.Fields[name]
		if !ok {
			if v.typ.Published { // the cluster's own type checker may know no such field
				v.expr, v.opt = dyn(v.expr), cel.Value{}
			}
			if v.typ.Open {
				return v.step(name, anyType(), false)
			}
			return v.none(name)
		}
		return v.step(name, f.Type, f.Required)
	case schema.Map:
		return v.step(name, v.typ.Elem, false)
	case schema.Any:
		w := v
		w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: isMap(v.expr), shape: true})
		w.opt = cel.Value{}
		return w.step(name, anyType(), false).dynamicStep()
	}
	return v.none(name)
}

func (v place) dynamicStep() place {
	v.opt = cel.Value{}
	return v
}

// none is a field that the schema does not have. Reading it strictly is an
// error, as in Kyverno; dyn keeps the type checker from saying so of every request.
func (v place) none(name string) place {
	shape := v.kind() != schema.Object && v.kind() != schema.Map
	cond := cel.False()
	if shape && v.mayMiss() { // false too, but an error where v is missing
		cond = isMap(v.expr)
	}
	return place{
		expr:   cel.Func(cel.FuncDyn, v.expr).Field(name),
		typ:    anyType(),
		guards: append(v.guards[:len(v.guards):len(v.guards)], guard{cond: cond, shape: shape}),
		never:  true,
	}
}

func (v place) step(name string, typ *schema.Type, required bool) place {
	if typ != nil && typ.Nullable && typ.Kind != schema.List { // of what may be null no type is known
		return v.step(name, anyType(), required).dynamicStep()
	}
	w := place{expr: v.expr.Field(name), typ: typ, guards: v.guards, never: v.never, origin: v.origin}
	switch {
	case required && len(v.guards) == 0:
		return w
	case required:
		if !v.opt.IsZero() {
			w.opt = v.opt.Opt(name)
		}
		return w
	case len(v.guards) == 0:
		w.opt = v.expr.Opt(name)
	case !v.opt.IsZero():
		w.opt = v.opt.Opt(name)
	}
	w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: v.expr.Has(name)})
	if typ != nil && typ.Nullable && typ.Kind == schema.List {
		return w.nullable()
	}
	return w
}

// matched is the place of a key as a pattern looks at it: null is a value to it.
func (v place) matched(key string) place {
	w := v.field(key)
	if w.typ == nil || !w.typ.Nullable || w.dynamic() {
		return w
	}
	w.guards = w.guards[:len(w.guards)-1]
	w.typ = anyType()
	return w.dynamicStep()
}

// nullable is a place that may be null though its type is known: a list that the API
// server writes as null when it is empty.
func (v place) nullable() place {
	v.guards = append(v.guards, guard{cond: dyn(v.expr).Ne(cel.Null()), shape: true})
	v.opt = cel.Value{}
	return v
}

// found tells that there is a value, which may still be null where the type is
// not known.
func (v place) found() cel.Bool {
	// has(a.b.c) where every step is optional reads best as a.?b.?c.hasValue().
	if len(v.guards) > 2 && !v.opt.IsZero() {
		return v.opt.HasValue()
	}
	conds := make([]cel.Bool, len(v.guards))
	for i, g := range v.guards {
		conds[i] = g.cond
	}
	return cel.And(conds...)
}

// demanded is the place where it is no error of a context entry, and what must hold
// for that; true where nothing must.
func (v place) demanded() (place, cel.Bool) {
	var hard []cel.Bool
	var rest []guard
	for _, g := range v.guards {
		if g.hard {
			hard = append(hard, g.cond)
		} else {
			rest = append(rest, g)
		}
	}
	v.guards = rest
	return v, cel.And(hard...)
}

// shaped tells that every step of the path has the structure it needs; unlike
// found it errs where a key is missing.
func (v place) shaped() cel.Bool {
	var conds []cel.Bool
	for _, g := range v.guards {
		if g.shape {
			conds = append(conds, g.cond)
		}
	}
	return cel.And(conds...)
}

// certain tells that the value is always there.
func (v place) certain() bool { return len(v.guards) == 0 }

// settled is the place inside a context where its guards are known to hold.
func (v place) settled() place {
	v.guards, v.opt = nil, cel.Value{}
	return v
}

// soft is pred where the value is found and missing where it is not. A neutral
// value, of which pred says the same as missing, gives the shorter form; the
// zero Value says that there is none, or that pred reads its argument twice.
func (v place) soft(missing bool, neutral cel.Value, pred func(cel.Value) cel.Bool) cel.Bool {
	if v.never {
		return cel.Lit(missing)
	}
	if v.certain() {
		return pred(v.expr)
	}
	if !neutral.IsZero() && !v.opt.IsZero() {
		return pred(v.opt.OrValue(neutral))
	}
	if missing {
		return cel.Implies(v.found(), pred(v.expr))
	}
	return cel.And(v.found(), pred(v.expr))
}

// strict is pred of the value; an error where a key is missing, and null's
// verdict where a step of the path is no map.
func (v place) strict(null bool, pred func(cel.Value) cel.Bool) cel.Bool {
	shaped := v.shaped()
	if null {
		return cel.Implies(shaped, pred(v.expr))
	}
	return cel.And(shaped, pred(v.expr))
}

// typeIs tells that a value of unknown type is of a CEL type.
func typeIs(v cel.Value, name string) cel.Bool { return v.Type().Eq(cel.Ident(name)) }

func isMap(v cel.Value) cel.Bool { return typeIs(v, "map") }

func isList(v cel.Value) cel.Bool { return typeIs(v, "list") }

func isString(v cel.Value) cel.Bool { return typeIs(v, "string") }

func isNull(v cel.Value) cel.Bool { return v.Eq(cel.Null()) }

// isNumber tells that v is an int or a double.
func isNumber(v cel.Value) cel.Bool { return cel.Or(typeIs(v, "int"), typeIs(v, "double")) }

// isScalar tells that v is a string, a number or a boolean.
func isScalar(v cel.Value) cel.Bool { return cel.Not(cel.Or(isNull(v), isMap(v), isList(v))) }

// amongst is v in [...] for literals of several types.
func amongst(v cel.Value, ws ...cel.Value) cel.Bool {
	for i := range ws {
		ws[i] = dyn(ws[i])
	}
	return v.In(cel.List(ws...))
}

// asMap is a place of unknown type that is known to be a map.
func (v place) asMap() place {
	v.typ = mapOf(anyType())
	return v
}

// mayMiss tells that reading the value strictly may be an error.
func (v place) mayMiss() bool {
	for _, g := range v.guards {
		if !g.shape {
			return true
		}
	}
	return false
}

// keysFound is: no key on the way is missing, or a step before it is no map.
func (v place) keysFound() cel.Bool {
	out := cel.True()
	for i := len(v.guards) - 1; i >= 0; i-- {
		if g := v.guards[i]; g.shape {
			out = cel.Implies(g.cond, out)
		} else {
			out = cel.And(g.cond, out)
		}
	}
	return out
}

func mapOf(elem *schema.Type) *schema.Type { return &schema.Type{Kind: schema.Map, Elem: elem} }

// elem is the type of a list's items or a map's values.
func (v place) elem() *schema.Type {
	if v.typ == nil || v.typ.Elem == nil || v.typ.Elem.Nullable {
		return anyType()
	}
	return v.typ.Elem
}

// asList is a place of unknown type as a list; where it is none it counts as null.
func (v place) asList() place {
	w := v
	w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: isList(v.expr), shape: true})
	w.typ = &schema.Type{Kind: schema.List, Elem: anyType()}
	w.opt = cel.Value{}
	return w
}

// orNull is the expression of a list or a map, which is read strictly: null, which has
// no elements to CEL either, where a value of unknown type is something else.
func (v place) orNull() cel.Value {
	if shaped := v.shaped(); !shaped.IsTrue() && v.opt.IsZero() {
		return cel.Cond(shaped, v.expr, dyn(cel.Null()))
	}
	return v.expr
}

// item is the place of a list's element.
func (v place) item(n int) place {
	w := v
	w.guards = v.guards[:len(v.guards):len(v.guards)]
	if v.dynamic() {
		w.guards = append(w.guards, guard{cond: isList(v.expr), shape: true})
		w.opt = cel.Value{}
	}
	i, least := cel.Int(int64(n)), n+1
	if n < 0 {
		i, least = v.expr.Size().Binary(cel.Minus, cel.Int(int64(-n))), -n
	}
	w.guards = append(w.guards, guard{cond: v.expr.Size().Compare(cel.GreaterEqual, cel.Int(int64(least))), shape: true})
	w.expr, w.typ = v.expr.Index(i), v.elem()
	switch {
	case n < 0 || v.dynamic():
		w.opt = cel.Value{}
	case v.certain():
		w.opt = v.expr.OptIndex(i)
	case !v.opt.IsZero():
		w.opt = v.opt.OptIndex(i)
	}
	return w
}

func dyn(v cel.Value) cel.Value { return cel.Func(cel.FuncDyn, v) }
