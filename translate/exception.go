package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// unlessExcepted is: no PolicyException is about this rule and this object. An
// exception's conditions that err do not apply, so they are asked for softly.
func (l *lowering) unlessExcepted() cel.Bool {
	out := cel.True()
	for _, e := range l.opts.Exceptions {
		if e.Invalid || !l.excepts(e) || len(e.PodSecurity) > 0 && l.rule.Validate.PodSecurity != nil {
			continue
		}
		out = cel.And(out, cel.Not(l.covered(e)))
	}
	return out
}

// covered is: the exception is about this object.
func (l *lowering) covered(e *policy.Exception) cel.Bool {
	defer l.restore(l.environment)
	defer l.setPos(l.pos)
	l.exception = true
	hit := l.block(e.Match, l.filter)
	if e.Conditions != nil {
		hit = cel.And(hit, l.preOfElement(e.Conditions).Expr)
	}
	return hit
}

// excepts tells whether an exception names the rule.
func (l *lowering) excepts(e *policy.Exception) bool {
	name := l.policy.Name
	if l.policy.Namespaced() {
		name = l.policy.Namespace + "/" + name
	}
	for _, ref := range e.Exceptions {
		if ref.PolicyName == name && scalar.AnyWild(ref.RuleNames, l.rule.Name) {
			return true
		}
	}
	return false
}
