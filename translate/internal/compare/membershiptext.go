package compare

import (
	"encoding/json"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// inRequestText is an operator of a word of the policy and a text of the request, which is
// the one element of a list.
func inRequestText(l *read.Lowering, op MemberOperator, k string, value read.Operand) cel.Bool {
	return read.Holds(l, value, true, read.Table{
		Lit: func(v any) cel.Bool { return cel.And(cel.Lit(v != nil), op.verdict(cel.Lit(v == k))) },
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			return op.verdict(wordsFor(l, op, literalSet{k}).has(x, t))
		},
	})
}

// membershipText is a value that is a text: a range, or one that may be a wildcard. For a
// list key the latter is one element.
func membershipText(l *read.Lowering, op MemberOperator, key read.Operand, text string) cel.Bool {
	if json.Valid([]byte(text)) {
		panic(l.Unsupported("a text of JSON as the value of a membership"))
	}
	if scalar.IsRange(text) {
		return inRange(l, op, key, text)
	}
	one := literalSet{text}
	return inSet(l, op, key, oneText{one}, wordsFor(l, op, one))
}

// oneText is a text as the value for a scalar key: key abc is in value a*, but key a* is
// not in value abc.
type oneText struct{ literalSet }

func (s oneText) hasLiteral(v any) cel.Bool {
	return cel.Lit(scalar.AnyWild(s.texts(), scalar.Text(v)))
}

// inRange is a range as the value, for numbers and quantities: of a list of texts, one that
// has the range itself as its only element is in it too.
func inRange(l *read.Lowering, op MemberOperator, key read.Operand, text string) cel.Bool {
	p := &policy.Node{Kind: policy.String, Str: text}
	in := func(x cel.Value, t *schema.Type) cel.Bool {
		if !numericKind(t) && !read.IsQuantityType(t) {
			panic(l.Unsupported("a range for what is no number and no quantity by its type, as the value of a membership"))
		}
		return op.verdict(ScalarOne(l, read.PlaceOf(x, t), p, false))
	}
	literal := func(v any) cel.Bool {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		return op.verdict(cel.Lit(scalar.Satisfies(v, text)))
	}
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			if _, number := scalar.Float(v); number {
				return literal(v)
			}
			if v == nil {
				return cel.False()
			}
			panic(l.Unsupported("a range for a literal that is no number"))
		},
		Value: in,
		Sequence: func(s read.Sequence) cel.Bool {
			return s.Quantify(l, op.Over, false, func(x read.Operand) cel.Bool {
				return read.Holds(l, x, false, read.Table{
					Lit: func(v any) cel.Bool {
						if v == nil { // in no range, but nothing that is looked for outside of one
							return cel.Lit(op.Not && op.Over == cel.ForAll)
						}
						return literal(v)
					},
					Value:    in,
					Sequence: func(read.Sequence) cel.Bool { panic(l.Unsupported("a list of lists as a condition's key")) },
				})
			})
		},
	})
}
