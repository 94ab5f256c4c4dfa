package compare

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

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
