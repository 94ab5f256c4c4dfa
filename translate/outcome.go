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
	// negated is: cond is false, and the failure is that of a negation; nil where it
	// never is.
	negated func() cel.Bool
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
func checkOf(c cel.Bool, negated func() cel.Bool) outcome {
	out := check(c)
	if len(out) > 0 { // the one check that it is
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
		default:
			first := i
			for first > 0 && !o[first-1].filter {
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
		case !s.filter && s.negated != nil:
			rest = cel.Or(cel.And(s.cond, rest), s.negated())
		case !rest.IsFalse():
			rest = cel.And(s.cond, rest)
		}
	}
	return rest
}

// asNegation is negated of a check of all of o; nil where no step may fail so.
func (o outcome) asNegation() func() cel.Bool {
	if !slices.ContainsFunc(o, func(s step) bool { return s.negated != nil }) {
		return nil
	}
	return o.negated
}

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
	given := func(negated func() cel.Bool) func() cel.Bool {
		if negated == nil {
			return nil
		}
		return func() cel.Bool { return cel.And(c, negated()) }
	}
	if !o.skips() {
		return checkOf(cel.Implies(c, o.ok()), given(o.asNegation()))
	}
	out := make(outcome, len(o))
	for i, s := range o {
		s.cond, s.negated = cel.Implies(c, s.cond), given(s.negated)
		out[i] = s
	}
	return out
}
