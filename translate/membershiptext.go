package translate

import (
	"strings"

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

// membershipText is a value that is a text: a wildcard, a range, or a list in
// JSON for a scalar key; for a list key also one element.
func (l *lowering) membershipText(op memberOperator, key operand, text string) cel.Bool {
	list, isJSON, valid := scalar.JSONStrings(text)
	members := make([]any, len(list))
	for i, s := range list {
		members[i] = s
	}
	inText := textSet{l: l, text: text, members: members, valid: valid, isList: isJSON}
	not := op.not
	one := func(in cel.Bool, decided bool) cel.Bool {
		if !decided {
			return cel.False()
		}
		if not {
			return cel.Not(in)
		}
		return in
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return l.listInText(op, concat(singles(v)), inText)
			}
			in, invalid := inText.literal(v)
			return one(cel.Lit(in), !invalid)
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				elems := listOf{v: placeOf(x, &schema.Type{Kind: schema.List, Elem: anyType()})}
				return cel.Or(cel.And(isScalar(x), inText.holds(x, t, not)), cel.And(isList(x), l.listInText(op, elems, inText)))
			}
			return inText.holds(x, t, not)
		},
		sequence: func(s sequence) cel.Bool { return l.listInText(op, s, inText) },
		neutral:  neutralsOf(litOf(text)),
	})
}

// textSet is a text as the right side for a scalar key.
type textSet struct {
	l             *lowering
	text          string
	members       []any
	valid, isList bool // JSON; a JSON list of strings
}

func (s textSet) inRange() bool { return scalar.IsRange(s.text) }

// holds is the operator of a scalar key: in, or its negation.
func (s textSet) holds(x cel.Value, t *schema.Type, not bool) cel.Bool {
	wildcard := literalSet{s.text}.has(x, t)
	var rest cel.Bool
	invalid := false
	switch {
	case s.inRange():
		rest = s.l.scalarOne(placeOf(x, t), &policy.Node{Kind: policy.String, Str: s.text}, false)
	case s.isList:
		rest = exactly(s.members).has(x, t)
	case s.valid:
		invalid = true
	default:
		rest = literalSet{s.text}.has(x, t)
	}
	if invalid { // true where the wildcard matches, and false otherwise, negated too
		if not {
			return cel.False()
		}
		return wildcard
	}
	in := cel.Or(wildcard, rest)
	if not {
		return cel.Not(in)
	}
	return in
}

func (s textSet) literal(v any) (in, invalid bool) {
	text := scalar.Text(v)
	switch {
	case scalar.WildMatch(s.text, text):
		return true, false
	case s.inRange():
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		return scalar.Satisfies(v, s.text), false
	case s.isList:
		for _, m := range s.members {
			if m == text {
				return true, false
			}
		}
		return false, false
	}
	return false, s.valid
}

// listInText is a list key against a text.
func (l *lowering) listInText(op memberOperator, s sequence, t textSet) cel.Bool {
	switch {
	case t.inRange():
		return l.listInRange(op, s, t.text)
	case t.isList:
		return l.orOnly(op, s, t.text, l.members(op, s, l.wordsFor(op, t.members)))
	case t.valid:
		// the text of a JSON value that is no list of strings is in no list but the
		// one that holds just this text
		only := l.onlyElement(s, t.text)
		if op.not {
			return cel.False()
		}
		return only
	}
	return l.members(op, s, l.wordsFor(op, literalSet{t.text}))
}

// listInRange is a list key against a range. What AnyNotIn looks for is an element
// outside of it, which a text that is no number is not.
func (l *lowering) listInRange(op memberOperator, s sequence, text string) cel.Bool {
	if op.not && op.over == cel.ForSome {
		outside := strings.Replace(text, "-", "!-", 1)
		return s.quantify(l, cel.ForSome, false, func(x operand) cel.Bool { return l.wordSatisfies(x, outside) })
	}
	in := op.ofList(l, s, func(x operand) cel.Bool { return l.wordSatisfies(x, text) })
	return l.orOnly(op, s, text, in)
}

// wordSatisfies is: an element of a list key, as a text, satisfies a pattern that
// is a range. Null and lists are words that are in none.
func (l *lowering) wordSatisfies(x operand, pattern string) cel.Bool {
	p := &policy.Node{Kind: policy.String, Str: pattern}
	return l.holds(x, false, pred{
		lit: func(v any) cel.Bool { return cel.Lit(v != nil && literalSatisfies(v, p)) },
		value: func(e cel.Value, typ *schema.Type) cel.Bool {
			is := l.scalarOne(placeOf(e, typ), p, false)
			if kindOf(typ) == schema.Any {
				return cel.And(isScalar(e), is)
			}
			return is
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}

// orOnly is in, but a list that has the text as its only element is always in it.
func (l *lowering) orOnly(op memberOperator, s sequence, text string, in cel.Bool) cel.Bool {
	only := l.onlyElement(s, text)
	if op.not {
		return cel.And(cel.Not(only), in)
	}
	return cel.Or(only, in)
}

// onlyElement is: the list has one element, this text.
func (l *lowering) onlyElement(s sequence, text string) cel.Bool {
	return cel.And(s.count(l, false).Eq(cel.Int(1)),
		s.quantify(l, cel.ForSome, false, func(x operand) cel.Bool {
			return l.holds(x, false, pred{
				lit:      func(v any) cel.Bool { return cel.Lit(v != nil && scalar.Text(v) == text) },
				value:    func(e cel.Value, t *schema.Type) cel.Bool { return exactly{text}.has(e, t) },
				sequence: func(sequence) cel.Bool { return cel.False() },
			})
		}))
}
