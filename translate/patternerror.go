package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/partial"
)

// An errorFate says what becomes of an error inside a pattern.
type errorFate int

const (
	_ errorFate = iota // it is one of the rule
	// errorInElement: so it is, unless another element fails first. CEL's macros look
	// at all elements and let a failure count.
	errorInElement
	// errorFails: anchors that ask whether something matches, and anyPattern, take it
	// for a failure.
	errorFails
)

func (f errorFate) inElement() errorFate { return max(f, errorInElement) }

// longEnough is that a list is as long as the pattern that it is held against, which
// is not a failure where it is not, but an error.
func (l *lowering) longEnough(c cel.Bool) outcome {
	switch {
	case l.matching == errorFails || l.matching == errorInElement && !l.tellsErrors():
		return check(c)
	case l.matching == errorInElement:
		panic(l.unsupported("a list of lists of lists, or below a list of maps,"))
	case l.prior: // an error is no violation
		return filter(c, true)
	}
	return outcome{{cond: c, otherwise: partial.Failing("element")}}
}

// tellsErrors tells that it makes a difference whether the rule fails or errs.
func (l *lowering) tellsErrors() bool {
	return l.policy.FailurePolicy == policy.Ignore || l.excusable()
}
