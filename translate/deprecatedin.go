package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// oldMembership is the deprecated In and NotIn.
func (l *lowering) oldMembership(not bool, key, value operand) cel.Bool {
	key = key.over(l.asList)
	if value.form != litForm {
		panic(l.refuse(diag.NoOperator, "a deprecated operator, In or NotIn, with a variable as its value has no native form"))
	}
	var members []any
	wildcards, valid := true, true
	text, isText := value.lit.(string)
	switch v := value.lit.(type) {
	case []any:
		members = v
	case string:
		words, isJSON, _ := scalar.JSONStrings(v)
		for _, s := range words {
			members = append(members, s)
		}
		valid, wildcards = isJSON, false
	default:
		return l.neverOfTexts(key)
	}
	negate := func(b cel.Bool) cel.Bool {
		if not {
			return cel.Not(b)
		}
		return b
	}
	oneKey := func(has func(set) cel.Bool) cel.Bool {
		if !isText {
			return negate(has(l.wordsFor(memberOperator{not: not}, members)))
		}
		if !valid { // only the wildcard decides
			if not {
				return cel.False()
			}
			return has(literalSet{text})
		}
		return negate(cel.Or(has(literalSet{text}), has(exactlySet(members, wildcards))))
	}
	ofTexts := func(s sequence) cel.Bool {
		if !allStrings(members) {
			return cel.False()
		}
		inMembers := cel.False()
		if !isText || valid {
			inMembers = negate(s.quantify(l, cel.ForAll, false, func(x operand) cel.Bool { return l.exactMember(x, members) }))
		}
		if isText { // the single key that is the value is in it, and also not in it
			return cel.Or(l.onlyElement(s, text), inMembers)
		}
		return inMembers
	}
	ofList := func(s sequence) cel.Bool { return l.textsOnly(s, ofTexts(s)) }
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return ofList(concat(singles(v)))
			}
			return oneKey(func(s set) cel.Bool { return s.hasLiteral(v) })
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			one := func() cel.Bool { return oneKey(func(s set) cel.Bool { return s.has(x, t) }) }
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				list, scalar := l.eitherWay(isList(x),
					func() cel.Bool {
						return ofList(listOf{v: placeOf(x, &schema.Type{Kind: schema.List, Elem: anyType()})})
					},
					func() cel.Bool { return cel.And(isScalar(x), one()) })
				return cel.Or(scalar, cel.And(isList(x), list))
			}
			return one()
		},
		sequence: ofList,
		neutral:  neutralsOf(value),
	})
}

// neverOfTexts is false, and an error where the key is one or is a list of other
// things than texts.
func (l *lowering) neverOfTexts(key operand) cel.Bool {
	list := func(s sequence) cel.Bool { return l.textsOnly(s, cel.False()) }
	return l.onlyLists(key, list, func(keys []any) cel.Bool { return list(concat(singles(keys))) })
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
	switch {
	case texts.IsTrue():
		return b
	case l.found != nil:
		*l.found = append(*l.found, texts)
		return b
	}
	return cel.CondBool(texts, b, l.failing(typeError("text")))
}

// exactMember is: a list key's element, which is a string, is a member.
func (l *lowering) exactMember(x operand, members []any) cel.Bool {
	return l.holds(x, false, pred{
		lit: func(v any) cel.Bool { return exactLiterals{exactly(members)}.hasLiteral(v) },
		value: func(e cel.Value, t *schema.Type) cel.Bool {
			if kindOf(t) == schema.Any {
				return cel.And(isString(e), exactly(members).has(e, stringType()))
			}
			return exactly(members).has(e, t)
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}
