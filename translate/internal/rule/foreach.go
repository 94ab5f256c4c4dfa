package rule

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/pattern"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// forEachAll is: no entry fails. The first that does not pass decides whether that is a failure
// or an error.
func forEachAll(l *read.Lowering, entries []*policy.ForEach, depth int) partial.Bool {
	onlyEntryErrs(l, entries)
	out := make([]partial.Bool, len(entries))
	for i, f := range slices.Backward(entries) {
		out[i] = forEach(l, f, entryList(l, f), depth)
	}
	return partial.All(out...)
}

// forEach is: no element of the list fails the entry.
func forEach(l *read.Lowering, f *policy.ForEach, list read.Operand, depth int) partial.Bool {
	if list.MayBeError() {
		return partial.Cond(list.C, forEach(l, f, *list.Then, depth), forEach(l, f, *list.Els, depth))
	}
	l.Trace("list", list.Described)
	every := effectOver(l, list, func(elem read.Operand) partial.Bool { return oneElement(l, f, elem, depth) })
	if list.Form == read.ErrorForm {
		return every
	}
	return elementsInOrder(l, f, list, every, depth)
}

// effectOver is: body holds for every element of a list, for the value itself
// where it is no list, and for nothing where it is null.
func effectOver(l *read.Lowering, list read.Operand, body func(read.Operand) partial.Bool) partial.Bool {
	errs := false
	run := func(x read.Operand) cel.Bool {
		if x.Form == read.LitForm && x.Lit == nil { // null is skipped
			return cel.True()
		}
		t := body(x)
		errs = errs || t.Errs
		return t.Expr
	}
	var out cel.Bool
	switch list.Form {
	case read.ChoiceForm:
		a, b := effectOver(l, *list.Then, body), effectOver(l, *list.Els, body)
		return partial.Cond(list.C, a, b)
	case read.LitForm:
		items, ok := list.Lit.([]any)
		if !ok && list.Lit != nil {
			items = []any{list.Lit}
		}
		out = cel.True()
		for _, item := range items {
			out = cel.And(out, run(read.LitOf(item)))
		}
	case read.SequenceForm, read.MultiForm:
		out = read.AsSequence(l, list).Quantify(l, cel.ForAll, false, run)
	case read.PlaceForm:
		out = overValue(l, list.V, run)
	case read.ErrorForm:
		return partial.Error(list.Hint)
	default:
		out = run(list)
	}
	if errs && !out.IsTrue() {
		return partial.MayErr(out)
	}
	return partial.Sure(out)
}

func overValue(l *read.Lowering, v read.Place, run func(read.Operand) cel.Bool) cel.Bool {
	if v.Never {
		return cel.True()
	}
	switch v.Kind() {
	case schema.List:
		return read.AsSequence(l, read.OperandAt(v)).Quantify(l, cel.ForAll, false, run)
	case schema.Any:
		one := v.Soft(true, func(x cel.Value) cel.Bool {
			return cel.Or(read.IsList(x), read.IsNull(x), run(read.ValueOf(x, read.AnyType())))
		})
		return cel.And(read.AsSequence(l, read.OperandAt(v)).Quantify(l, cel.ForAll, false, run), one)
	}
	return v.Soft(true, func(cel.Value) cel.Bool { return run(read.OperandAt(v.Settled())) })
}

// oneElement is: one element passes or is skipped. An error of its preconditions
// skips it; any other error is the rule's.
func oneElement(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) partial.Bool {
	l = Entered(l, f, elem, NoIndex(l), depth)
	holds := partial.Sure(condition.OrFalse(l, f.Preconditions)).Implies(elementBody(l, f, elem, depth))
	if f.ElementScope != nil && *f.ElementScope { // what is no map cannot be in scope
		holds = partial.Cond(isMapped(elem), holds, partial.Error("elementScope"))
	}
	return holds
}

// Entered is the walk with an element and its index at hand, and the context entries for it.
func Entered(l *read.Lowering, f *policy.ForEach, elem, index read.Operand, depth int) *read.Lowering {
	l = l.Inside()
	scope := maps.Clone(l.Scope)
	if scope == nil {
		scope = map[string]read.Operand{}
	}
	at := strconv.Itoa(depth)
	scope["element"], scope["element"+at] = elem, elem
	scope["elementIndex"], scope["elementIndex"+at] = index, index
	l.Scope, l.Context = scope, query.ContextOf(f.Context, l.Context)
	return l
}

// NoIndex is the index of an element where CEL knows none.
func NoIndex(l *read.Lowering) read.Operand {
	return read.Operand{Form: read.ErrorForm, Hint: "elementIndex", Stops: l.Unsupported("the index of an element")}
}

// isMapped is: an element is a map.
func isMapped(elem read.Operand) cel.Bool {
	switch elem.Form {
	case read.ChoiceForm:
		return cel.CondBool(elem.C, isMapped(*elem.Then), isMapped(*elem.Els))
	case read.HashForm, read.ImagesForm:
		return cel.True()
	case read.LitForm:
		_, is := elem.Lit.(map[string]any)
		return cel.Lit(is)
	case read.PlaceForm:
		switch elem.V.Kind() {
		case schema.Object, schema.Map:
			return cel.True()
		case schema.Any:
			return read.IsMap(elem.V.Expr)
		}
	}
	return cel.False()
}

func elementBody(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) partial.Bool {
	l.SetPos(f.Pos)
	switch {
	case f.Deny != nil:
		return denied(l, f.Deny).Not()
	case f.ForEach != nil:
		return inScope(l, f, elem, func(l *read.Lowering) partial.Bool { return forEachAll(l, f.ForEach, depth+1) })
	case f.Pattern != nil:
		return inScope(l, f, elem, func(l *read.Lowering) partial.Bool { return pattern.Holds(l, f.Pattern) })
	case f.AnyPattern != nil:
		return inScope(l, f, elem, func(l *read.Lowering) partial.Bool { return pattern.AnyPattern(l, f.AnyPattern) })
	}
	return partial.Sure(cel.True())
}

// inScope runs build with the element as what patterns look at. By default only
// maps are; a pattern beside another element looks at the object.
func inScope(l *read.Lowering, f *policy.ForEach, elem read.Operand, build func(l *read.Lowering) partial.Bool) partial.Bool {
	as := func(e *read.Operand) partial.Bool {
		in := l.Inside()
		if e != nil {
			in.Element = e
		}
		return build(in)
	}
	is := isMapped(elem)
	elem.V.Part = 0 // whatever part of metadata the element is: the pattern does not name it
	switch {
	case f.ElementScope != nil && !*f.ElementScope, is.IsFalse():
		return as(nil)
	case elem.Form != read.PlaceForm:
		panic(l.Unsupported("a pattern on an element that is not of the request"))
	case is.IsTrue():
		return as(&elem)
	}
	asMap := read.OperandAt(elem.V.Settled().AsMap())
	in, out := as(&asMap), as(nil)
	return partial.Cond(is, in, out)
}

// Kyverno goes through elements in order, and the first one that does not pass
// decides: a failure fails the rule, an error is the rule's. all() looks at every
// element, and lets a failure hide errors before it. That makes no difference where
// both are denied, but where failurePolicy Ignore admits what errs, and where a
// failure is excused: effect.go.

// elementsInOrder is every, what all() says of the elements of a foreach, which can be told apart as
// the first element that does not pass says. Where that is another thing it is said so.
func elementsInOrder(l *read.Lowering, f *policy.ForEach, list read.Operand, every partial.Bool, depth int) partial.Bool {
	if !every.Errs {
		return every
	}
	out := partial.ToldBy(every.Expr, func() partial.Apart {
		s := wholeList(l, list)
		if s == nil || !canTellApart(l, f) {
			panic(elementErrors(l))
		}
		if neverErrs(l, f, s, depth) { // its preconditions ask for what it reads
			return partial.ApartSure(every.Expr)
		}
		return firstDecides(l, f, s, depth)
	})
	if l.OfOld() || l.Policy.FailurePolicy != policy.Ignore {
		return out
	}
	apart, _ := out.Apart()
	if apart.Readable.IsTrue() {
		return partial.Sure(every.Expr)
	}
	fails := apart.Readable.Given(cel.Not(apart.Holds))
	return out.As(cel.CondBool(apart.Holds, cel.True(), cel.CondBool(fails, cel.False(), partial.Failing("element"))))
}

// firstDecides is what the first element that does not pass says.
func firstDecides(l *read.Lowering, f *policy.ForEach, s read.Sequence, depth int) partial.Apart {
	isBad := func(x read.Operand) cel.Bool { return cel.Not(elementApart(l, f, x, depth).Holds) }
	suffix := ""
	if l.OfOld() {
		suffix = "Before"
	}
	bad, ok := kept(l, s, isBad, suffix)
	if !ok { // it is no one list to CEL
		panic(elementErrors(l))
	}
	first, none := elementApart(l, f, read.ValueOf(bad.Index(cel.Int(0)), s.Elem()), depth), bad.Size().Eq(cel.Int(0))
	return partial.Apart{Holds: none, Fails: cel.And(cel.Not(none), first.Readable), Readable: cel.Or(none, first.Readable)}
}

// canTellApart tells whether an element of the foreach can be told apart: those that do not pass
// are kept in a variable, which stands outside of all loops.
func canTellApart(l *read.Lowering, f *policy.ForEach) bool {
	return f.ForEach == nil && l.Binders.Empty()
}

// neverErrs tells that no element is an error.
func neverErrs(l *read.Lowering, f *policy.ForEach, s read.Sequence, depth int) bool {
	return elementApart(l, f, read.ValueOf(cel.Ident("element"), s.Elem()), depth).Readable.IsTrue()
}

// kept is a variable with the elements of a list that satisfy keep; of a list of
// lists that CEL cannot flatten, those of the first one that has some.
func kept(l *read.Lowering, s read.Sequence, keep func(read.Operand) cel.Bool, suffix string) (cel.Value, bool) {
	name := read.Singular(read.HintOf(s))
	variable := "failing" + read.Capital(name) + "s" + suffix
	if items, ok := s.List(l, false); ok && s.Ordered() {
		return read.Let(l, variable, l.Binders.Filter(items, name, func(x cel.Value) cel.Bool { return keep(read.ValueOf(x, s.Elem())) })), true
	}
	outer, ok := s.(read.Flat)
	if !ok {
		return cel.Value{}, false
	}
	some := func(x read.Operand) cel.Bool { return outer.F(l, x).Quantify(l, cel.ForSome, false, keep) }
	around, ok := kept(l, outer.Of, some, "In"+suffix)
	if !ok {
		return cel.Value{}, false
	}
	inner := outer.F(l, read.ElementOf(outer.Of, around.Index(cel.Int(0))))
	items, ok := inner.List(l, false)
	if !ok || !inner.Ordered() {
		return cel.Value{}, false
	}
	items = cel.Cond(around.Size().Eq(cel.Int(0)), cel.List(), items)
	return read.Let(l, variable, l.Binders.Filter(items, name, func(x cel.Value) cel.Bool { return keep(read.ValueOf(x, s.Elem())) })), true
}

func elementErrors(l *read.Lowering) read.Refusal {
	if l.Policy.FailurePolicy != policy.Ignore {
		return l.Unsupported("a foreach whose elements may be errors, in a rule that excuses existing violations,")
	}
	return l.Unsupported("failurePolicy Ignore for a foreach whose elements may be errors")
}

// wholeList is a list of a known type of elements; nil for others.
func wholeList(l *read.Lowering, list read.Operand) read.Sequence {
	if list.Form == read.SequenceForm || list.Form == read.MultiForm || list.Form == read.PlaceForm && list.V.Kind() == schema.List {
		return read.AsSequence(l, list)
	}
	return nil
}

// elementApart is what an element says, told apart.
func elementApart(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) partial.Apart {
	apart, ok := oneElement(l, f, elem, depth).Apart()
	if !ok {
		panic(elementErrors(l))
	}
	return apart
}

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
