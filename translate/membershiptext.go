package translate

import (
	"encoding/json"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// inRequestText is an operator of a word of the policy and a text of the request, which is
// the one element of a list.
func (l *lowering) inRequestText(op memberOperator, k string, value operand) cel.Bool {
	return l.holds(value, true, pred{
		lit: func(v any) cel.Bool { return cel.And(cel.Lit(v != nil), op.verdict(cel.Lit(v == k))) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			return op.verdict(l.wordsFor(op, literalSet{k}).has(x, t))
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
		neutral:  neutralsOf(litOf(k)),
	})
}

// membershipText is a value that is a text: a range, or one that may be a wildcard. For a
// list key the latter is one element.
func (l *lowering) membershipText(op memberOperator, key operand, text string) cel.Bool {
	if json.Valid([]byte(text)) {
		panic(l.unsupported("a text of JSON as the value of a membership"))
	}
	if scalar.IsRange(text) {
		return l.inRange(op, key, text)
	}
	one := literalSet{text}
	words := l.wordsFor(op, one)
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return literalMembers(op, v, words)
			}
			return op.verdict(cel.Lit(scalar.WildMatch(text, scalar.Text(v))))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				elems := listOf{v: placeOf(x, &schema.Type{Kind: schema.List, Elem: anyType()})}
				return cel.Or(cel.And(isScalar(x), op.verdict(one.has(x, t))), cel.And(isList(x), l.members(op, elems, words)))
			}
			return op.verdict(one.has(x, t))
		},
		sequence: func(s sequence) cel.Bool { return l.members(op, s, words) },
		neutral:  neutralsOf(litOf(text)),
	})
}

// inRange is a range as the value, for numbers and quantities: of a list of texts, one that
// has the range itself as its only element is in it too.
func (l *lowering) inRange(op memberOperator, key operand, text string) cel.Bool {
	p := &policy.Node{Kind: policy.String, Str: text}
	in := func(x cel.Value, t *schema.Type) cel.Bool {
		if !numericKind(t) && !isQuantityType(t) {
			panic(l.unsupported("a range for what is no number and no quantity by its type, as the value of a membership"))
		}
		return op.verdict(l.scalarOne(placeOf(x, t), p, false))
	}
	literal := func(v any) cel.Bool {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		return op.verdict(cel.Lit(scalar.Satisfies(v, text)))
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			if _, number := scalar.Float(v); number {
				return literal(v)
			}
			if v == nil {
				return cel.False()
			}
			panic(l.unsupported("a range for a literal that is no number"))
		},
		value: in,
		sequence: func(s sequence) cel.Bool {
			return s.quantify(l, op.over, false, func(x operand) cel.Bool {
				return l.holds(x, false, pred{
					lit: func(v any) cel.Bool {
						if v == nil { // in no range, but nothing that is looked for outside of one
							return cel.Lit(op.not && op.over == cel.ForAll)
						}
						return literal(v)
					},
					value:    in,
					sequence: func(sequence) cel.Bool { panic(l.unsupported("a list of lists as a condition's key")) },
				})
			})
		},
	})
}
