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
	o, ok := l.oldSet(not, value.lit)
	if !ok {
		return l.neverOfTexts(key)
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return o.ofList(concat(singles(v)))
			}
			return o.ofOne(func(s set) cel.Bool { return s.hasLiteral(v) })
		},
		value:    o.ofValue,
		sequence: o.ofList,
		neutral:  neutralsOf(value),
	})
}

// An oldSet is the right side of In or NotIn: a list, or a text.
type oldSet struct {
	l       *lowering
	not     bool
	members []any
	// Of a text: it is a wildcard for a key that is no list, and its members are
	// those of the list that it is the JSON of.
	isText, isJSON bool
	text           string
}

// oldSet is false of what is neither a list nor a text.
func (l *lowering) oldSet(not bool, value any) (o oldSet, ok bool) {
	o = oldSet{l: l, not: not}
	switch v := value.(type) {
	case []any:
		o.members = v
	case string:
		words, isJSON, _ := scalar.JSONStrings(v)
		o.isText, o.isJSON, o.text = true, isJSON, v
		for _, s := range words {
			o.members = append(o.members, s)
		}
	default:
		return o, false
	}
	return o, true
}

// signed is what the operator makes of "is a member".
func (o oldSet) signed(is cel.Bool) cel.Bool {
	if o.not {
		return cel.Not(is)
	}
	return is
}

// ofOne is the operator for a key that is no list.
func (o oldSet) ofOne(has func(set) cel.Bool) cel.Bool {
	switch {
	case !o.isText:
		return o.signed(has(o.l.wordsFor(memberOperator{not: o.not}, o.members)))
	case o.isJSON:
		return o.signed(cel.Or(has(literalSet{o.text}), has(exactLiterals{exactly(o.members)})))
	case o.not: // only the wildcard decides
		return cel.False()
	}
	return has(literalSet{o.text})
}

// ofValue is the operator for a key of a type.
func (o oldSet) ofValue(x cel.Value, t *schema.Type) cel.Bool {
	one := func() cel.Bool { return o.ofOne(func(s set) cel.Bool { return s.has(x, t) }) }
	switch kindOf(t) {
	case schema.Object, schema.Map:
		return cel.False()
	case schema.Any:
		list, scalar := o.l.eitherWay(isList(x),
			func() cel.Bool {
				return o.ofList(listOf{v: placeOf(x, &schema.Type{Kind: schema.List, Elem: anyType()})})
			},
			func() cel.Bool { return cel.And(isScalar(x), one()) })
		return cel.Or(scalar, cel.And(isList(x), list))
	}
	return one()
}

// ofList is the operator for a list.
func (o oldSet) ofList(s sequence) cel.Bool { return o.l.textsOnly(s, o.ofTexts(s)) }

// ofTexts is the operator for a list of texts.
func (o oldSet) ofTexts(s sequence) cel.Bool {
	if !allStrings(o.members) {
		return cel.False()
	}
	in := cel.False()
	if !o.isText || o.isJSON {
		in = o.signed(s.quantify(o.l, cel.ForAll, false, func(x operand) cel.Bool { return o.l.exactMember(x, o.members) }))
	}
	if o.isText { // the single key that is the value is in it, and also not in it
		return cel.Or(o.l.onlyElement(s, o.text), in)
	}
	return in
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
	l.need(texts)
	return b
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
