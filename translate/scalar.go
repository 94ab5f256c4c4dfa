package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// scalar is: the value satisfies p, with the given verdict where it is missing.
// Of a list, every element must.
func (l *lowering) scalar(v place, p *policy.Node, missing bool) cel.Bool {
	if v.never {
		return cel.Lit(missing)
	}
	settled := v.settled()
	switch v.kind() {
	case schema.List:
		all := func(x cel.Value) cel.Bool {
			return l.binders.All(x, "item", func(e cel.Value) cel.Bool { return l.scalarOne(placeOf(e, settled.elem()), p, false) })
		}
		neutral := cel.Value{}
		if missing {
			neutral = cel.List()
		}
		return v.soft(missing, neutral, all)
	case schema.Object, schema.Map:
		return v.soft(missing, cel.Value{}, func(cel.Value) cel.Bool { return cel.False() })
	}
	pred := func(x cel.Value) cel.Bool { return l.scalarOne(placeOf(x, v.typ), p, true) }
	return v.soft(missing, l.neutral(v, p, missing, pred), pred)
}

// neutral is a literal of which the pattern says the same as of a missing value,
// for use in orValue; the zero Value where there is none, or where the predicate
// would repeat the whole chain.
func (l *lowering) neutral(v place, p *policy.Node, missing bool, pred func(cel.Value) cel.Bool) cel.Value {
	if v.opt.IsZero() || pred(cel.Ident("?")).Count("?") != 1 {
		return cel.Value{}
	}
	for _, c := range candidates(v.typ, p) {
		if literalSatisfies(c, p) == missing {
			return literal(c)
		}
	}
	return cel.Value{}
}

// candidates are literals of the value's type: its zero first.
func candidates(t *schema.Type, p *policy.Node) []any {
	if t == nil {
		return nil
	}
	switch t.Kind {
	case schema.Bool:
		return []any{false, true}
	case schema.Int, schema.IntOrString, schema.Number:
		return []any{int64(0), int64(1)}
	case schema.String:
		if t.Format == schema.Quantity {
			return []any{"0"}
		}
		out := []any{""}
		if p.Kind == policy.String {
			for _, alt := range scalar.ParsePattern(p.Str) {
				for _, t := range alt {
					for _, a := range t.Atoms {
						if !scalar.IsWild(a.Operand) {
							out = append(out, a.Operand)
						}
					}
				}
			}
		}
		return out
	}
	return nil
}

func literal(v any) cel.Value {
	switch v := v.(type) {
	case bool:
		return cel.Lit(v).Value
	case int64:
		return cel.Int(v)
	case float64:
		return cel.Double(v)
	case string:
		return cel.String(v)
	}
	return cel.Null()
}

// scalarOne is: one value, which is there, satisfies p. lists tells whether a
// value of unknown type may be a list whose elements are looked at.
func (l *lowering) scalarOne(v place, p *policy.Node, lists bool) cel.Bool {
	switch v.kind() {
	case schema.Object, schema.Map, schema.List:
		return cel.False()
	case schema.Any:
		one := l.scalarAny(v.expr, p)
		if !lists {
			return one
		}
		each := l.binders.All(v.expr, "item", func(e cel.Value) cel.Bool { return l.scalarAny(e, p) })
		return cel.Or(one, cel.And(isList(v.expr), each))
	case schema.IntOrString:
		return byType(v.expr,
			typed{"int", l.scalarInt(v.expr, p)},
			typed{"string", l.scalarString(v.expr, p, v.typ)})
	case schema.Bool:
		return l.scalarBool(v.expr, p)
	case schema.Int:
		return l.scalarInt(v.expr, p)
	case schema.Number:
		return l.scalarDouble(v.expr, p)
	}
	return l.scalarString(v.expr, p, v.typ)
}

// typed is a verdict for values of one CEL type.
type typed struct {
	name string
	pred cel.Bool
}

// byType is the verdict of the type that v has at run time, and false for every
// other type.
func byType(v cel.Value, cases ...typed) cel.Bool {
	var conds []cel.Bool
	for _, c := range cases {
		conds = append(conds, cel.And(typeIs(v, c.name), c.pred))
	}
	return cel.Or(conds...)
}

// scalarAny dispatches over the types at run time.
func (l *lowering) scalarAny(v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return amongst(v, cel.Null(), cel.Lit(false).Value, cel.Int(0), cel.String(""))
	case policy.Bool:
		return v.Eq(cel.Lit(p.Bool).Value)
	case policy.Int, policy.Float:
		number := v.Eq(cel.Double(number(p)))
		if whole, ok := wholeNumber(p); ok {
			number = v.Eq(cel.Int(whole))
		}
		return cel.Or(number, cel.And(isString(v), l.scalarString(v, p, anyType())))
	}
	return l.patternAny(v, p.Str)
}

func (l *lowering) scalarBool(v cel.Value, p *policy.Node) cel.Bool {
	return boolCases(v, literalSatisfies(true, p), literalSatisfies(false, p))
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

func (l *lowering) scalarInt(v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.Int(0))
	case policy.Int:
		return v.Eq(cel.Int(p.Int))
	case policy.Float:
		if whole, ok := wholeNumber(p); ok {
			return v.Eq(cel.Int(whole))
		}
		return cel.False()
	case policy.String:
		return l.patternInt(v, p.Str)
	}
	return cel.False()
}

func (l *lowering) scalarDouble(v cel.Value, p *policy.Node) cel.Bool {
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.Double(0))
	case policy.Int, policy.Float:
		return v.Eq(cel.Double(number(p)))
	case policy.String:
		return l.patternDouble(v, p.Str)
	}
	return cel.False()
}

func (l *lowering) scalarString(v cel.Value, p *policy.Node, t *schema.Type) cel.Bool {
	number := kindOf(t) != schema.IntOrString // the text of which is none
	switch p.Kind {
	case policy.Null:
		return v.Eq(cel.String(""))
	case policy.Int:
		return cel.And(cel.Lit(number), v.Matches(integerText(p.Int)))
	case policy.Float:
		// the text of a number, as strconv.ParseFloat reads decimal ones
		return cel.And(cel.Lit(number), v.Matches(decimalText), cel.Func(cel.FuncDouble, v).Eq(cel.Double(p.Float)))
	case policy.String:
		return l.patternString(v, p.Str, t)
	}
	return cel.False()
}
