package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// A validatingWalk fills the draft of a form, and beside it written, which is what
// the author says; why is set by the first part that has no native form.
type validatingWalk struct {
	form     validatingForm
	policy   *policy.Validating
	opts     *Options
	draft    *vap.Draft
	written  vap.Draft  // for the API server's compiler, as in nativeParts
	guard    []cel.Bool // conditions that only a validation can ask
	excepted validatingExceptions
	notes    *diag.List
	why      *diag.Diagnostic
}

// read is an expression of the source in the form at hand.
func (w *validatingWalk) read(text string, at diag.Pos) cel.Value {
	v, why := readCELWith(text, at, w.opts.Release, func(v cel.Value) cel.Value {
		in := w.excepted.in(v)
		out := w.known(in)
		if !cel.Equal(in, out) {
			noteRewritten(w.rewrites(), at, "what a function of Kyverno's asks, the API server knows under another name")
		}
		return out
	})
	if why != nil {
		w.refuse(why)
		return cel.Null()
	}
	return w.withEmpty(inTemplate(v, w.form.template), at)
}

// withEmpty is an expression that takes an object which a request does not have for an
// empty one, as Kyverno does; natively it is null.
func (w *validatingWalk) withEmpty(v cel.Value, at diag.Pos) cel.Value {
	on := func(operations ...string) bool {
		return slices.ContainsFunc(w.form.constraints.Rules, func(r vap.ResourceRule) bool {
			return slices.ContainsFunc(r.Operations, func(o string) bool { return o == "*" || slices.Contains(operations, o) })
		})
	}
	out := v
	if on("CREATE", "CONNECT") {
		out = out.OrEmpty("oldObject")
	}
	if on("DELETE") {
		out = out.OrEmpty("object")
	}
	if !cel.Equal(v, out) {
		noteRewritten(w.rewrites(), at, "an object that the request does not have is empty in Kyverno, and null natively")
	}
	return out
}

func (w *validatingWalk) refuse(why *diag.Diagnostic) {
	if w.why == nil {
		w.why = why
	}
}

// condition is an expression that must be a boolean, as it is to be evaluated.
func (w *validatingWalk) condition(v cel.Value, at diag.Pos) cel.Bool {
	out, why := portableCondition(v.AsBool(), at, w.draft.Variables, w.opts, w.rewrites())
	w.refuse(why)
	return out
}

// rewrites is where it is told what comes out changed: once, for the policy as written.
func (w *validatingWalk) rewrites() *diag.List {
	if w.form.expansion != "" {
		return nil
	}
	return w.notes
}

func (w *validatingWalk) note(at diag.Pos, code diag.Code, format string, args ...any) {
	*w.notes = append(*w.notes, diag.Warnf(at, code, format, args...))
}

func (w *validatingWalk) variables() {
	for _, v := range w.policy.Variables {
		expr := w.read(v.Expression, v.Pos)
		if why := undeclared(expr, w.written.Variables, v.Pos); why != nil {
			w.refuse(why)
			continue
		}
		w.written.Variables = append(w.written.Variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: expr})
		native, why := portable(expr, v.Pos, w.draft.Variables, w.opts, w.rewrites())
		w.refuse(why)
		w.draft.Variables = append(w.draft.Variables, vap.Variable{Pos: v.Pos, Name: v.Name, Expr: native})
	}
}

// conditions are match conditions, but for those that read the namespace, which
// match conditions never see: these become a guard of the validations.
func (w *validatingWalk) conditions() {
	for _, c := range w.policy.MatchConditions {
		written := w.read(c.Expression, c.Pos)
		w.written.Conditions = append(w.written.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: inlined(written, w.written.Variables).AsBool()})
		holds := w.condition(written, c.Pos)
		whole := inlined(holds.Value, w.draft.Variables).Picked()
		if native.Mentions(whole, "namespaceObject") {
			w.guard = append(w.guard, holds)
			noteRewritten(w.rewrites(), c.Pos, "match conditions do not see the namespace, so this one guards each validation")
			continue
		}
		if !cel.Equal(whole, holds.Value) {
			noteRewritten(w.rewrites(), c.Pos, "match conditions have no variables")
		}
		w.draft.Conditions = append(w.draft.Conditions, vap.Condition{Pos: c.Pos, Name: c.Name, Expr: whole.AsBool()})
	}
	w.draft.Conditions = w.excepted.before(w.draft.Conditions)
}

func (w *validatingWalk) validations() {
	for _, e := range w.policy.Validations {
		written := w.read(e.Expression, e.Pos)
		holds := native.MayErr(w.condition(written, e.Pos))
		v := vap.Validation{Pos: e.Pos, Expr: written.AsBool(), Message: e.Message, Reason: e.Reason}
		if !takesReason(e.Reason) {
			w.note(e.Pos, diag.LeftOut, "the API server does not take the reason %s; the reason of the denial is Invalid", e.Reason)
			v.Reason = ""
		}
		if v.Message == "" {
			v.Message = failedExpression(e.Expression)
		}
		if e.MessageExpression != "" {
			v.MessageExpression = w.message(e)
		}
		w.written.Validations = append(w.written.Validations, v)
		v.Expr = holds.Expr
		if len(w.guard) > 0 {
			v.Expr = native.MayErr(cel.And(w.guard...)).Implies(holds).Expr
		}
		w.draft.Validations = append(w.draft.Validations, v)
	}
}

// message is a message expression, or nil where it has no native form.
func (w *validatingWalk) message(e policy.CELValidation) *cel.Value {
	v, why := readCELWith(e.MessageExpression, e.Pos, w.opts.Release, func(v cel.Value) cel.Value { return w.known(w.excepted.in(v)) })
	if why == nil {
		v, why = portable(w.withEmpty(inTemplate(v, w.form.template), e.Pos), e.Pos, w.draft.Variables, w.opts, w.rewrites())
	}
	if why != nil {
		w.note(e.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead")
		return nil
	}
	return &v
}

// audits are written by Kyverno for violations only, and by the API server always;
// an error of one would refuse a request that Kyverno admits.
func (w *validatingWalk) audits() {
	for _, a := range w.policy.AuditAnnotations {
		v, why := readCEL(a.Expression, a.Pos, w.opts.Release)
		if why == nil && harmless(v) && len(w.guard) == 0 {
			w.draft.Audits = append(w.draft.Audits, vap.Audit{Pos: a.Pos, Key: a.Name, Value: v})
			continue
		}
		w.note(a.Pos, diag.LeftOut, "the audit annotation %s may be an error, on which the API server would refuse the request; it is left out", a.Name)
	}
}

// compiled asks the API server's compiler about what is written and about the draft.
// A message expression that it refuses goes.
func (w *validatingWalk) compiled() *diag.Diagnostic {
	d := w.draft
	w.written.Base, w.written.Members, w.written.Constraints = d.Base, d.Members, d.Constraints
	w.written.Audits = d.Audits
	why, messages := refusedDrafts(&w.written, d, w.opts.Checker)
	for _, i := range messages {
		v := &d.Validations[i]
		v.MessageExpression = nil
		w.note(v.Pos, diag.MessageVariable, "the messageExpression has no native form; the message is shown instead")
	}
	return why
}
