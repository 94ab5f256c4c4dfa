package native

import (
	"strings"

	"github.com/kvap/kvap/vap"
)

// Parts is what a CEL rule brings along besides its verdict.
type Parts struct {
	Checks     []vap.Validation // without their members
	Conditions []vap.Condition
	Variables  []vap.Variable
	Audits     []vap.Audit
	ParamKind  *vap.ParamKind
	ParamRef   *vap.ParamRef // NotFound is for a binding that denies
	// Written is what the author wrote, for the API server's compiler: what is
	// asked before an expression can hide that it is no condition.
	Written vap.Draft
}

// Key is everything that the parts say.
func (n *Parts) Key() string {
	if n == nil {
		return ""
	}
	var parts []string
	for _, c := range n.Checks {
		parts = append(parts, "check", c.Expr.String(), c.Message, c.Reason)
		if c.MessageExpression != nil {
			parts = append(parts, c.MessageExpression.String())
		}
	}
	return strings.Join(append(parts, n.Own()), "\x00")
}

// Own is what a policy object has only once; "" where there is none of it, so that
// the rule can share its object with others.
func (n *Parts) Own() string {
	if n == nil {
		return ""
	}
	var parts []string
	for _, c := range n.Conditions {
		parts = append(parts, "condition", c.Name, c.Expr.String())
	}
	for _, v := range n.Variables {
		parts = append(parts, "variable", v.Name, v.Expr.String())
	}
	for _, a := range n.Audits {
		parts = append(parts, "audit", a.Key, a.Value.String())
	}
	if n.ParamKind != nil {
		ref := n.ParamRef
		parts = append(parts, "params", n.ParamKind.APIVersion, n.ParamKind.Kind, ref.Namespace, ref.Name, ref.NotFound)
		if ref.Selector != nil {
			parts = append(parts, SelectorKey(*ref.Selector))
		}
	}
	return strings.Join(parts, "\x00")
}

// AddTo puts the parts into the draft of the rule's object.
func (n *Parts) AddTo(d *vap.Draft) {
	if n == nil {
		return
	}
	d.Conditions = append(d.Conditions, n.Conditions...)
	d.Variables = append(d.Variables, n.Variables...)
	d.Audits = append(d.Audits, n.Audits...)
	if n.ParamKind != nil {
		d.ParamKind = n.ParamKind
	}
}
