package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// An operator is that of a condition.
type operator struct {
	kind   operatorKind
	not    bool            // NotEquals and NotIn
	member memberOperator  // where it is a membership
	order  scalar.Relation // where it is an ordering
}

type operatorKind int

const (
	unknownKind operatorKind = iota
	neverKind                // an ordering that is not spelled exactly
	equalityKind
	membershipKind
	oldMembershipKind // In and NotIn, which are deprecated
	orderingKind
	durationKind // of durations only, which is deprecated
)

// A memberOperator is AnyIn, AllIn, AnyNotIn or AllNotIn: some or all elements of
// a list key are, or are not, in the value.
type memberOperator struct {
	over cel.Quantifier
	not  bool
}

// verdict is the operator's on an element or a scalar key that is, or is not, in
// the value.
func (op memberOperator) verdict(in cel.Bool) cel.Bool {
	if op.not {
		return cel.Not(in)
	}
	return in
}

// ofList is the operator of a list key, where in tells what is in the value.
func (op memberOperator) ofList(l *lowering, s sequence, in func(operand) cel.Bool) cel.Bool {
	return s.quantify(l, op.over, false, func(x operand) cel.Bool { return op.verdict(in(x)) })
}

// operatorOf reads an operator. Case matters to orderings only, which are never
// true where it is wrong.
func operatorOf(written string) operator {
	member := func(over cel.Quantifier, not bool) operator {
		return operator{kind: membershipKind, member: memberOperator{over, not}}
	}
	switch strings.ToLower(written) {
	case "equal", "equals":
		return operator{kind: equalityKind}
	case "notequal", "notequals":
		return operator{kind: equalityKind, not: true}
	case "anyin":
		return member(cel.ForSome, false)
	case "allin":
		return member(cel.ForAll, false)
	case "anynotin":
		return member(cel.ForSome, true)
	case "allnotin":
		return member(cel.ForAll, true)
	case "in":
		return operator{kind: oldMembershipKind}
	case "notin":
		return operator{kind: oldMembershipKind, not: true}
	}
	return orderingOf(written)
}

// orderingOf reads GreaterThan and its kin, of durations too.
func orderingOf(written string) operator {
	orders := []struct {
		name  string
		order scalar.Relation
	}{
		{"GreaterThan", scalar.Greater}, {"GreaterThanOrEquals", scalar.GreaterEqual},
		{"LessThan", scalar.Less}, {"LessThanOrEquals", scalar.LessEqual},
	}
	for _, o := range orders {
		switch {
		case written == o.name:
			return operator{kind: orderingKind, order: o.order}
		case written == "Duration"+o.name:
			return operator{kind: durationKind, order: o.order}
		case strings.EqualFold(written, o.name), strings.EqualFold(written, "Duration"+o.name):
			return operator{kind: neverKind}
		}
	}
	return operator{}
}
