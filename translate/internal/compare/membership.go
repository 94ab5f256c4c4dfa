package compare

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
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

// OldMembership is the deprecated In and NotIn, of a list of the policy. A list key of which an
// element is no string is where Kyverno crashes, and an error (deviation 4; HasTexts).
func OldMembership(l *read.Lowering, not bool, key, value read.Operand) cel.Bool {
	key = read.InEach(key, asList)
	members, isMembers := value.Lit.([]any)
	switch {
	case value.Form != read.LitForm:
		panic(l.Refuse(diag.NoOperator, "a deprecated operator, In or NotIn, with a variable as its value has no native form"))
	case !isMembers:
		panic(l.Refuse(diag.NoOperator, "a deprecated operator, In or NotIn, has a native form only with a list as its value"))
	}
	op := MemberOperator{Not: not}
	words := wordsFor(l, op, members)
	ofList := func(s read.Sequence) cel.Bool {
		if !allStrings(members) {
			return cel.False()
		}
		return op.verdict(s.Quantify(l, cel.ForAll, false, func(x read.Operand) cel.Bool { return exactMember(l, x, members) }))
	}
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case nil, map[string]any:
				return cel.False()
			case []any:
				return ofList(singles(v))
			}
			return op.verdict(words.hasLiteral(v))
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch read.KindOf(t) {
			case schema.Object, schema.Map:
				return cel.False()
			case schema.Any:
				one := cel.And(read.IsScalar(x), op.verdict(words.has(x, t)))
				return cel.Or(one, cel.And(read.IsList(x), ofList(listAt(x))))
			}
			return op.verdict(words.has(x, t))
		},
		Sequence: ofList,
	})
}

// listAt is a value that is known to be a list.
func listAt(x cel.Value) read.Sequence {
	return read.ListOf{V: read.PlaceOf(x, &schema.Type{Kind: schema.List, Elem: read.AnyType()})}
}

// HasTexts is: where the key is a list, each element is a string.
func HasTexts(l *read.Lowering, key read.Operand) cel.Bool {
	ofList := func(s read.Sequence) cel.Bool {
		return s.Quantify(l, cel.ForAll, false, func(x read.Operand) cel.Bool {
			return read.Holds(l, x, false, read.Table{
				Lit:   func(v any) cel.Bool { _, ok := v.(string); return cel.Lit(ok) },
				Value: textIn,
			})
		})
	}
	key = read.InEach(key, asList)
	if key.Form == read.SequenceForm {
		return cel.Or(key.S.Null(), ofList(key.S))
	}
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			if list, ok := v.([]any); ok {
				return ofList(singles(list))
			}
			return cel.True()
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			if read.KindOf(t) != schema.Any {
				return cel.True()
			}
			return cel.Implies(read.IsList(x), ofList(listAt(x)))
		},
		Sequence: ofList,
	})
}

// exactMember is: a list key's element, which is a string, is a member.
func exactMember(l *read.Lowering, x read.Operand, members []any) cel.Bool {
	words := literalSet(members).texts()
	return read.Holds(l, x, false, read.Table{
		Lit: func(v any) cel.Bool { return cel.Lit(slices.Contains(words, wordText(v))) },
		Value: func(e cel.Value, t *schema.Type) cel.Bool {
			return cel.And(cel.Lit(len(words) > 0), textIn(e, t), native.OneOfWords(e, words))
		},
	})
}

// mutual tells whether a text of the request that is exactly * is a pattern too, for a
// membership operator: it is where that makes more conditions true, and in the conditions
// of an exception where it makes fewer true. Any other text of the request is itself
// (deviation 9).
func mutual(l *read.Lowering, op MemberOperator) bool { return op.Not == l.Exception }

// wordsFor is words of the policy as the right side of an operator.
func wordsFor(l *read.Lowering, op MemberOperator, words literalSet) set {
	return policyWords{words, mutual(l, op)}
}

// policyWords are words of the policy, of which texts may be patterns, and where it is
// mutual the text * of the request is one too.
type policyWords struct {
	literalSet
	mutual bool
}

func (s policyWords) has(x cel.Value, t *schema.Type) cel.Bool {
	if len(s.texts()) == 0 || !s.mutual || read.IsPlain(t) || read.IsQuantityType(t) || !mayBeText(t) {
		return s.literalSet.has(x, t)
	}
	if read.KindOf(t) == schema.String && !slices.ContainsFunc(s.texts(), scalar.IsWild) {
		return native.OneOfWords(x, append(slices.Clone(s.texts()), scalar.Anything))
	}
	return cel.Or(s.literalSet.has(x, t), x.Eq(cel.String(scalar.Anything)))
}

// alike is: two values of the request are the same, or one of them is *.
func alike(l *read.Lowering, a, b read.Operand) cel.Bool {
	alts := []cel.Bool{equalValues(l, a, b)}
	for _, j := range []read.Operand{a, b} {
		if j.Form == read.PlaceForm && mayBeText(j.Typ()) && !read.IsPlain(j.Typ()) && !read.IsQuantityType(j.Typ()) {
			alts = append(alts, cel.And(read.Present(l, j), j.V.Expr.Eq(cel.String(scalar.Anything))))
		}
	}
	return cel.Or(alts...)
}

func mayBeText(t *schema.Type) bool {
	switch read.KindOf(t) {
	case schema.String, schema.IntOrString, schema.Any:
		return true
	}
	return false
}
