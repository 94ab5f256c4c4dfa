package compare

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A set is the right side of a membership.
type set interface {
	// has is: the value of the type is a member.
	has(x cel.Value, t *schema.Type) cel.Bool
	// hasLiteral is: the literal is a member.
	hasLiteral(v any) cel.Bool
}

// literalSet is a list of the policy. Its texts may be wildcards. Numbers and booleans compare by their text.
type literalSet []any

func (s literalSet) texts() []string {
	out := make([]string, len(s))
	for i, v := range s {
		out[i] = wordText(v)
	}
	return out
}

// wordText is a literal as the word that the operators compare: null is what Go prints.
func wordText(v any) string {
	if v == nil {
		return nullWord
	}
	return scalar.Text(v)
}

const nullWord = "<nil>"

func (s literalSet) has(x cel.Value, t *schema.Type) cel.Bool {
	switch read.KindOf(t) {
	case schema.String:
		return native.OneOfTexts(x, s.texts())
	case schema.Bool:
		return boolCases(x, scalar.AnyWild(s.texts(), "true"), scalar.AnyWild(s.texts(), "false"))
	case schema.Int: // is no fraction, which the API server's type checker knows too
		return IntIn(x, slices.DeleteFunc(s.texts(), isFraction))
	case schema.Number:
		return numberIsIn(x, t, s.texts())
	case schema.IntOrString:
		return byType(x, IntIn(x, s.texts()), native.OneOfTexts(x, s.texts()))
	case schema.List, schema.Map, schema.Object: // what Kyverno prints of these has two characters at least
		return cel.Lit(slices.ContainsFunc(s.texts(), scalar.IsAnything))
	case schema.Any:
		if slices.ContainsFunc(s.texts(), scalar.IsAnything) {
			return cel.And(cel.Not(read.IsNull(x)), cel.Or(cel.Not(read.IsString(x)), native.OneOfTexts(x, s.texts())))
		}
		if !slices.ContainsFunc(s.texts(), scalar.IsWild) {
			return anyIn(x, s.texts())
		}
		return cel.Or(
			cel.And(read.IsString(x), native.OneOfTexts(x, s.texts())),
			cel.And(read.IsNumber(x), IntIn(x, s.texts())),
			boolAny(x, scalar.AnyWild(s.texts(), "true"), scalar.AnyWild(s.texts(), "false")))
	}
	return cel.False()
}

func (s literalSet) hasLiteral(v any) cel.Bool {
	text := scalar.Text(v)
	return cel.Lit(slices.ContainsFunc(s.texts(), func(t string) bool { return scalar.WildMatch(t, text) || scalar.WildMatch(text, t) }))
}

// isFraction tells of the text of a number that is no integer.
func isFraction(text string) bool {
	f, ok := scalar.Number(text)
	return ok && f != float64(int64(f))
}

// IntIn is: the text of an integer is one of the texts.
func IntIn(x cel.Value, texts []string) cel.Bool {
	return numberIsIn(x, &schema.Type{Kind: schema.Int}, texts)
}

// numberIsIn is: the text of the number is one of the texts.
func numberIsIn(x cel.Value, t *schema.Type, texts []string) cel.Bool {
	var numbers []cel.Value
	var alts []cel.Bool
	for _, text := range texts {
		switch f, ok := scalar.Number(text); {
		case scalar.IsWild(text):
			alts = append(alts, intText(x, scalar.Atom{Op: scalar.Equals, Operand: text}))
		case ok && scalar.NumberText(f) == text && f == float64(int64(f)):
			numbers = append(numbers, read.NumberFor(t, f))
		case ok && scalar.NumberText(f) == text:
			alts = append(alts, x.Eq(cel.Double(f)))
		}
	}
	if len(numbers) == 1 {
		alts = append(alts, x.Eq(numbers[0]))
	} else if len(numbers) > 1 {
		alts = append(alts, x.In(cel.List(numbers...)))
	}
	return cel.Or(alts...)
}

// anyIn is membership of a value of unknown type in words: as a text, a number or
// a boolean that reads like one of them.
func anyIn(x cel.Value, texts []string) cel.Bool {
	words := cel.And(cel.Lit(len(texts) > 0), native.OneOfWords(x, texts))
	return cel.Or(words, IntIn(x, texts), boolAny(x, scalar.AnyWild(texts, "true"), scalar.AnyWild(texts, "false")))
}

// sequenceSet is a list of the request as the right side of an operator.
type sequenceSet struct {
	l  *read.Lowering
	s  read.Sequence
	op MemberOperator
}

func (s sequenceSet) has(x cel.Value, t *schema.Type) cel.Bool {
	sameTexts := read.KindOf(t) == read.KindOf(s.s.Elem()) && read.KindOf(t) == schema.String
	if !mutual(s.l, s.op) && sameTexts && s.s.Origin() == read.FromRequest && !hasLiterals(s.l, s.s) {
		if list, ok := s.s.List(s.l, false); ok {
			return x.In(list)
		}
	}
	return s.s.Quantify(s.l, cel.ForSome, false, func(y read.Operand) cel.Bool { return s.is(x, t, y) })
}

// is tells that x is one of the list's elements, y. A word of the policy among them
// may be a wildcard.
func (s sequenceSet) is(x cel.Value, t *schema.Type, y read.Operand) cel.Bool {
	switch {
	case y.Form == read.ChoiceForm:
		return cel.CondBool(y.C, s.is(x, t, *y.Then), s.is(x, t, *y.Els))
	case y.Form == read.LitForm && isWord(y.Lit):
		return wordsFor(s.l, s.op, literalSet{y.Lit}).has(x, t)
	case isPattern(y):
		return s.matches(x, t, y)
	case y.Form == read.PlaceForm && y.V.Dynamic() && y.V.Origin == read.FromConfiguration:
		return s.matchesScalar(x, t, y.V.Expr)
	case mutual(s.l, s.op):
		return alike(s.l, read.ValueOf(x, t), y)
	}
	return equalValues(s.l, read.ValueOf(x, t), y)
}

// matches is: x is of the form of y, a text of the configuration.
func (s sequenceSet) matches(x cel.Value, t *schema.Type, y read.Operand) cel.Bool {
	text := x
	switch read.KindOf(t) {
	case schema.String:
	case schema.Int, schema.Bool, schema.IntOrString:
		text = cel.Func(cel.FuncString, x)
	default:
		panic(s.l.Unsupported("the membership of a value whose type is not known, as of elements of containers and ephemeralContainers together, in texts that are only known at run time"))
	}
	is := matchesPattern(text, y)
	if mutual(s.l, s.op) && mayBeText(t) {
		return cel.Or(is, x.Eq(cel.String(scalar.Anything)))
	}
	return is
}

// matchesScalar is matches of a value of the cluster whose type is not known, by its text.
func (s sequenceSet) matchesScalar(x cel.Value, t *schema.Type, y cel.Value) cel.Bool {
	are := read.IsScalar(y)
	if read.KindOf(t) == schema.Any {
		are = cel.And(are, read.IsScalar(x))
		x, t = cel.Func(cel.FuncString, x), read.StringType()
	}
	return cel.And(are, s.matches(x, t, read.ConfiguredText(cel.Func(cel.FuncString, y))))
}

// isWord tells of a scalar of the policy.
func isWord(lit any) bool {
	switch lit.(type) {
	case nil, []any, map[string]any:
		return false
	}
	return true
}

// hasLiterals tells that some elements of a sequence are the policy's own.
func hasLiterals(l *read.Lowering, s read.Sequence) bool {
	found := false
	l.Probed(func(l *read.Lowering) {
		s.Quantify(l, cel.ForSome, false, func(y read.Operand) cel.Bool {
			found = found || y.Some(func(j read.Operand) bool { return j.Form == read.LitForm })
			return cel.True()
		})
	})
	return found
}

func (s sequenceSet) hasLiteral(v any) cel.Bool {
	switch v.(type) {
	case nil: // no word
		return cel.False()
	case []any, map[string]any:
		return s.s.Quantify(s.l, cel.ForSome, false, func(y read.Operand) cel.Bool { return equal(s.l, y, read.LitOf(v)) })
	}
	word := wordsFor(s.l, s.op, literalSet{v})
	return s.s.Quantify(s.l, cel.ForSome, false, func(y read.Operand) cel.Bool {
		if isPattern(y) {
			if scalar.IsWild(scalar.Text(v)) {
				panic(s.l.Unsupported("a wildcard against texts that may be wildcards"))
			}
			return matchesPattern(cel.String(scalar.Text(v)), y)
		}
		return read.Holds(s.l, y, false, read.Table{
			Lit:      func(w any) cel.Bool { return word.hasLiteral(wordText(w)) },
			Value:    word.has,
			Sequence: func(read.Sequence) cel.Bool { return word.has(cel.Value{}, &schema.Type{Kind: schema.List}) },
		})
	})
}

// valueSet is a list of the policy some of whose items are variables.
type valueSet struct {
	l    *read.Lowering
	list read.Operand
	op   MemberOperator
}

// some is: is of some item of the list, each as a set.
func (s valueSet) some(is func(set) cel.Bool) cel.Bool {
	var alts []cel.Bool
	for _, item := range s.list.Multi {
		if item.Form == read.LitForm {
			alts = append(alts, is(wordsFor(s.l, s.op, literalSet{item.Lit})))
		} else {
			alts = append(alts, is(sequenceSet{s.l, read.Single{J: item}, s.op}))
		}
	}
	return cel.Or(alts...)
}

func (s valueSet) has(x cel.Value, t *schema.Type) cel.Bool {
	return s.some(func(one set) cel.Bool { return one.has(x, t) })
}

func (s valueSet) hasLiteral(v any) cel.Bool {
	return s.some(func(one set) cel.Bool { return one.hasLiteral(v) })
}

// singles are the literals of a list.
func singles(vs []any) read.Sequence {
	out := make(read.Concat, len(vs))
	for i, v := range vs {
		out[i] = read.Single{J: read.LitOf(v)}
	}
	return out
}

// A MemberOperator is AnyIn, AllIn, AnyNotIn or AllNotIn: some or all elements of
// a list key are, or are not, in the value.
type MemberOperator struct {
	Over cel.Quantifier
	Not  bool
}

// verdict is the operator's on an element or a scalar key that is, or is not, in
// the value.
func (op MemberOperator) verdict(in cel.Bool) cel.Bool {
	if op.Not {
		return cel.Not(in)
	}
	return in
}
