package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// A unit is a rule lowered for one target and some operations.
type unit struct {
	policy *policy.Policy
	rule   *policy.Rule
	target target
	ops    []operation

	match     cel.Bool   // what the resource rules do not say
	pre       truthValue // preconditions
	holds     truthValue // the rule does not fail
	exempt    cel.Bool   // an old violation excuses this one; false where there is no such excuse
	excused   bool       // exempt excuses every update that violates the rule
	namespace bool       // match reads namespaceObject, so it cannot be a match condition
	message   message
	variables []variable
	params    *paramUse
	native    *nativeParts // what a CEL rule brings along
}

// same tells whether two units of a rule differ in their operations only.
func (u unit) same(v unit) bool { return u.text() == v.text() }

// text is everything that the unit's expressions say.
func (u unit) text() string {
	parts := []string{u.match.String(), u.pre.b.String(), u.holds.b.String(), u.exempt.String(), u.message.key(), u.params.key(), u.native.key()}
	for _, v := range u.variables {
		parts = append(parts, v.name, v.expr.String())
	}
	return strings.Join(parts, "\x00")
}

func (u unit) names() []string {
	out := make([]string, len(u.variables))
	for i, v := range u.variables {
		out[i] = v.name
	}
	return out
}

// renamed is the unit with one of its variables under another name.
func (u unit) renamed(from, to string) unit {
	value := func(v cel.Value) cel.Value { return v.RenameField("variables", from, to) }
	condition := func(b cel.Bool) cel.Bool {
		if b.IsZero() {
			return b
		}
		return value(b.Value).AsBool()
	}
	u.match, u.exempt = condition(u.match), condition(u.exempt)
	u.pre.b, u.holds.b = condition(u.pre.b), condition(u.holds.b)
	if u.message.expr != nil {
		m := value(*u.message.expr)
		u.message.expr = &m
	}
	u.variables = slices.Clone(u.variables)
	for i, v := range u.variables {
		u.variables[i].expr = value(v.expr)
		if v.name == from {
			u.variables[i].name = to
		}
	}
	return u
}

// cost is about the most that one evaluation of the unit costs. What a message
// expression costs is counted too: it is always evaluated.
func (u unit) cost() int64 {
	total := cel.Cost(u.match.Value, nil) + cel.Cost(u.pre.b.Value, nil) + cel.Cost(u.holds.b.Value, nil) + cel.Cost(u.exempt.Value, nil)
	for _, v := range u.variables {
		total += cel.Cost(v.expr, nil)
	}
	if u.message.expr != nil {
		total += cel.Cost(*u.message.expr, nil)
	}
	return total
}
