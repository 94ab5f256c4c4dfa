package rule

import (
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// entryList is the list of an entry of a foreach, which is no {{ }}. Where a function
// in it may be an error, that is told beforehand: how many elements there are need not
// depend on what the function gives.
func entryList(l *read.Lowering, f *policy.ForEach) read.Operand {
	l.SetPos(f.List.Pos)
	e, d := jmespath.Parse(f.List.Value, f.List.Pos)
	if d != nil {
		panic(read.Refusal{Diagnostic: diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will judge this rule", d.Message)})
	}
	certainEntries(l, e)
	list := query.Outside(l, e).Softly()
	demands := list.Anyway()
	if demands.Unsure {
		panic(l.Unsupported("a list of a foreach that may be an error"))
	}
	return read.Choice(demands.All().Simplify(), list.Undemanding(), read.TypeError("list"))
}

// certainEntries refuses a list that names a context entry which may be an error: for want of
// a key there are no elements then, and any other error is the rule's.
func certainEntries(l *read.Lowering, e *jmespath.Expr) {
	text := e.String()
	for _, name := range slices.Sorted(maps.Keys(l.Context.Named)) {
		v := l.Context.Get(name)
		if v == nil || !query.Mentions(text, name) {
			continue
		}
		certain := false
		l.Probed(func(l *read.Lowering) {
			value := query.TopLevel(l, name)
			d, ok := read.DemandsOf(l, value)
			switch {
			case value.Form == read.ErrorForm: // of what is deleted there is no new object, which is null
				certain = value.Anyway().None() && l.Object.Form == read.LitForm && ofNewObject(v.Entry)
			default:
				certain = ok && d.None() && !value.Some(func(j read.Operand) bool { return j.Form == read.ErrorForm })
			}
		})
		if !certain {
			panic(l.Unsupported("a list of a foreach whose context entry may be an error"))
		}
	}
}

// OfNewObject tells of a path in the new object.
func ofNewObject(e *policy.ContextEntry) bool {
	if e.Variable == nil || e.Variable.Value != nil || e.Variable.Default != nil || e.Variable.JMESPath == nil {
		return false
	}
	path := e.Variable.JMESPath.Value
	return strings.HasPrefix(path, "request.object.") && !strings.Contains(path, "oldObject")
}

// onlyEntryErrs refuses a list that may be an error beside other entries: Kyverno
// forgets the error where any of them has an element that passes.
func onlyEntryErrs(l *read.Lowering, entries []*policy.ForEach) {
	if len(entries) == 1 {
		return
	}
	for _, f := range entries {
		if list := entryList(l, f); list.Form == read.ErrorForm || list.MayBeError() {
			panic(l.Unsupported("a list of a foreach that may be an error, beside other entries,"))
		}
	}
}
