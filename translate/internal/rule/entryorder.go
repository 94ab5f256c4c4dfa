package rule

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// A failure of a foreach is excused where the old object fails as well; an error is
// not, and excuses nothing. So it counts what the first element that does not pass
// says, in the first entry that has one.

// An outcomeOfEntry is what an entry of a foreach says of an object, in two parts that
// are no errors: whether all elements pass, and whether the first that does not is a
// failure, which is asked where some does not.
type entryOutcome struct{ passes, fails cel.Bool }

// entriesBefore is: the first element of the old object that does not pass is no
// failure, or all pass.
func entriesBefore(l *read.Lowering, entries []*policy.ForEach) native.Truth {
	out := cel.True()
	for i := len(entries) - 1; i >= 0; i-- {
		e := outcomeOfEntry(l, entries[i], "Before")
		out = cel.CondBool(e.passes, out, cel.Not(e.fails))
	}
	return native.Sure(out)
}

// failsFirst is: the first element of the new object that does not pass is a failure.
// It is asked where the rule fails.
func failsFirst(l *read.Lowering, entries []*policy.ForEach) cel.Bool {
	last := len(entries) - 1
	out := outcomeOfEntry(l, entries[last], "").fails
	for i := last - 1; i >= 0; i-- {
		e := outcomeOfEntry(l, entries[i], "")
		out = cel.CondBool(e.passes, out, e.fails)
	}
	return out
}

// outcomeOfEntry is what an entry says. A refusal where that cannot be told.
func outcomeOfEntry(l *read.Lowering, f *policy.ForEach, suffix string) entryOutcome {
	if !mayErr(l, f) {
		return entryOutcome{forEach(l, f, 0).Expr, cel.True()}
	}
	list := entryList(l, f)
	s := wholeList(l, list)
	if s == nil || !knownParts(l, f) {
		panic(elementErrors(l))
	}
	if neverErrs(l, f, s, 0) { // its preconditions ask for what it reads
		return entryOutcome{forEachOf(l, f, list, 0).Expr, cel.True()}
	}
	return outcomeOver(l, f, s, suffix)
}

// outcomeOver is what an entry says of the elements of a list, which are gone through
// part by part where they are no one list to CEL.
func outcomeOver(l *read.Lowering, f *policy.ForEach, s read.Sequence, suffix string) entryOutcome {
	if bad, read, ok := firstBad(l, f, s, suffix, 0); ok {
		return entryOutcome{bad.Size().Eq(cel.Int(0)), read}
	}
	parts, ok := s.(read.Concat)
	if !ok {
		panic(elementErrors(l))
	}
	out := outcomeOver(l, f, parts[len(parts)-1], suffix)
	for i := len(parts) - 2; i >= 0; i-- {
		e := outcomeOver(l, f, parts[i], suffix)
		out = entryOutcome{cel.And(e.passes, out.passes), cel.CondBool(e.passes, out.fails, e.fails)}
	}
	return out
}

// mayErr tells whether some element may be an error.
func mayErr(l *read.Lowering, f *policy.ForEach) bool {
	errs := false
	l.Probed(func(l *read.Lowering) {
		if l.Prior {
			l.Environment = l.OfNewObject()
		}
		errs = forEach(l, f, 0).Errs
	})
	return errs
}
