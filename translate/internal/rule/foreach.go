package rule

import (
	"maps"
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/pattern"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// forEachAll is: no entry fails. The order of entries only decides which message
// is reported.
func forEachAll(l *read.Lowering, entries []*policy.ForEach, depth int) native.Truth {
	if l.Prior && depth == 0 {
		return entriesBefore(l, entries)
	}
	onlyEntryErrs(l, entries)
	out := native.Sure(cel.True())
	for i := len(entries) - 1; i >= 0; i-- {
		out = forEach(l, entries[i], depth).AndThen(out)
	}
	return out
}

// forEach is: no element fails the entry.
func forEach(l *read.Lowering, f *policy.ForEach, depth int) native.Truth {
	return forEachOf(l, f, entryList(l, f), depth)
}

func forEachOf(l *read.Lowering, f *policy.ForEach, list read.Operand, depth int) native.Truth {
	if list.MayBeError() {
		then, els := forEachOf(l, f, *list.Then, depth), forEachOf(l, f, *list.Els, depth)
		return native.Truth{Expr: cel.CondBool(list.C, then.Expr, els.Expr), Errs: then.Errs || els.Errs}
	}
	out := effectOver(l, list, func(elem read.Operand) native.Truth { return oneElement(l, f, elem, depth) })
	return ordered(l, f, list, out, depth)
}

// effectOver is: body holds for every element of a list, for the value itself
// where it is no list, and for nothing where it is null.
func effectOver(l *read.Lowering, list read.Operand, body func(read.Operand) native.Truth) native.Truth {
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
		return native.Truth{Expr: cel.CondBool(list.C, a.Expr, b.Expr), Errs: a.Errs || b.Errs}
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
		return read.Fails(list.Hint)
	default:
		out = run(list)
	}
	return native.Truth{Expr: out, Errs: errs && !out.IsTrue()}
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
func oneElement(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) native.Truth {
	l = l.Inside()
	Enter(l, f, elem, depth)
	pre := condition.PreOfElement(l, f.Preconditions)
	holds := pre.Implies(elementBody(l, f, elem, depth))
	if f.ElementScope != nil && *f.ElementScope {
		holds = onlyMaps(l, elem, holds)
	}
	return holds
}

// Enter makes an element the one at hand, with the context entries for it.
func Enter(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) {
	l.Scope = maps.Clone(l.Scope)
	if l.Scope == nil {
		l.Scope = map[string]read.Operand{}
	}
	l.Scope["element"] = elem
	l.Scope["element"+strconv.Itoa(depth)] = elem
	index := read.Operand{Form: read.ErrorForm, Hint: "elementIndex", Stops: l.Unsupported("the index of an element")}
	l.Scope["elementIndex"] = index
	l.Scope["elementIndex"+strconv.Itoa(depth)] = index
	l.Context = query.ContextOf(f.Context, l.Context)
}

// onlyMaps is an error for an element that is no map: it cannot be in scope.
func onlyMaps(l *read.Lowering, elem read.Operand, holds native.Truth) native.Truth {
	is := isMapped(elem)
	switch {
	case is.IsTrue():
		return holds
	case l.Prior: // an error is no violation
		return native.Truth{Expr: cel.Implies(is, holds.Expr), Errs: holds.Errs}
	}
	return native.MayErr(cel.CondBool(is, holds.Expr, partial.Failing("elementScope")))
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

func elementBody(l *read.Lowering, f *policy.ForEach, elem read.Operand, depth int) native.Truth {
	l.SetPos(f.Pos)
	switch {
	case f.Deny != nil:
		return conditionsOf(l, f.Deny).Not()
	case f.ForEach != nil:
		return inScope(l, f, elem, func(l *read.Lowering) native.Truth { return forEachAll(l, f.ForEach, depth+1) })
	case f.Pattern != nil:
		return inScope(l, f, elem, func(l *read.Lowering) native.Truth { return pattern.Holds(l, f.Pattern) })
	case f.AnyPattern != nil:
		return inScope(l, f, elem, func(l *read.Lowering) native.Truth { return pattern.AnyPattern(l, f.AnyPattern) })
	}
	return native.Sure(cel.True())
}

// inScope runs build with the element as what patterns look at. By default only
// maps are; a pattern beside another element looks at the object.
func inScope(l *read.Lowering, f *policy.ForEach, elem read.Operand, build func(l *read.Lowering) native.Truth) native.Truth {
	as := func(e *read.Operand) native.Truth {
		l := l.Inside()
		if e != nil {
			l.Element = e
		}
		return build(l)
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
	return native.Truth{Expr: cel.CondBool(is, in.Expr, out.Expr), Errs: in.Errs || out.Errs}
}
