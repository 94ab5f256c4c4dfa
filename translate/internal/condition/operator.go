package condition

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// An operator is that of a condition.
type operator struct {
	kind   operatorKind
	not    bool                   // NotEquals and NotIn
	member compare.MemberOperator // where it is a membership
	order  scalar.Relation        // where it is an ordering
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

// operatorOf reads an operator. Case matters to orderings only, which are never
// true where it is wrong.
func operatorOf(written string) operator {
	member := func(over cel.Quantifier, not bool) operator {
		return operator{kind: membershipKind, member: compare.MemberOperator{Over: over, Not: not}}
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
