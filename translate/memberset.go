package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
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
	switch kindOf(t) {
	case schema.String:
		return native.OneOfTexts(x, s.texts())
	case schema.Bool:
		return boolCases(x, scalar.AnyWild(s.texts(), "true"), scalar.AnyWild(s.texts(), "false"))
	case schema.Int: // is no fraction, which the API server's type checker knows too
		return intIn(x, slices.DeleteFunc(s.texts(), isFraction))
	case schema.Number:
		return intIn(x, s.texts())
	case schema.IntOrString:
		return byType(x, typed{"int", intIn(x, s.texts())}, typed{"string", native.OneOfTexts(x, s.texts())})
	case schema.List, schema.Map, schema.Object: // what Kyverno prints of these has two characters at least
		return cel.Lit(slices.ContainsFunc(s.texts(), scalar.IsAnything))
	case schema.Any:
		if slices.ContainsFunc(s.texts(), scalar.IsAnything) {
			return cel.And(cel.Not(isNull(x)), cel.Or(cel.Not(isString(x)), native.OneOfTexts(x, s.texts())))
		}
		if !scalar.AnyIsWild(s.texts()) {
			return anyIn(x, s.texts())
		}
		return cel.Or(
			cel.And(isString(x), native.OneOfTexts(x, s.texts())),
			cel.And(isNumber(x), intIn(x, s.texts())),
			boolAny(x, scalar.AnyWild(s.texts(), "true"), scalar.AnyWild(s.texts(), "false")))
	}
	return cel.False()
}

func (s literalSet) hasLiteral(v any) cel.Bool {
	text := scalar.Text(v)
	for _, t := range s.texts() {
		if scalar.WildMatch(t, text) || scalar.WildMatch(text, t) {
			return cel.True()
		}
	}
	return cel.False()
}

// isFraction tells of the text of a number that is no integer.
func isFraction(text string) bool {
	f, ok := scalar.Number(text)
	return ok && f != float64(int64(f))
}

// intIn is: the text of the number is one of the texts.
func intIn(x cel.Value, texts []string) cel.Bool {
	var numbers []cel.Value
	var alts []cel.Bool
	for _, t := range texts {
		switch f, ok := scalar.Number(t); {
		case scalar.IsWild(t):
			alts = append(alts, intText(x, scalar.Atom{Op: scalar.Equals, Operand: t}))
		case ok && scalar.NumberText(f) == t && f == float64(int64(f)):
			numbers = append(numbers, cel.Int(int64(f)))
		case ok && scalar.NumberText(f) == t:
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
	alts := []cel.Bool{}
	if len(texts) > 0 {
		alts = append(alts, native.OneOfWords(x, texts))
	}
	return cel.Or(append(alts, intIn(x, texts), boolAny(x, scalar.AnyWild(texts, "true"), scalar.AnyWild(texts, "false")))...)
}

// sequenceSet is a list of the request as the right side of an operator.
type sequenceSet struct {
	l  *lowering
	s  sequence
	op memberOperator
}

func (s sequenceSet) has(x cel.Value, t *schema.Type) cel.Bool {
	sameTexts := kindOf(t) == kindOf(s.s.elem()) && kindOf(t) == schema.String
	if !s.l.mutual(s.op) && sameTexts && originOf(s.s) == fromRequest && !s.l.hasLiterals(s.s) {
		if list, ok := s.s.list(s.l, false); ok {
			return x.In(list)
		}
	}
	return s.s.quantify(s.l, cel.ForSome, false, func(y operand) cel.Bool { return s.is(x, t, y) })
}

// is tells that x is one of the list's elements, y. A word of the policy among them
// may be a wildcard.
func (s sequenceSet) is(x cel.Value, t *schema.Type, y operand) cel.Bool {
	switch {
	case y.form == choiceForm:
		then, els := s.l.eitherWay(y.c,
			func() cel.Bool { return s.is(x, t, *y.then) },
			func() cel.Bool { return s.is(x, t, *y.els) })
		return cel.CondBool(y.c, then, els)
	case y.form == litForm && isWord(y.lit):
		return s.l.wordsFor(s.op, literalSet{y.lit}).has(x, t)
	case isPattern(y):
		return s.matches(x, t, y)
	case s.l.mutual(s.op):
		return s.l.alike(valueOf(x, t), y)
	}
	return s.l.equalValues(valueOf(x, t), y)
}

// matches is: x is of the form of y, a text of the configuration.
func (s sequenceSet) matches(x cel.Value, t *schema.Type, y operand) cel.Bool {
	text := x
	switch kindOf(t) {
	case schema.String:
	case schema.Int, schema.Bool, schema.IntOrString:
		text = cel.Func(cel.FuncString, x)
	default:
		panic(s.l.unsupported("the membership of a value whose type is not known in texts that are only known at run time"))
	}
	is := s.l.matchesPattern(text, y)
	if s.l.mutual(s.op) && mayBeText(t) {
		return cel.Or(is, x.Eq(cel.String(scalar.Anything)))
	}
	return is
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
func (l *lowering) hasLiterals(s sequence) bool {
	found := false
	l.probed(func() {
		s.quantify(l, cel.ForSome, false, func(y operand) cel.Bool {
			found = found || y.some(func(j operand) bool { return j.form == litForm })
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
		return s.s.quantify(s.l, cel.ForSome, false, func(y operand) cel.Bool { return s.l.equal(y, litOf(v)) })
	}
	word := s.l.wordsFor(s.op, literalSet{v})
	return s.s.quantify(s.l, cel.ForSome, false, func(y operand) cel.Bool {
		if isPattern(y) {
			if scalar.IsWild(scalar.Text(v)) {
				panic(s.l.unsupported("a wildcard against texts that may be wildcards"))
			}
			return s.l.matchesPattern(cel.String(scalar.Text(v)), y)
		}
		return s.l.holds(y, false, pred{
			lit:      func(w any) cel.Bool { return word.hasLiteral(wordText(w)) },
			value:    word.has,
			sequence: func(sequence) cel.Bool { return word.has(cel.Value{}, &schema.Type{Kind: schema.List}) },
		})
	})
}

// valueSet is a list of the policy some of whose items are variables.
type valueSet struct {
	l    *lowering
	list operand
	op   memberOperator
}

func (s valueSet) of(item operand) set {
	if item.form == litForm {
		return s.l.wordsFor(s.op, literalSet{item.lit})
	}
	return sequenceSet{s.l, single{item}, s.op}
}

func (s valueSet) has(x cel.Value, t *schema.Type) cel.Bool {
	var alts []cel.Bool
	for _, item := range s.list.multi {
		alts = append(alts, s.of(item).has(x, t))
	}
	return cel.Or(alts...)
}

func (s valueSet) hasLiteral(v any) cel.Bool {
	var alts []cel.Bool
	for _, item := range s.list.multi {
		alts = append(alts, s.of(item).hasLiteral(v))
	}
	return cel.Or(alts...)
}

func singles(vs []any) []sequence {
	out := make([]sequence, len(vs))
	for i, v := range vs {
		out[i] = single{litOf(v)}
	}
	return out
}
