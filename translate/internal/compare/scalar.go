package compare

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// Scalar is: the value satisfies p, with the given verdict where it is missing.
// Of a list, every element must.
func Scalar(l *read.Lowering, v read.Place, p *policy.Node, missing bool) cel.Bool {
	if v.Never {
		return cel.Lit(missing)
	}
	settled := v.Settled()
	switch v.Kind() {
	case schema.List:
		all := func(x cel.Value) cel.Bool {
			return l.Binders.All(x, "item", func(e cel.Value) cel.Bool { return ScalarOne(l, read.PlaceOf(e, settled.Elem()), p, false) })
		}
		return v.Soft(missing, all)
	case schema.Object, schema.Map:
		return v.Soft(missing, func(cel.Value) cel.Bool { return cel.False() })
	}
	pred := func(x cel.Value) cel.Bool { return ScalarOne(l, read.PlaceOf(x, v.Typ), p, true) }
	return v.Soft(missing, pred)
}

// ScalarOne is: one value, which is there, satisfies p. lists tells whether a
// value of unknown type may be a list whose elements are looked at.
func ScalarOne(l *read.Lowering, v read.Place, p *policy.Node, lists bool) cel.Bool {
	switch v.Kind() {
	case schema.Object, schema.Map, schema.List:
		return cel.False()
	case schema.Any:
		one := scalarAny(l, v.Expr, p)
		if !lists {
			return one
		}
		each := l.Binders.All(v.Expr, "item", func(e cel.Value) cel.Bool { return scalarAny(l, e, p) })
		return cel.Or(one, cel.And(read.IsList(v.Expr), each))
	case schema.IntOrString:
		return byType(v.Expr, scalarInt(v.Expr, p), scalarString(v.Expr, p, v.Typ))
	case schema.Bool:
		return boolCases(v.Expr, literalSatisfies(true, p), literalSatisfies(false, p))
	case schema.Int:
		return scalarInt(v.Expr, p)
	case schema.Number:
		return scalarDouble(l, v.Expr, v.Typ, p)
	}
	return scalarString(v.Expr, p, v.Typ)
}

// byType is the verdict of the type that v, an int-or-string, has at run time.
func byType(v cel.Value, ofInt, ofText cel.Bool) cel.Bool {
	return cel.Or(cel.And(read.TypeIs(v, "int"), ofInt), cel.And(read.IsString(v), ofText))
}

// scalarAny dispatches over the types at run time.
func scalarAny(l *read.Lowering, v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return read.Amongst(v, cel.Null(), cel.Lit(false).Value, cel.Int(0), cel.String(""))
	case policy.Bool:
		return v.Eq(cel.Lit(p.Bool).Value)
	case policy.Int, policy.Float:
		number := v.Eq(cel.Double(number(p)))
		if whole, ok := wholeNumber(p); ok {
			number = v.Eq(cel.Int(whole))
		}
		return cel.Or(number, cel.And(read.IsString(v), scalarString(v, p, read.AnyType())))
	}
	return patternAny(l, v, p.Str)
}

// boolCases is a predicate over a boolean, given its verdict for true and false.
func boolCases(v cel.Value, t, f bool) cel.Bool {
	switch {
	case t && f:
		return cel.True()
	case t:
		return v.AsBool()
	case f:
		return cel.Not(v.AsBool())
	}
	return cel.False()
}

func scalarInt(v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.Int(0))
	case policy.Int, policy.Float:
		whole, ok := wholeNumber(p)
		return cel.And(cel.Lit(ok), v.Eq(cel.Int(whole)))
	case policy.String:
		return patternInt(v, p.Str)
	}
	return cel.False()
}

func scalarDouble(l *read.Lowering, v cel.Value, t *schema.Type, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.Double(0))
	case policy.Int, policy.Float:
		return v.Eq(cel.Double(number(p)))
	case policy.String:
		return patternDouble(l, v, t, p.Str)
	}
	return cel.False()
}

func scalarString(v cel.Value, p *policy.Node, t *schema.Type) cel.Bool {
	number := read.KindOf(t) != schema.IntOrString // the text of which is none
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.String(""))
	case policy.Int:
		return cel.And(cel.Lit(number), v.Matches(read.IntegerText(p.Int)))
	case policy.Float:
		// the text of a number, as strconv.ParseFloat reads decimal ones
		return cel.And(cel.Lit(number), v.Matches(read.DecimalText), cel.Func(cel.FuncDouble, v).Eq(cel.Double(p.Float)))
	case policy.String:
		return patternString(v, p.Str, t)
	}
	return cel.False()
}

// SomeKey is: a key of the map matches.
func SomeKey(l *read.Lowering, v read.Place, key string) cel.Bool {
	found := l.Binders.Exists(v.Settled().Expr, "key", func(k cel.Value) cel.Bool { return native.Matches(k, key) })
	return cel.And(v.Found(), found)
}
