package vap

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/cel"
)

// guardLength is the longest check that a message repeats as its guard. A longer
// one becomes a variable.
const guardLength = 100

// validations are in the draft's order, so that an index means the same in both.
func (e *emitter) validations(variables *[]admissionregistrationv1.Variable) []admissionregistrationv1.Validation {
	var out []admissionregistrationv1.Validation
	for _, v := range e.draft.Validations {
		w := admissionregistrationv1.Validation{
			Expression: e.text(v.Pos, v.Expr.Value),
			Message:    e.message(v),
			Reason:     reason(v.Reason),
		}
		if v.MessageExpression != nil {
			holds := v.Expr
			switch {
			case asksAuthorizer(w.Expression, *variables):
				holds = cel.False()
			case len(w.Expression) > guardLength:
				holds = check(variables, w.Expression)
				w.Expression = holds.String()
			}
			w.MessageExpression = e.messageExpression(v, holds)
		}
		out = append(out, w)
	}
	return out
}

// check makes a variable of a validation's expression, or finds the one that is it.
func check(variables *[]admissionregistrationv1.Variable, expression string) cel.Bool {
	taken := map[string]bool{}
	for _, v := range *variables {
		if v.Expression == expression {
			return cel.Ident("variables").Field(v.Name).AsBool()
		}
		taken[v.Name] = true
	}
	name := "holds"
	for i := 2; taken[name]; i++ {
		name = fmt.Sprintf("holds%d", i)
	}
	*variables = append(*variables, admissionregistrationv1.Variable{Name: name, Expression: expression})
	return cel.Ident("variables").Field(name).AsBool()
}

// asksAuthorizer tells that text needs the authorizer, by itself or through a
// variable: messages are evaluated without it, so they cannot have such a guard.
func asksAuthorizer(text string, variables []admissionregistrationv1.Variable) bool {
	names := map[string]bool{}
	mentions(text, names)
	asks := strings.Contains(text, "authorizer")
	for _, v := range slices.Backward(variables) {
		if names[v.Name] {
			mentions(v.Expression, names)
			asks = asks || strings.Contains(v.Expression, "authorizer")
		}
	}
	return asks
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
	return e.prefix(v) + text
}

// messageExpression is evaluated on every request, and from the same budget as
// the checks. Behind the guard it costs nothing more and cannot err while the
// check holds.
func (e *emitter) messageExpression(v Validation, holds cel.Bool) string {
	m := *v.MessageExpression
	if p := e.prefix(v); p != "" {
		m = cel.String(p).Plus(m)
	}
	return e.text(v.Pos, cel.Cond(holds, cel.String(""), m))
}

// prefix names the rule, where several share the object.
func (e *emitter) prefix(v Validation) string {
	if len(e.draft.Members) < 2 || v.Member >= len(e.draft.Members) {
		return ""
	}
	m := e.draft.Members[v.Member]
	name := m.Rule
	for _, other := range e.draft.Members {
		if other.Policy != m.Policy {
			name = m.Policy + "/" + m.Rule
			break
		}
	}
	return "[" + strings.TrimSpace(oneLine(name)) + "] "
}
