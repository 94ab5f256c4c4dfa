package translate

import (
	"maps"
	"slices"
	"strings"

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
	l.certainEntries(e)
	var list operand
	n := l.collected(func() { list = l.queryOutside(e).softly() })
	if n.unsure {
		panic(l.unsupported("a list of a foreach that may be an error"))
	}
	return choice(n.all().Simplify(), list, typeError("list"))
}

// certainEntries refuses a list that names a context entry which may be an error: for want of
// a key there are no elements then, and any other error is the rule's.
func (l *lowering) certainEntries(e *jmespath.Expr) {
	text := e.String()
	for _, name := range slices.Sorted(maps.Keys(l.context.named)) {
		v := l.context.get(name)
		if v == nil || !mentions(text, name) {
			continue
		}
		certain := false
		l.probed(func() {
			var value operand
			needed := l.collected(func() { value = l.topLevel(name) })
			c, ok := l.readable(value)
			switch {
			case value.form == errorForm: // of what is deleted there is no new object, which is null
				certain = needed.none() && l.object.form == litForm && ofNewObject(v.entry)
			default:
				certain = needed.none() && ok && c.IsTrue() && !value.some(func(j operand) bool { return j.form == errorForm })
			}
		})
		if !certain {
			panic(l.unsupported("a list of a foreach whose context entry may be an error"))
		}
	}
}

// ofNewObject tells of a path in the new object.
func ofNewObject(e *policy.ContextEntry) bool {
	if e.Variable == nil || e.Variable.Value != nil || e.Variable.Default != nil || e.Variable.JMESPath == nil {
		return false
	}
	path := e.Variable.JMESPath.Value
	return strings.HasPrefix(path, "request.object.") && !strings.Contains(path, "oldObject")
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
