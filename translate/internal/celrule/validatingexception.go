package celrule

import (
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// validatingExceptions are the exceptions of policies.kyverno.io from a policy: those
// from all of it, and what the others allow.
type validatingExceptions struct {
	whole          []vap.Condition // each with what it holds of
	images, values []cel.Value
}

// Exceptions reads the exceptions from the policy. One that allows images or values and
// has conditions, or that ends, has no native form.
func (w *ValidatingWalk) Exceptions(p *policy.Policy) {
	for _, e := range w.Opts.Exceptions {
		if e.Invalid || e.CEL == nil || !e.CEL.IsFrom(p) {
			continue
		}
		refuse := func(what string) {
			d := diag.Warnf(p.Pos, diag.NoExpression, "the exception %s/%s %s; the webhook will judge this rule", e.Namespace, e.Name, what)
			w.Refuse(&d)
		}
		conditional := len(e.CEL.MatchConditions) > 0
		switch {
		case !e.CEL.ExpiresAt.IsZero():
			refuse("ends at a time (expiresAt), and the API server's CEL has no clock")
		case conditional && !e.CEL.Whole():
			refuse("allows images or values on conditions, whose errors the API server would not see")
		case conditional && p.FailurePolicy == policy.Ignore:
			refuse("has conditions, whose errors the policy ignores (failurePolicy: Ignore)")
		case !e.CEL.Whole():
			for _, s := range e.CEL.Images {
				w.excepted.images = append(w.excepted.images, cel.String(s))
			}
			for _, s := range e.CEL.AllowedValues {
				w.excepted.values = append(w.excepted.values, cel.String(s))
			}
		default:
			w.whole(e, refuse)
		}
	}
}

// whole is an exception from all that the policy says. Its conditions are read as they
// are written, also for the controllers of pods.
func (w *ValidatingWalk) whole(e *policy.Exception, refuse func(string)) {
	holds := cel.True()
	for _, c := range e.CEL.MatchConditions {
		v, why := ReadCEL(c.Expression, c.Pos, w.Opts.Release)
		if why != nil {
			w.Refuse(why)
			continue
		}
		if native.Mentions(v, "namespaceObject") || native.Mentions(v, "variables") {
			refuse("has a condition on namespaceObject or variables, which match conditions do not see")
			continue
		}
		v = w.withEmpty(v, c.Pos)
		w.Written.Conditions = append(w.Written.Conditions, vap.Condition{Pos: c.Pos, Name: "exception-" + strconv.Itoa(len(w.Written.Conditions)), Expr: v.AsBool()})
		holds = cel.And(holds, w.condition(v, c.Pos))
	}
	w.excepted.whole = append(w.excepted.whole, vap.Condition{Pos: e.Pos, Name: "not-excepted", Expr: holds})
}

// in is an expression with what the exceptions allow written out.
func (x validatingExceptions) in(v cel.Value) cel.Value {
	v = v.SubstituteField("exceptions", "allowedImages", cel.List(x.images...))
	return v.SubstituteField("exceptions", "allowedValues", cel.List(x.values...))
}

// before are match conditions behind the exceptions, which Kyverno asks first: where one
// errs and no other one applies, no condition that is false makes up for it.
func (x validatingExceptions) before(conditions []vap.Condition) []vap.Condition {
	if len(x.whole) == 0 {
		return conditions
	}
	out := cel.True()
	for _, c := range conditions {
		out = cel.And(out, c.Expr)
	}
	some := make([]cel.Bool, len(x.whole))
	for i, e := range x.whole {
		some[i] = e.Expr
	}
	return []vap.Condition{{Pos: x.whole[0].Pos, Name: x.whole[0].Name, Expr: cel.CondBool(cel.Or(some...), cel.False(), out)}}
}
