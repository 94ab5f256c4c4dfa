package translate

import (
	"maps"
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
)

// forEachAll is: no entry fails. The order of entries only decides which message
// is reported.
func (l *lowering) forEachAll(entries []*policy.ForEach, depth int) native.Truth {
	if l.prior && depth == 0 {
		return l.entriesBefore(entries)
	}
	l.onlyEntryErrs(entries)
	out := native.Sure(cel.True())
	for i := len(entries) - 1; i >= 0; i-- {
		out = l.forEach(entries[i], depth).AndThen(out)
	}
	return out
}

// forEach is: no element fails the entry.
func (l *lowering) forEach(f *policy.ForEach, depth int) native.Truth {
	return l.forEachOf(f, l.entryList(f), depth)
}

func (l *lowering) forEachOf(f *policy.ForEach, list operand, depth int) native.Truth {
	if list.mayBeError() {
		then, els := l.forEachOf(f, *list.then, depth), l.forEachOf(f, *list.els, depth)
		return native.Truth{Expr: cel.CondBool(list.c, then.Expr, els.Expr), Errs: then.Errs || els.Errs}
	}
	out := l.effectOver(list, func(elem operand) native.Truth { return l.oneElement(f, elem, depth) })
	return l.ordered(f, list, out, depth)
}

// effectOver is: body holds for every element of a list, for the value itself
// where it is no list, and for nothing where it is null.
func (l *lowering) effectOver(list operand, body func(operand) native.Truth) native.Truth {
	errs := false
	run := func(x operand) cel.Bool {
		t := body(x)
		errs = errs || t.Errs
		return t.Expr
	}
	var out cel.Bool
	switch list.form {
	case choiceForm:
		a, b := l.effectOver(*list.then, body), l.effectOver(*list.els, body)
		return native.Truth{Expr: cel.CondBool(list.c, a.Expr, b.Expr), Errs: a.Errs || b.Errs}
	case litForm:
		items, ok := list.lit.([]any)
		if !ok && list.lit != nil {
			items = []any{list.lit}
		}
		out = cel.True()
		for _, item := range items {
			if item != nil {
				out = cel.And(out, run(litOf(item)))
			}
		}
	case sequenceForm, multiForm:
		out = l.sequence(list).quantify(l, cel.ForAll, false, run)
	case placeForm:
		out = l.overValue(list.v, run)
	case errorForm:
		return fails(list.hint)
	default:
		out = run(list)
	}
	return native.Truth{Expr: out, Errs: errs && !out.IsTrue()}
}

func (l *lowering) overValue(v place, run func(operand) cel.Bool) cel.Bool {
	if v.never {
		return cel.True()
	}
	switch v.kind() {
	case schema.List:
		return l.sequence(operandAt(v)).quantify(l, cel.ForAll, false, run)
	case schema.Any:
		one := v.soft(true, cel.Value{}, func(x cel.Value) cel.Bool {
			return cel.Or(isList(x), isNull(x), run(dynamicOf(x)))
		})
		return cel.And(l.sequence(operandAt(v)).quantify(l, cel.ForAll, false, run), one)
	}
	return v.soft(true, cel.Value{}, func(cel.Value) cel.Bool { return run(operandAt(v.settled())) })
}

// oneElement is: one element passes or is skipped. An error of its preconditions
// skips it; any other error is the rule's.
func (l *lowering) oneElement(f *policy.ForEach, elem operand, depth int) native.Truth {
	defer l.restore(l.environment)
	defer l.setPos(l.pos)
	l.enter(f, elem, depth)
	pre := l.preOfElement(f.Preconditions)
	holds := pre.Implies(l.elementBody(f, elem, depth))
	if f.ElementScope != nil && *f.ElementScope {
		holds = l.onlyMaps(elem, holds)
	}
	return holds
}

// enter makes an element the one at hand, with the context entries for it.
func (l *lowering) enter(f *policy.ForEach, elem operand, depth int) {
	l.scope = maps.Clone(l.scope)
	if l.scope == nil {
		l.scope = map[string]operand{}
	}
	l.scope["element"] = elem
	l.scope["element"+strconv.Itoa(depth)] = elem
	index := operand{form: errorForm, hint: "elementIndex", stops: l.unsupported("the index of an element")}
	l.scope["elementIndex"] = index
	l.scope["elementIndex"+strconv.Itoa(depth)] = index
	l.context = contextOf(f.Context, l.context)
}

// onlyMaps is an error for an element that is no map: it cannot be in scope.
func (l *lowering) onlyMaps(elem operand, holds native.Truth) native.Truth {
	is := isMapped(elem)
	switch {
	case is.IsTrue():
		return holds
	case l.prior: // an error is no violation
		return native.Truth{Expr: cel.Implies(is, holds.Expr), Errs: holds.Errs}
	}
	return native.MayErr(cel.CondBool(is, holds.Expr, partial.Failing("elementScope")))
}

// isMapped is: an element is a map.
func isMapped(elem operand) cel.Bool {
	switch elem.form {
	case choiceForm:
		return cel.CondBool(elem.c, isMapped(*elem.then), isMapped(*elem.els))
	case hashForm, imagesForm:
		return cel.True()
	case litForm:
		_, is := elem.lit.(map[string]any)
		return cel.Lit(is)
	case placeForm:
		switch elem.v.kind() {
		case schema.Object, schema.Map:
			return cel.True()
		case schema.Any:
			return isMap(elem.v.expr)
		}
	}
	return cel.False()
}

func (l *lowering) elementBody(f *policy.ForEach, elem operand, depth int) native.Truth {
	l.setPos(f.Pos)
	switch {
	case f.Deny != nil:
		return l.conditionsOf(f.Deny).Not()
	case f.ForEach != nil:
		return l.inScope(f, elem, func() native.Truth { return l.forEachAll(f.ForEach, depth+1) })
	case f.Pattern != nil:
		return l.inScope(f, elem, func() native.Truth { return l.pattern(f.Pattern) })
	case f.AnyPattern != nil:
		return l.inScope(f, elem, func() native.Truth { return l.anyPattern(f.AnyPattern) })
	}
	return native.Sure(cel.True())
}

// inScope runs build with the element as what patterns look at. By default only
// maps are; a pattern beside another element looks at the object.
func (l *lowering) inScope(f *policy.ForEach, elem operand, build func() native.Truth) native.Truth {
	as := func(e *operand) native.Truth {
		defer l.restore(l.environment)
		if e != nil {
			l.element = e
		}
		return build()
	}
	is := isMapped(elem)
	switch {
	case f.ElementScope != nil && !*f.ElementScope, is.IsFalse():
		return as(nil)
	case elem.form != placeForm:
		panic(l.unsupported("a pattern on an element that is not of the request"))
	case is.IsTrue():
		return as(&elem)
	}
	asMap := operandAt(elem.v.settled().asMap())
	in, out := as(&asMap), as(nil)
	return native.Truth{Expr: cel.CondBool(is, in.Expr, out.Expr), Errs: in.Errs || out.Errs}
}

// preOfElement is an element's preconditions, false where evaluating them is an
// error.
func (l *lowering) preOfElement(c *policy.Conditions) native.Truth {
	return native.Sure(l.totalConditions(c).OrFalse())
}

// totalConditions is conditions, told apart from their error.
func (l *lowering) totalConditions(c *policy.Conditions) partial.Bool {
	if c == nil {
		return partial.Sure(cel.True())
	}
	each := func(cs []*policy.Condition) []partial.Bool {
		out := make([]partial.Bool, len(cs))
		for i := len(cs) - 1; i >= 0; i-- {
			out[i] = l.total(func() cel.Bool { return l.compared(cs[i]) })
		}
		return out
	}
	some := partial.Sure(cel.True())
	if c.Any != nil {
		some = partial.Any(each(c.Any)...)
	}
	return some.Both(partial.All(each(c.All)...))
}
