package pattern

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/read"
)

// An outcome is what a pattern says of a value, as steps in Kyverno's order of
// evaluation. The first step whose condition is false decides: a check fails,
// a filter skips. When all hold, the pattern is satisfied.
type outcome []step

type step struct {
	cond   cel.Bool
	filter bool
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

func filter(c cel.Bool, direct bool) outcome {
	if c.IsTrue() {
		return nil
	}
	return outcome{{cond: c, filter: true, direct: direct}}
}

// String tells the steps.
func (o outcome) String() string {
	if len(o) == 0 {
		return "always satisfied"
	}
	lines := make([]string, len(o))
	for i, s := range o {
		if lines[i] = "holds where " + s.cond.String(); s.filter {
			lines[i] = "applies where " + s.cond.String()
		}
	}
	return strings.Join(lines, "\n")
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

// skips tells whether any step can skip.
func (o outcome) skips() bool {
	return slices.ContainsFunc(o, func(s step) bool { return s.filter })
}

// when makes each step count only where c holds.
func (o outcome) when(c cel.Bool) outcome {
	if c.IsTrue() || len(o) == 0 {
		return o
	}
	if !o.skips() {
		return check(cel.Implies(c, o.ok()))
	}
	out := make(outcome, len(o))
	for i, s := range o {
		s.cond = cel.Implies(c, s.cond)
		out[i] = s
	}
	return out
}

// boundedOutcome is o, unless its expressions are larger than an expression may be.
func boundedOutcome(l *read.Lowering, o outcome) outcome {
	nodes := 0
	for _, s := range o {
		nodes += s.cond.Nodes()
	}
	l.Opts.Budget.Spend(nodes)
	if nodes > read.ManyNodes {
		panic(read.TooLarge(l.Pos))
	}
	return o
}
