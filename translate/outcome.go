package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// An outcome is what a pattern says of a value, as steps in Kyverno's order of
// evaluation. The first step whose condition is false decides: a check fails,
// a filter skips. When all hold, the pattern is satisfied.
type outcome []step

type step struct {
	cond   cel.Bool
	filter bool
	// otherwise is what counts where cond is false, if that is no failure but an error.
	otherwise cel.Bool
	// negated is: cond is false, and the failure is that of a negation; zero where it
	// never is or nobody asks.
	negated cel.Bool
	// direct tells that a skip here is an anchor's own, not passed on by a nested
	// map or list: it hides failures of anchors beside it.
	direct bool
}

func check(c cel.Bool) outcome {
	if c.IsTrue() {
		return nil
	}
	return outcome{{cond: c}}
}

// checkOf is check of a condition with what it says of negations where it fails.
func checkOf(c, negated cel.Bool) outcome {
	out := check(c)
	if len(out) > 0 && !negated.IsFalse() { // the one check that it is
		out[0].negated = negated
	}
	return out
}

func filter(c cel.Bool, direct bool) outcome {
	if c.IsTrue() {
		return nil
	}
	return outcome{{cond: c, filter: true, direct: direct}}
}

// ok is: satisfied.
func (o outcome) ok() cel.Bool {
	conds := make([]cel.Bool, len(o))
	for i, s := range o {
		conds[i] = s.cond
	}
	return cel.And(conds...)
}

// admitted is: satisfied or skipped. Checks that follow one another are put together at
// once: one by one, a long conjunction would be made anew for each of its terms.
func (o outcome) admitted() cel.Bool {
	rest := cel.True()
	for i := len(o) - 1; i >= 0; i-- {
		switch s := o[i]; {
		case s.filter:
			rest = cel.Implies(s.cond, rest)
		case !s.otherwise.IsZero():
			rest = cel.CondBool(s.cond, rest, s.otherwise)
		default:
			first := i
			for first > 0 && o[first-1].plain() {
				first--
			}
			rest = cel.And(o[first:i+1].ok(), rest)
			i = first
		}
	}
	return rest
}

// negated is: what fails first is a negation.
func (o outcome) negated() cel.Bool {
	rest := cel.False()
	for i := len(o) - 1; i >= 0; i-- {
		switch s := o[i]; {
		case !s.filter && !s.negated.IsZero():
			rest = cel.Or(cel.And(s.cond, rest), s.negated)
		case !rest.IsFalse():
			rest = cel.And(s.cond, rest)
		}
	}
	return rest
}

// negates tells whether any step may fail as a negation.
func (o outcome) negates() bool {
	return slices.ContainsFunc(o, func(s step) bool { return !s.negated.IsZero() })
}

// plain tells of a step that is nothing but a check.
func (s step) plain() bool { return !s.filter && s.otherwise.IsZero() }

// notDirect is: no direct skip.
func (o outcome) notDirect() cel.Bool {
	return o.fold(func(s step, rest cel.Bool) cel.Bool {
		if s.filter && s.direct {
			return cel.And(s.cond, rest)
		}
		return cel.Implies(s.cond, rest)
	})
}

func (o outcome) fold(f func(step, cel.Bool) cel.Bool) cel.Bool {
	rest := cel.True()
	for i := len(o) - 1; i >= 0; i-- {
		rest = f(o[i], rest)
	}
	return rest
}

// skips tells whether any step can skip.
func (o outcome) skips() bool {
	for _, s := range o {
		if s.filter {
			return true
		}
	}
	return false
}

// errs tells whether any step may be an error.
func (o outcome) errs() bool {
	return slices.ContainsFunc(o, func(s step) bool { return !s.otherwise.IsZero() })
}

func (o outcome) skipsDirectly() bool {
	for _, s := range o {
		if s.filter && s.direct {
			return true
		}
	}
	return false
}

// when makes each step count only where c holds.
func (o outcome) when(c cel.Bool) outcome {
	if c.IsTrue() || len(o) == 0 {
		return o
	}
	if !o.skips() && !o.errs() && !o.negates() {
		return check(cel.Implies(c, o.ok()))
	}
	out := make(outcome, len(o))
	for i, s := range o {
		s.cond = cel.Implies(c, s.cond)
		if !s.negated.IsZero() {
			s.negated = cel.And(c, s.negated)
		}
		out[i] = s
	}
	return out
}
