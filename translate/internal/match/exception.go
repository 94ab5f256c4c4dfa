package match

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// UnlessExcepted is: no PolicyException is about this rule and this object. An
// exception's conditions that err do not apply, so they are asked for softly.
func UnlessExcepted(l *read.Lowering) cel.Bool {
	out := cel.True()
	for _, e := range l.Opts.Exceptions {
		if e.Invalid || !Excepts(l, e) || len(e.PodSecurity) > 0 && l.Rule.Validate.PodSecurity != nil {
			continue
		}
		out = cel.And(out, cel.Not(Covered(l, e)))
	}
	return out
}

// Covered is: the exception is about this object.
func Covered(l *read.Lowering, e *policy.Exception) cel.Bool {
	l = l.Inside()
	l.Exception = true
	hit := block(e.Match, func(f *policy.Filter) cel.Bool { return filter(l, f) })
	if e.Conditions != nil {
		hit = cel.And(hit, condition.OrFalse(l, e.Conditions))
	}
	return hit
}

// Excepts tells whether an exception names the rule.
func Excepts(l *read.Lowering, e *policy.Exception) bool {
	name := l.Policy.Name
	if l.Policy.Namespaced() {
		name = l.Policy.Namespace + "/" + name
	}
	for _, ref := range e.Exceptions {
		if ref.PolicyName == name && scalar.AnyWild(ref.RuleNames, l.Rule.Name) {
			return true
		}
	}
	return false
}
