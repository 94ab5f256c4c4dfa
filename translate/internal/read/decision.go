package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
)

// Findings are what the walks over a rule have decided, for who says what the rule does.
type Findings struct {
	Wholes    []Whole
	Decisions []Decision
}

// A Whole is what a rule comes to for a target and some operations. Where no request meets what
// it asks before its body, Holds is zero.
type Whole struct {
	Target     native.Target
	Operations []native.Operation
	Match      cel.Bool
	Pre, Holds partial.Bool
	// Unread tells that the rule is an error on each of these requests.
	Unread bool
	// Needed are fields of the object without which the preconditions are an error.
	Needed [][]string
}

// A Decision is what a condition, or a part of a pattern, comes to in a walk.
type Decision struct {
	Condition *policy.Condition
	Is        partial.Bool // what the condition comes to
	Pattern   *policy.Node
	Of        Place // what stands where the part of the pattern does
	Never     bool  // nothing of it satisfies the part
}

// Decide notes what a condition comes to.
func (l *Lowering) Decide(c *policy.Condition, is partial.Bool) {
	l.decide(Decision{Condition: c, Is: is, Never: !is.Errs && is.Expr.IsFalse()})
}

// DecidePattern notes whether nothing satisfies a part of a pattern.
func (l *Lowering) DecidePattern(v Place, p *policy.Node, never bool) {
	l.decide(Decision{Pattern: p, Of: v, Never: never})
}

// decide notes a decision, where somebody asks and this is no walk of which nothing is kept.
func (l *Lowering) decide(d Decision) {
	if l.Findings != nil && l.Notes != nil {
		l.Findings.Decisions = append(l.Findings.Decisions, d)
	}
}

// WhereRead is where a condition is no error; false where no condition tells that beforehand.
// Nothing that this needs is kept.
func (l *Lowering) WhereRead(b partial.Bool) (where cel.Bool, ok bool) {
	l.Attempt(func() {
		l.Probed(func(*Lowering) {
			apart, told := b.Apart()
			where, ok = apart.Readable, told
		})
	})
	return where, ok
}
