package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
)

// A failure of a foreach is excused where the old object fails as well; an error is
// not, and excuses nothing. So it counts what the first element that does not pass
// says, in the first entry that has one.

// An entryOutcome is what an entry of a foreach says of an object, in two parts that
// are no errors: whether all elements pass, and whether the first that does not is a
// failure, which is asked where some does not.
type entryOutcome struct{ passes, fails cel.Bool }

// entriesBefore is: the first element of the old object that does not pass is no
// failure, or all pass.
func (l *lowering) entriesBefore(entries []*policy.ForEach) native.Truth {
	out := cel.True()
	for i := len(entries) - 1; i >= 0; i-- {
		e := l.entryOutcome(entries[i], "Before")
		out = cel.CondBool(e.passes, out, cel.Not(e.fails))
	}
	return native.Sure(out)
}

// failsFirst is: the first element of the new object that does not pass is a failure.
// It is asked where the rule fails.
func (l *lowering) failsFirst(entries []*policy.ForEach) cel.Bool {
	out := cel.True()
	for i := len(entries) - 1; i >= 0; i-- {
		e := l.entryOutcome(entries[i], "")
		if i == len(entries)-1 {
			out = e.fails
			continue
		}
		out = cel.CondBool(e.passes, out, e.fails)
	}
	return out
}

// entryOutcome is what an entry says. A refusal where that cannot be told.
func (l *lowering) entryOutcome(f *policy.ForEach, suffix string) entryOutcome {
	if !l.mayErr(f) {
		return entryOutcome{l.forEach(f, 0).Expr, cel.True()}
	}
	return l.outcomeOfList(f, l.entryList(f), suffix)
}

// outcomeOfList is what an entry says of a list, which is no failure where it is an
// error.
func (l *lowering) outcomeOfList(f *policy.ForEach, list operand, suffix string) entryOutcome {
	switch {
	case list.form == errorForm:
		return entryOutcome{cel.False(), cel.False()}
	case list.form == litForm && list.lit == nil: // which has no elements
		return entryOutcome{cel.True(), cel.True()}
	case list.form == choiceForm:
		then, els := l.outcomeOfList(f, *list.then, suffix), l.outcomeOfList(f, *list.els, suffix)
		return entryOutcome{cel.CondBool(list.c, then.passes, els.passes), cel.CondBool(list.c, then.fails, els.fails)}
	}
	if list.form == placeForm && !list.v.never && !list.v.dynamic() && list.v.kind() != schema.List {
		return l.outcomeOfOne(f, list.v)
	}
	s := l.wholeList(list)
	dynamic := s == nil && list.form == placeForm && list.v.dynamic() && !list.v.never
	if dynamic {
		s = l.sequence(list)
	}
	if s == nil || !l.knownParts(f) {
		panic(l.elementErrors())
	}
	if l.neverErrs(f, s, 0) { // its preconditions ask for what it reads
		return entryOutcome{l.forEachOf(f, list, 0).Expr, cel.True()}
	}
	e := l.outcomeOver(f, s, suffix)
	if dynamic {
		e = l.orSingle(f, list.v, e)
	}
	return e
}

// outcomeOfOne is what an entry says of a value that is no list, which is its one
// element.
func (l *lowering) outcomeOfOne(f *policy.ForEach, v place) entryOutcome {
	read, holds := l.elementParts(f, operandAt(v.settled()), 0)
	return entryOutcome{cel.Implies(v.found(), cel.And(read, holds)), read}
}

// outcomeOver is what an entry says of the elements of a list, which are gone through
// part by part where they are no one list to CEL.
func (l *lowering) outcomeOver(f *policy.ForEach, s sequence, suffix string) entryOutcome {
	if bad, read, ok := l.firstBad(f, s, suffix, 0); ok {
		return entryOutcome{bad.Size().Eq(cel.Int(0)), read}
	}
	parts, ok := s.(concat)
	if !ok {
		panic(l.elementErrors())
	}
	out := l.outcomeOver(f, parts[len(parts)-1], suffix)
	for i := len(parts) - 2; i >= 0; i-- {
		e := l.outcomeOver(f, parts[i], suffix)
		out = entryOutcome{cel.And(e.passes, out.passes), cel.CondBool(e.passes, out.fails, e.fails)}
	}
	return out
}

// orSingle is what an entry says of a list, and of a value that is none.
func (l *lowering) orSingle(f *policy.ForEach, v place, ofList entryOutcome) entryOutcome {
	var read cel.Bool
	passes := v.soft(true, cel.Value{}, func(x cel.Value) cel.Bool {
		var holds cel.Bool
		read, holds = l.elementParts(f, dynamicOf(x), 0)
		return cel.Or(isNull(x), cel.And(read, holds))
	})
	some := cel.And(v.found(), isList(v.expr))
	return entryOutcome{cel.CondBool(some, ofList.passes, passes), cel.CondBool(some, ofList.fails, read)}
}

// mayErr tells whether some element may be an error.
func (l *lowering) mayErr(f *policy.ForEach) bool {
	errs := false
	l.probed(func() {
		defer l.restore(l.environment)
		if l.prior {
			l.environment = l.ofNewObject()
		}
		errs = l.forEach(f, 0).Errs
	})
	return errs
}
