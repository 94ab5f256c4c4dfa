package vap

import (
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
)

// guardLength is the longest check that a message repeats as its guard. A longer
// one becomes a variable.
const guardLength = 100

// messageCost is what a message may cost, of the ten million units that an API
// server spends on one request for all checks and messages of a policy.
const messageCost = 100_000

// excuseComment says why an expression asks the old object.
const excuseComment = "// an update of an object that violated the rule before passes\n"

// validations are in the draft's order, so that an index means the same in both.
func (e *emitter) validations() []admissionregistrationv1.Validation {
	var out []admissionregistrationv1.Validation
	for _, v := range e.draft.Validations {
		w := admissionregistrationv1.Validation{Message: e.message(v), Reason: reason(v.Reason)}
		if e.guard != "" && !v.Left.IsZero() {
			w.Expression, w.MessageExpression = e.left(v)
			out = append(out, w)
			continue
		}
		holds := v.Expr
		switch {
		case v.Expr.IsTrue():
		case v.MessageExpression != nil:
			holds, w.MessageExpression = e.guardedMessage(v)
		case v.More != nil:
			w.MessageExpression = e.checked(v.Pos, flat(cel.String(w.Message).Plus(*v.More)))
		}
		w.Expression = e.checked(v.Pos, holds.Value)
		out = append(out, w)
	}
	return out
}

// left is a validation behind a guard that is true of violations alone.
func (e *emitter) left(v Validation) (expression, message string) {
	comment := "// what meets the match condition '" + e.guard + "' is a violation\n"
	if !v.Left.IsFalse() {
		comment = excuseComment
	}
	if v.MessageExpression != nil {
		message = e.checked(v.Pos, flat(*v.MessageExpression))
	}
	return comment + e.checked(v.Pos, v.Left.Value), message
}

// flat is a message as one sum. One that the author wrote stays as it is.
func flat(message cel.Value) cel.Value {
	if message.Written() != "" {
		return message
	}
	return cel.Simplify(message)
}

// guardedMessage is a message expression, and the check. Message expressions are evaluated
// on every request, and from the same budget as the checks; one that errs while its check
// holds is passed over. So one that costs much is behind its check. A check too long to be
// repeated becomes a variable.
func (e *emitter) guardedMessage(v Validation) (holds cel.Bool, text string) {
	message := *v.MessageExpression
	if v.More != nil {
		message = message.Plus(*v.More)
	}
	message = flat(message)
	if e.asksAuthorizer(v.Expr.Value) || cel.Cost(message, nil) < messageCost {
		return v.Expr, e.checked(v.Pos, message)
	}
	holds = v.Expr
	settled := e.body(e.settled(holds.Value))
	if check := e.print(v.Pos, settled); len(check) > guardLength {
		holds = e.check(v, settled, check)
	}
	return holds, e.checked(v.Pos, cel.Cond(holds, cel.String(""), message))
}

// checked is the text of an expression that the API server's type checker looks
// at: validations and their messages, and nothing else.
func (e *emitter) checked(pos diag.Pos, v cel.Value) string {
	for _, c := range e.draft.Checkers {
		v = c.Settle(v)
	}
	return e.text(pos, e.body(v))
}

// check makes a variable of a validation's expression, or finds the one that is it.
func (e *emitter) check(v Validation, expr cel.Value, text string) cel.Bool {
	taken := map[string]bool{}
	for _, have := range e.vars {
		if have.text == text {
			return cel.Ident("variables").Field(have.Name).AsBool()
		}
		taken[have.Name] = true
	}
	rule := ""
	if v.Member < len(e.draft.Members) {
		rule = e.draft.Members[v.Member].Origin
	}
	name := FreshName("holds", rule, func(name string) bool { return taken[name] })
	e.vars = append(e.vars, variable{Variable{Pos: v.Pos, Name: name, Expr: expr}, text})
	return cel.Ident("variables").Field(name).AsBool()
}

// asksAuthorizer tells that v needs the authorizer, by itself or through a
// variable: messages are evaluated without it, so they cannot have such a guard.
func (e *emitter) asksAuthorizer(v cel.Value) bool {
	if slices.Contains(v.Idents(), "authorizer") {
		return true
	}
	for _, name := range v.Uses("variables") {
		i := slices.IndexFunc(e.vars, func(have variable) bool { return have.Name == name })
		if i >= 0 && e.asksAuthorizer(e.vars[i].Expr) {
			return true
		}
	}
	return false
}

// reason is nil for the reason that the API server takes where there is none: it
// does not write that one out.
func reason(s string) *metav1.StatusReason {
	if s == "" || s == string(metav1.StatusReasonInvalid) {
		return nil
	}
	r := metav1.StatusReason(s)
	return &r
}

// message is the constant message, which also stands in where a message
// expression fails. The API server refuses line breaks and blank messages.
func (e *emitter) message(v Validation) string {
	text := oneLine(v.Message)
	if text == "" {
		text = "the rule is violated"
		if v.Member < len(e.draft.Members) {
			m := e.draft.Members[v.Member]
			text = oneLine(fmt.Sprintf("rule %s of policy %s is violated", m.Rule, m.Policy))
		}
	}
	return text
}
