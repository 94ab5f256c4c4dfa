package compare

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

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
