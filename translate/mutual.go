package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// mutual tells whether a text of the request that is exactly * is a pattern too, for a
// membership operator: it is where that makes more conditions true, and in the conditions
// of an exception where it makes fewer true. Any other text of the request is itself
// (deviation 9).
func (l *lowering) mutual(op memberOperator) bool { return op.not == l.exception }

// wordsFor is words of the policy as the right side of an operator.
func (l *lowering) wordsFor(op memberOperator, words literalSet) set {
	return policyWords{literalSet: words, l: l, mutual: l.mutual(op)}
}

// policyWords are words of the policy, of which texts may be patterns, and where it is
// mutual the text * of the request is one too.
type policyWords struct {
	literalSet
	l      *lowering
	mutual bool
}

func (s policyWords) has(x cel.Value, t *schema.Type) cel.Bool {
	if len(s.texts()) == 0 || !s.mutual || s.l.judged == fromServer || isQuantityType(t) || !mayBeText(t) {
		return s.literalSet.has(x, t)
	}
	if kindOf(t) == schema.String && !scalar.AnyIsWild(s.texts()) {
		return native.OneOfWords(x, append(slices.Clone(s.texts()), scalar.Anything))
	}
	return cel.Or(s.literalSet.has(x, t), x.Eq(cel.String(scalar.Anything)))
}

// alike is: two values of the request are the same, or one of them is *.
func (l *lowering) alike(a, b operand) cel.Bool {
	alts := []cel.Bool{l.equalValues(a, b)}
	for _, j := range []operand{a, b} {
		if j.form == placeForm && mayBeText(j.typ()) && j.v.origin != fromServer && !isQuantityType(j.typ()) {
			alts = append(alts, cel.And(l.present(j), j.v.expr.Eq(cel.String(scalar.Anything))))
		}
	}
	return cel.Or(alts...)
}

func mayBeText(t *schema.Type) bool {
	switch kindOf(t) {
	case schema.String, schema.IntOrString, schema.Any:
		return true
	}
	return false
}
