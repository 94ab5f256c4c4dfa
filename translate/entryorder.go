package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
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
	list := l.entryList(f)
	s := l.wholeList(list)
	if s == nil || !l.knownParts(f) {
		panic(l.elementErrors())
	}
	if l.neverErrs(f, s, 0) { // its preconditions ask for what it reads
		return entryOutcome{l.forEachOf(f, list, 0).Expr, cel.True()}
	}
	return l.outcomeOver(f, s, suffix)
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
