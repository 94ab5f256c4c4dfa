package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// conditions reads preconditions or the conditions of a deny: any and all, or the
// legacy list, which is an all. It is nil when absent.
func (r *reader) conditions(n *Node) *Conditions {
	if n == nil {
		return nil
	}
	c := &Conditions{Pos: n.Pos}
	if n.Kind == List && !r.beta {
		c.All = each(r.list(n), r.condition)
		return c
	}
	o := r.object(n, "a block of conditions")
	// An any that is present and empty is false, so each keeps it apart from nil.
	c.Any = each(o.list("any"), r.condition)
	c.All = each(o.list("all"), r.condition)
	o.end()
	return c
}

func (r *reader) condition(n *Node) *Condition {
	o := r.object(n, "a condition")
	c := &Condition{Pos: n.Pos, Key: o.take("key"), Value: o.take("value"), Message: o.str("message")}
	if op := o.require("operator"); op != nil {
		c.Operator = r.operator(op)
	}
	o.end()
	return c
}

// operator knows that upstream looks operators up in any case, but that the
// handlers of the ordered ones then compare the exact text.
func (r *reader) operator(n *Node) string {
	s := r.str(n)
	if n.Kind != String {
		return ""
	}
	for _, known := range operators() {
		if !strings.EqualFold(s, known) {
			continue
		}
		if s != known && ordered(known) {
			r.warn(n.Pos, diag.OutOfRange, "the operator %q is never true in this spelling; write %s", s, known)
			return s
		}
		return known
	}
	switch strings.ToLower(s) {
	case "equal":
		return "Equals"
	case "notequal":
		return "NotEquals"
	}
	return r.choice(n, operators()...)
}

func ordered(operator string) bool {
	return strings.Contains(operator, "Than")
}

func operators() []string {
	return []string{
		"Equals", "NotEquals", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "In", "NotIn",
		"GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals",
		"DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals",
	}
}
