package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// conditions is the truth of preconditions or of a deny: all of All and, where
// there is an Any, some of Any. Kyverno takes them in order and stops where one
// decides; an error before that is an error of the rule. && and || would let a
// later condition hide it, so a condition that may err becomes a ternary.
func (l *lowering) conditions(c *policy.Conditions) native.Truth {
	if c == nil {
		return native.Sure(cel.True())
	}
	some := native.Sure(cel.True())
	if c.Any != nil {
		some = native.SomeInOrder(l.eachCondition(c.Any))
	}
	return some.Both(native.AllInOrder(l.eachCondition(c.All)))
}

func (l *lowering) eachCondition(cs []*policy.Condition) []native.Truth {
	out := make([]native.Truth, len(cs))
	for i := len(cs) - 1; i >= 0; i-- {
		out[i] = l.condition(cs[i])
	}
	return out
}

// condition is one comparison. Both sides are read before they are compared.
func (l *lowering) condition(c *policy.Condition) native.Truth {
	return l.effect(func() cel.Bool { return l.compared(c) })
}

func (l *lowering) compared(c *policy.Condition) cel.Bool {
	key, value := l.node(c.Key), l.node(c.Value)
	l.setPos(c.Pos)
	op := operatorOf(c.Operator)
	if op.kind == equalityKind && l.wildAroundVariable(c.Value) {
		panic(l.unsupported("a wildcard beside a variable in a condition's value"))
	}
	l.ask(key)
	l.ask(value)
	return l.compareCondition(op, c.Operator, key, value)
}

// wildAroundVariable tells of a text in which the policy writes wildcards around variables,
// which count, while those that the variables give do not.
func (l *lowering) wildAroundVariable(n *policy.Node) bool {
	if n == nil || n.Kind != policy.String {
		return false
	}
	t := l.parseTemplate(n.Str, n.Pos)
	return t.Single() == nil && slices.ContainsFunc(t.Parts, func(p jmespath.Part) bool { return p.Var != nil }) &&
		slices.ContainsFunc(t.Parts, func(p jmespath.Part) bool { return scalar.IsWild(p.Text) })
}

func (l *lowering) compareCondition(op operator, written string, key, value operand) cel.Bool {
	if value.form == errorForm {
		return l.failing(value)
	}
	if value.form == choiceForm {
		then, els := l.eitherWay(value.c,
			func() cel.Bool { return l.compareCondition(op, written, key, *value.then) },
			func() cel.Bool { return l.compareCondition(op, written, key, *value.els) })
		return cel.CondBool(value.c, then, els)
	}
	switch op.kind {
	case equalityKind:
		if op.not {
			return l.negated(key, func(k operand) cel.Bool { return l.conditionEquals(k, value) }, value)
		}
		return l.conditionEquals(key, value)
	case membershipKind:
		return l.membership(op.member, key, value)
	case oldMembershipKind:
		return l.oldMembership(op.not, key, value)
	case orderingKind:
		return l.conditionOrder(op.order, key, value)
	case durationKind:
		return l.durationOrder(op.order, key, value)
	case neverKind:
		return cel.False()
	case unknownKind:
	}
	panic(l.refuse(diag.NoOperator, "the operator %s is not known", written))
}

// negated is the negation of an operator, except that a null key is false too.
func (l *lowering) negated(key operand, positive func(operand) cel.Bool, value operand) cel.Bool {
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			if v == nil {
				return cel.False()
			}
			return cel.Not(positive(litOf(v)))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			if kindOf(t) != schema.Any {
				return cel.Not(positive(valueOf(x, t)))
			}
			there := cel.Not(isNull(x))
			return cel.And(there, l.knowing(there, func() cel.Bool { return cel.Not(positive(valueOf(x, t))) }))
		},
		sequence: func(s sequence) cel.Bool { return cel.Not(positive(sequenceOf(presentSequence{s}))) },
		neutral:  neutralsOf(value),
	})
}

// neutralsOf are literals near a value, candidates to stand in for a missing key.
func neutralsOf(value operand) func(*schema.Type) []any {
	if value.form != litForm {
		return nil
	}
	return func(t *schema.Type) []any {
		var out []any
		add := func(v any) {
			switch v := v.(type) {
			case string:
				if kindOf(t) == schema.String && !scalar.IsWild(v) {
					out = append(out, v)
				}
			case float64:
				if kindOf(t) == schema.Int && v == float64(int64(v)) {
					out = append(out, int64(v), int64(v)+1)
				}
			}
		}
		add(value.lit)
		if list, ok := value.lit.([]any); ok {
			for _, v := range list {
				add(v)
			}
		}
		return out
	}
}
