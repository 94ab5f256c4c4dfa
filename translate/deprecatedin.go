package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// oldMembership is the deprecated In and NotIn, of a list of the policy.
func (l *lowering) oldMembership(not bool, key, value operand) cel.Bool {
	key = l.inEach(key, l.asList)
	members, isMembers := value.lit.([]any)
	switch {
	case value.form != litForm:
		panic(l.refuse(diag.NoOperator, "a deprecated operator, In or NotIn, with a variable as its value has no native form"))
	case !isMembers:
		panic(l.refuse(diag.NoOperator, "a deprecated operator, In or NotIn, has a native form only with a list as its value"))
	}
	signed := func(is cel.Bool) cel.Bool {
		if not {
			return cel.Not(is)
		}
		return is
	}
	words := l.wordsFor(memberOperator{not: not}, members)
	ofList := func(s sequence) cel.Bool {
		if !allStrings(members) {
			return l.textsOnly(s, cel.False())
		}
		return l.textsOnly(s, signed(s.quantify(l, cel.ForAll, false, func(x operand) cel.Bool { return l.exactMember(x, members) })))
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return ofList(concat(singles(v)))
			}
			return signed(words.hasLiteral(v))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				list, one := l.eitherWay(isList(x),
					func() cel.Bool {
						return ofList(listOf{v: placeOf(x, &schema.Type{Kind: schema.List, Elem: anyType()})})
					},
					func() cel.Bool { return cel.And(isScalar(x), signed(words.has(x, t))) })
				return cel.Or(one, cel.And(isList(x), list))
			}
			return signed(words.has(x, t))
		},
		sequence: ofList,
		neutral:  neutralsOf(value),
	})
}

// textsOnly is b, or an error where an element of a list key is no string, which
// is where Kyverno crashes (deviation 4).
func (l *lowering) textsOnly(s sequence, b cel.Bool) cel.Bool {
	texts := s.quantify(l, cel.ForAll, false, func(x operand) cel.Bool {
		return l.holds(x, false, pred{
			lit: func(v any) cel.Bool { _, ok := v.(string); return cel.Lit(ok) },
			value: func(e cel.Value, t *schema.Type) cel.Bool {
				switch kindOf(t) {
				case schema.String:
					return cel.True()
				case schema.Any, schema.IntOrString:
					return isString(e)
				}
				return cel.False()
			},
			sequence: func(sequence) cel.Bool { return cel.False() },
		})
	})
	l.need(texts)
	return b
}

// exactMember is: a list key's element, which is a string, is a member.
func (l *lowering) exactMember(x operand, members []any) cel.Bool {
	words := literalSet(members).texts()
	return l.holds(x, false, pred{
		lit: func(v any) cel.Bool { return cel.Lit(slices.Contains(words, wordText(v))) },
		value: func(e cel.Value, t *schema.Type) cel.Bool {
			switch k := kindOf(t); {
			case len(words) == 0 || !mayBeText(t):
				return cel.False()
			case k == schema.String:
				return native.OneOfWords(e, words)
			}
			return cel.And(isString(e), native.OneOfWords(e, words))
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}
