package rule

import (
	"maps"
	"slices"
	"strconv"

	"github.com/kvap/kvap/cel"
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
