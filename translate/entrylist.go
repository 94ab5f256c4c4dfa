package translate

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
)

// entryList is the list of an entry of a foreach, which is no {{ }}. Where a function
// in it may be an error, that is told beforehand: how many elements there are need not
// depend on what the function gives.
func (l *lowering) entryList(f *policy.ForEach) operand {
	l.setPos(f.List.Pos)
	e, d := jmespath.Parse(f.List.Value, f.List.Pos)
	if d != nil {
		panic(refusal{diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will judge this rule", d.Message)})
	}
	defer l.restore(l.environment)
	l.listing = true
	var list operand
	n := l.collected(func() { list = l.queryOutside(e).softly() })
	if n.unsure {
		panic(l.unsupported("a list of a foreach that may be an error"))
	}
	return choice(n.all().Simplify(), list, typeError("list"))
}

// mayBeError tells of a choice of which a branch is an error for certain.
func (j operand) mayBeError() bool {
	return j.form == choiceForm && j.some(func(branch operand) bool { return branch.form == errorForm })
}

// onlyEntryErrs refuses a list that may be an error beside other entries: Kyverno
// forgets the error where any of them has an element that passes.
func (l *lowering) onlyEntryErrs(entries []*policy.ForEach) {
	if len(entries) == 1 {
		return
	}
	for _, f := range entries {
		if list := l.entryList(f); list.form == errorForm || list.mayBeError() {
			panic(l.unsupported("a list of a foreach that may be an error, beside other entries,"))
		}
	}
}
