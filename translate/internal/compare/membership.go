package compare

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Membership is AnyIn, AllIn, AnyNotIn and AllNotIn.
func Membership(l *read.Lowering, op MemberOperator, key, value read.Operand) cel.Bool {
	key = read.InEach(key, asList)
	if s, ok := value.Lit.(string); ok && value.Form == read.LitForm {
		return membershipText(l, op, key, s)
	}
	ofPatterns := func(text configText, patterns cel.Value) cel.Bool {
		list := read.PlaceOf(patterns, &schema.Type{Kind: schema.List, Elem: read.StringType()}).From(read.FromPatterns)
		return cel.And(text.notNull, Membership(l, op, key, read.OperandAt(list)))
	}
	switch {
	case isOneWord(value):
		text := namedText(l, value)
		return ofPatterns(text, cel.List(text.pattern()))
	case read.IsConfigured(value):
		text := configTextOf(l, value)
		return ofPatterns(text, text.patterns())
	case value.Form == read.LitForm:
		list, ok := value.Lit.([]any)
		if _, isMap := value.Lit.(map[string]any); isMap || value.Lit == nil {
			return cel.False()
		}
		if !ok {
			panic(l.Unsupported("a membership in what is neither a list nor a text"))
		}
		words := wordsFor(l, op, list)
		return inSet(l, op, key, words, words)
	case value.Form == read.MultiForm:
		values := valueSet{l, value, op}
		return inSet(l, op, key, values, values)
	case value.Form == read.SequenceForm || read.KindOf(value.Typ()) == schema.List:
		list := asList(value).S
		elements := sequenceSet{l, list, op}
		return cel.And(thereFor(op, list), inSet(l, op, key, elements, elements))
	}
	if k, ok := key.Lit.(string); ok && key.Form == read.LitForm && read.KindOf(value.Typ()) == schema.String {
		return inRequestText(l, op, k, value)
	}
	panic(l.Unsupported("a membership in a value whose type is not known"))
}

// thereFor is what an operator asks of its list before it looks at the elements:
// null is no list to it. Nothing is in a list that reads as empty where it is null.
func thereFor(op MemberOperator, list read.Sequence) cel.Bool {
	if _, ok := list.(read.StrictList); op == (MemberOperator{Over: cel.ForSome}) && !ok {
		return cel.True()
	}
	return cel.Not(list.Null())
}

// asList makes the key a sequence where it is a list.
func asList(key read.Operand) read.Operand {
	if key.Form == read.PlaceForm && key.V.Kind() == schema.List && !key.V.Never {
		return read.SequenceOf(read.StrictList{ListOf: read.ListOf{V: key.V, Hint: read.Hint(key.V)}})
	}
	return key
}

// inSet applies an operator to a key. Scalar keys see no difference between Any
// and All. What the value is to them may be another set than what it is to lists.
func inSet(l *read.Lowering, op MemberOperator, key read.Operand, s, ofList set) cel.Bool {
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return members(l, op, singles(v), ofList)
			}
			return op.verdict(s.hasLiteral(v))
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch read.KindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				one := cel.And(read.IsScalar(x), op.verdict(s.has(x, t)))
				return cel.Or(one, cel.And(read.IsList(x), members(l, op, listAt(x), ofList)))
			}
			return op.verdict(s.has(x, t))
		},
		Sequence: func(st read.Sequence) cel.Bool { return members(l, op, st, ofList) },
	})
}

// members applies an operator to a list key.
func members(l *read.Lowering, op MemberOperator, st read.Sequence, s set) cel.Bool {
	in := func(x read.Operand) cel.Bool {
		return read.Holds(l, x, false, read.Table{
			Lit: func(v any) cel.Bool {
				if v == nil {
					return hasNull(s)
				}
				return s.hasLiteral(v)
			},
			Value: func(e cel.Value, t *schema.Type) cel.Bool {
				switch k := read.KindOf(t); {
				case k == schema.List:
					panic(l.Unsupported("a list of lists as a condition's key"))
				case isMapKind(k) && matchesMaps(s):
					panic(l.Unsupported("a list of maps as a condition's key, which Kyverno compares as what Go prints of them,"))
				case k == schema.Any && hasNull(s).IsTrue():
					return cel.Or(read.IsNull(e), s.has(e, t))
				}
				return s.has(e, t)
			},
			Sequence: func(read.Sequence) cel.Bool { panic(l.Unsupported("a list of lists as a condition's key")) },
		})
	}
	return st.Quantify(l, op.Over, false, func(x read.Operand) cel.Bool { return op.verdict(in(x)) })
}

// matchesMaps tells that a word may match what Go prints of a map, as map[a:b].
func matchesMaps(s set) bool {
	words, ok := s.(policyWords)
	return !ok || slices.ContainsFunc(words.texts(), func(text string) bool {
		return !scalar.IsAnything(text) && (scalar.IsWild(text) || strings.HasPrefix(text, "map["))
	})
}

// hasNull is: null, as an element of a list key, is a member. It is a word to
// Kyverno, which wildcards may match.
func hasNull(s set) cel.Bool {
	switch s := s.(type) {
	case policyWords:
		return s.hasLiteral(nullWord)
	case valueSet:
		return s.some(hasNull)
	}
	return cel.False()
}
