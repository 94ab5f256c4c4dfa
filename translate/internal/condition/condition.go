package condition

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Conditions are preconditions or those of a deny: all of All and, where there is an Any,
// some of Any. Kyverno takes them in order and stops where one decides; an error before that
// is an error of the rule.
func Conditions(l *read.Lowering, c *policy.Conditions) partial.Bool {
	if c == nil {
		return partial.Sure(cel.True())
	}
	some := partial.Sure(cel.True())
	if c.Any != nil {
		some = partial.Any(each(l, c.Any)...)
	}
	return some.Both(partial.All(each(l, c.All)...))
}

// OrFalse are conditions that do not hold where they are an error.
func OrFalse(l *read.Lowering, c *policy.Conditions) cel.Bool {
	return l.Apart(Conditions(l, c)).Holds
}

// each is what conditions come to.
func each(l *read.Lowering, cs []*policy.Condition) []partial.Bool {
	out := make([]partial.Bool, len(cs))
	for i := len(cs) - 1; i >= 0; i-- {
		out[i] = compared(l, cs[i])
		l.TraceBool("key "+cs[i].Operator+" value", out[i])
		l.Decide(cs[i], out[i])
	}
	return out
}

// compared is one comparison. Both sides are read before they are compared.
func compared(l *read.Lowering, c *policy.Condition) partial.Bool {
	key, value := query.Node(l, c.Key), query.Node(l, c.Value)
	l.SetPos(c.Pos)
	op := operatorOf(c.Operator)
	isList := op.kind == membershipKind && value.Form == read.SequenceForm
	if l.Opts.Library && (isUnknownText(key) && !(op.kind == equalityKind && value.Form == read.LitForm) || isUnknownText(value) && !isList) {
		panic(l.Unsupported("an operator on a value of another object whose type is not known, which may be a pattern,"))
	}
	if op.kind == equalityKind && wildAroundVariable(c.Value) {
		panic(l.Unsupported("a wildcard beside a variable in a condition's value"))
	}
	l.Trace("key", key.Described)
	l.Trace("value", value.Described)
	ofKey, _ := read.DemandsOf(l, key)
	ofValue, _ := read.DemandsOf(l, value)
	d := ofKey.And(ofValue)
	switch op.kind {
	case membershipKind:
		d.Native = d.Native || compare.MayBeList(value)
	case oldMembershipKind:
		d = d.And(read.Demand("", compare.HasTexts(l, key)))
	}
	out := compareCondition(l, op, c.Operator, key, value)
	if op.kind == orderingKind && (isWorkedOut(c.Key, key) && isText(value) || isWorkedOut(c.Value, value) && isText(key)) {
		panic(l.Unsupported("the order of a text and of a number that is worked out of the request"))
	}
	return l.Told(d, out)
}

// isUnknownText reports whether a value of the cluster may be a text, which operators read as a pattern,
// or something else.
func isUnknownText(j read.Operand) bool {
	return j.Some(func(j read.Operand) bool {
		return j.Form != read.LitForm && j.Form != read.ErrorForm && j.Origin() == read.FromConfiguration && (j.Form == read.SequenceForm && read.KindOf(j.S.Elem()) == schema.Any || read.KindOf(j.Typ()) == schema.Any)
	})
}

// isWorkedOut tells of a variable of the request whose value is known when the rule is compiled,
// as the length of what no object has. It is no number of the policy.
func isWorkedOut(n *policy.Node, j read.Operand) bool {
	if j.Form != read.LitForm || n == nil || n.Kind != policy.String {
		return false
	}
	v := query.ParseTemplate(n.Str, n.Pos).Single()
	return v != nil && slices.ContainsFunc([]string{"request", "element", "images"}, func(name string) bool { return query.Mentions(n.Str, name) })
}

// isText tells of what is a text, or may be one.
func isText(j read.Operand) bool {
	kind := read.KindOf(j.Typ())
	return j.Form != read.LitForm && (kind == schema.String || kind == schema.Any)
}

// wildAroundVariable tells of a text in which the policy writes wildcards around variables,
// which count, while those that the variables give do not.
func wildAroundVariable(n *policy.Node) bool {
	if n == nil || n.Kind != policy.String {
		return false
	}
	t := query.ParseTemplate(n.Str, n.Pos)
	return t.Single() == nil && slices.ContainsFunc(t.Parts, func(p jmespath.Part) bool { return p.Var != nil }) &&
		slices.ContainsFunc(t.Parts, func(p jmespath.Part) bool { return scalar.IsWild(p.Text) })
}

func compareCondition(l *read.Lowering, op operator, written string, key, value read.Operand) cel.Bool {
	if value.Form == read.ErrorForm {
		return cel.False()
	}
	if value.Form == read.ChoiceForm {
		return cel.CondBool(value.C, compareCondition(l, op, written, key, *value.Then), compareCondition(l, op, written, key, *value.Els))
	}
	switch op.kind {
	case equalityKind:
		if op.not {
			return negated(l, key, func(l *read.Lowering, k read.Operand) cel.Bool { return compare.Equals(l, k, value) })
		}
		return compare.Equals(l, key, value)
	case membershipKind:
		return compare.Membership(l, op.member, key, value)
	case oldMembershipKind:
		return compare.OldMembership(l, op.not, key, value)
	case orderingKind:
		return compare.Order(l, op.order, key, value)
	case durationKind:
		return compare.DurationOrder(l, op.order, key, value)
	case neverKind:
		return cel.False()
	case unknownKind:
	}
	panic(l.Refuse(diag.NoOperator, "the operator %s is not known", written))
}

// negated is the negation of an operator, except that a null key is false too.
func negated(l *read.Lowering, key read.Operand, positive func(l *read.Lowering, key read.Operand) cel.Bool) cel.Bool {
	return read.Holds(l, key, true, read.Table{
		Lit: func(v any) cel.Bool {
			if v == nil {
				return cel.False()
			}
			return cel.Not(positive(l, read.LitOf(v)))
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			if read.KindOf(t) != schema.Any {
				return cel.Not(positive(l, read.ValueOf(x, t)))
			}
			there := cel.Not(read.IsNull(x))
			return cel.And(there, query.Knowing(l, there, func(l *read.Lowering) cel.Bool { return cel.Not(positive(l, read.ValueOf(x, t))) }))
		},
		Sequence: func(s read.Sequence) cel.Bool {
			return cel.Not(positive(l, read.SequenceOf(s).Settled()))
		},
	})
}

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
