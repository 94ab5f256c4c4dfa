package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// mutual tells whether a text of the request that has wildcards is a pattern too,
// for a membership operator: it is where that makes more conditions true, and in
// the conditions of an exception where it makes fewer true (deviation 9).
func (l *lowering) mutual(op memberOperator) bool { return op.not == l.exception }

// wordsFor is words of the policy as the right side of an operator.
func (l *lowering) wordsFor(op memberOperator, words literalSet) set {
	return policyWords{literalSet: words, l: l, mutual: l.mutual(op)}
}

// policyWords are words of the policy, of which texts may be patterns: those of the
// request where they are mutual, and those of the cluster's configuration always.
type policyWords struct {
	literalSet
	l      *lowering
	mutual bool
}

func (s policyWords) has(x cel.Value, t *schema.Type) cel.Bool {
	if !s.mutual && s.l.judged != fromConfiguration {
		return s.literalSet.has(x, t)
	}
	switch kindOf(t) {
	case schema.String:
		if t.Format == schema.Quantity || s.l.judged == fromServer {
			return s.literalSet.has(x, t)
		}
		return s.alike(x)
	case schema.IntOrString, schema.Any:
		return cel.Or(s.literalSet.has(x, t), cel.And(isString(x), s.alike(x)))
	}
	return s.literalSet.has(x, t)
}

// alike is: the text x matches a word, or a word matches x. What is the same
// matches.
func (s policyWords) alike(x cel.Value) cel.Bool {
	words := s.texts()
	if len(words) == 0 {
		return cel.False()
	}
	var alts []cel.Bool
	for _, w := range words {
		if scalar.IsWild(w) {
			alts = append(alts, native.Matches(x, w))
		}
	}
	return cel.Or(append(alts, s.l.someMatches(words, x))...)
}

// someMatches is: one of the words matches the text pattern.
func (l *lowering) someMatches(words []string, pattern cel.Value) cel.Bool {
	if len(words) == 1 {
		return matchesPattern(cel.String(words[0]), patternOf(pattern))
	}
	return l.binders.Exists(cel.Strings(words...), "word", func(w cel.Value) cel.Bool { return matchesPattern(w, patternOf(pattern)) })
}

// alike is: one of two values of the request, as texts, matches the other.
func (l *lowering) alike(a, b operand) cel.Bool {
	if a.form != placeForm || b.form != placeForm {
		return l.equalWords(a, b)
	}
	aText, bText := mayBeText(a.typ()), mayBeText(b.typ())
	if !aText && !bText {
		return l.equalWords(a, b)
	}
	x, xIs := wordOf(a)
	y, yIs := wordOf(b)
	var alts []cel.Bool
	if aText {
		alts = append(alts, matchesPattern(y, patternOf(x)))
	}
	if bText {
		alts = append(alts, matchesPattern(x, patternOf(y)))
	}
	return cel.And(l.present(a), l.present(b), xIs, yIs, cel.Or(alts...))
}

// equalWords is: two values of the request are the same as texts.
func (l *lowering) equalWords(a, b operand) cel.Bool {
	if a.form != placeForm || b.form != placeForm || kindOf(a.typ()) == kindOf(b.typ()) && kindOf(a.typ()) != schema.Any {
		return l.equalValues(a, b)
	}
	x, xIs := wordOf(a)
	y, yIs := wordOf(b)
	return cel.And(l.present(a), l.present(b), xIs, yIs, x.Eq(y))
}

func mayBeText(t *schema.Type) bool {
	switch kindOf(t) {
	case schema.String, schema.IntOrString, schema.Any:
		return true
	}
	return false
}

// wordOf is a value that is there as the text that membership operators compare,
// and whether it has one: lists and maps, which Kyverno prints in a form of its
// own, are no words of a policy.
func wordOf(j operand) (text cel.Value, is cel.Bool) {
	x := j.v.expr
	switch kindOf(j.typ()) {
	case schema.String:
		return x, cel.True()
	case schema.Any:
		return cel.Func(cel.FuncString, x), isScalar(x)
	case schema.List, schema.Map, schema.Object:
		return cel.String(""), cel.False()
	}
	return cel.Func(cel.FuncString, x), cel.True()
}
