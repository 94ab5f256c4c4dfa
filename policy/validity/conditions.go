package validity

import (
	"slices"
	"time"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// conditionsOf are all conditions of a rule.
func conditionsOf(rule *policy.Rule) []*policy.Condition {
	out := listOf(rule.Preconditions)
	if v := rule.Validate; v != nil {
		if v.Deny != nil {
			out = append(out, listOf(v.Deny.Conditions)...)
		}
		out = append(out, ofLoops(v.ForEach)...)
	}
	if m := rule.Mutate; m != nil {
		for _, t := range m.Targets {
			out = append(out, listOf(t.Preconditions)...)
		}
		out = append(out, ofMutations(m.ForEach)...)
	}
	return out
}

func listOf(c *policy.Conditions) []*policy.Condition {
	if c == nil {
		return nil
	}
	return slices.Concat(c.Any, c.All)
}

func ofLoops(loops []*policy.ForEach) (out []*policy.Condition) {
	for _, f := range loops {
		out = append(out, listOf(f.Preconditions)...)
		if f.Deny != nil {
			out = append(out, listOf(f.Deny.Conditions)...)
		}
		out = append(out, ofLoops(f.ForEach)...)
	}
	return out
}

func ofMutations(loops []*policy.MutateForEach) (out []*policy.Condition) {
	for _, f := range loops {
		out = append(out, listOf(f.Preconditions)...)
		out = append(out, ofMutations(f.ForEach)...)
	}
	return out
}

func (c *checker) operators(of *policy.Conditions) {
	for _, one := range listOf(of) {
		c.operator(one)
	}
}

// operator warns of operators that have others in their place.
func (c *checker) operator(one *policy.Condition) {
	switch one.Operator {
	case "In":
		c.warn(one.Pos, diag.Deprecated, "Operator In has been deprecated and will be removed soon. Use AnyIn or AllIn")
	case "NotIn":
		c.warn(one.Pos, diag.Deprecated, "Operator NotIn has been deprecated and will be removed soon. Use AnyNotIn or AllNotIn")
	}
}

// anyTime is a time behind which each schedule that can be read is due again.
func anyTime() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) }
