package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// membership is AnyIn, AllIn, AnyNotIn and AllNotIn.
func (l *lowering) membership(op memberOperator, key, value operand) cel.Bool {
	key = l.inEach(key, l.asList)
	if s, ok := value.lit.(string); ok && value.form == litForm {
		return l.membershipText(op, key, s)
	}
	switch {
	case isConfigured(value):
		text := l.configText(value)
		list := placeOf(text.patterns(), &schema.Type{Kind: schema.List, Elem: stringType()}).from(fromPatterns)
		return cel.And(text.notNull, l.membership(op, key, operandAt(list)))
	case value.form == litForm:
		list, ok := value.lit.([]any)
		if _, isMap := value.lit.(map[string]any); isMap || value.lit == nil {
			return l.never(key)
		}
		if !ok {
			panic(l.unsupported("a membership in what is neither a list nor a text"))
		}
		return l.inSet(op, key, l.wordsFor(op, list), value)
	case value.form == multiForm:
		return l.inSet(op, key, valueSet{l, value, op}, value)
	case value.form == sequenceForm || kindOf(value.typ()) == schema.List:
		list := l.asList(value).s
		return cel.And(l.thereFor(op, list), l.inSet(op, key, sequenceSet{l, list, op}, value))
	}
	if k, ok := key.lit.(string); ok && key.form == litForm && kindOf(value.typ()) == schema.String {
		return l.inRequestText(op, k, value)
	}
	panic(l.unsupported("a membership in a value whose type is not known"))
}

// thereFor is what an operator asks of its list before it looks at the elements:
// null is no list to it. Nothing is in a list that reads as empty where it is null.
func (l *lowering) thereFor(op memberOperator, list sequence) cel.Bool {
	if _, ok := list.(strictList); op == (memberOperator{over: cel.ForSome}) && !ok {
		return cel.True()
	}
	return cel.Not(list.null())
}

// asList makes the key a sequence where it is a list.
func (l *lowering) asList(key operand) operand {
	switch {
	case key.form == placeForm && key.v.kind() == schema.List && !key.v.never:
		return sequenceOf(strictList{listOf{v: key.v, hint: l.hint(key.v)}})
	case key.form == multiForm:
		return sequenceOf(everyPart(key))
	}
	return key
}

// inSet applies an operator to a key. Scalar keys see no difference between Any
// and All.
func (l *lowering) inSet(op memberOperator, key operand, s set, value operand) cel.Bool {
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return literalMembers(op, v, s)
			}
			return op.verdict(s.hasLiteral(v))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				one := cel.And(isScalar(x), op.verdict(s.has(x, t)))
				return cel.Or(one, cel.And(isList(x), l.members(op, listOf{v: placeOf(x, &schema.Type{Kind: schema.List, Elem: anyType()})}, s)))
			}
			return op.verdict(s.has(x, t))
		},
		sequence: func(st sequence) cel.Bool { return l.members(op, st, s) },
		neutral:  neutralsOf(value),
	})
}

// members applies an operator to a list key.
func (l *lowering) members(op memberOperator, st sequence, s set) cel.Bool {
	in := func(x operand) cel.Bool {
		return l.holds(x, false, pred{
			lit: func(v any) cel.Bool {
				if v == nil {
					return hasNull(s)
				}
				return s.hasLiteral(v)
			},
			value: func(e cel.Value, t *schema.Type) cel.Bool {
				if kindOf(t) == schema.Any && hasNull(s).IsTrue() {
					return cel.Or(isNull(e), s.has(e, t))
				}
				return s.has(e, t)
			},
			sequence: func(sequence) cel.Bool { panic(l.unsupported("a list of lists as a condition's key")) },
		})
	}
	return op.ofList(l, st, in)
}

// hasNull is: null, as an element of a list key, is a member. It is a word to
// Kyverno, which wildcards may match.
func hasNull(s set) cel.Bool {
	switch s := s.(type) {
	case policyWords:
		return s.hasLiteral(nullWord)
	case valueSet:
		return cel.Lit(slices.ContainsFunc(s.list.multi, func(item operand) bool { return hasNull(s.of(item)).IsTrue() }))
	}
	return cel.False()
}

// everyPart is a multi-select list as a list key, in which what is missing is null.
func everyPart(j operand) sequence {
	out := make(concat, len(j.multi))
	for i, part := range j.multi {
		out[i] = single{part}
	}
	return out
}

func literalMembers(op memberOperator, keys []any, s set) cel.Bool {
	var each []cel.Bool
	for _, k := range keys {
		in := hasNull(s)
		if k != nil {
			in = s.hasLiteral(k)
		}
		each = append(each, op.verdict(in))
	}
	if op.over == cel.ForSome {
		return cel.Or(each...)
	}
	return cel.And(each...)
}

// never is false, and an error where the key is one.
func (l *lowering) never(key operand) cel.Bool {
	return l.holds(key, true, pred{
		lit:      func(any) cel.Bool { return cel.False() },
		value:    func(cel.Value, *schema.Type) cel.Bool { return cel.False() },
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}
