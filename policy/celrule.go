package policy

import "github.com/kvap/kvap/diag"

func (r *reader) celRule(n *Node) *CELRule {
	o := r.object(n, "validate.cel")
	c := &CELRule{Pos: n.Pos, Generate: o.boolean("generate", false)}
	c.Expressions = each(o.list("expressions"), r.celValidation)
	c.Variables = each(o.list("variables"), r.celVariable)
	c.AuditAnnotations = each(o.list("auditAnnotations"), r.auditAnnotation)
	if k := o.take("paramKind"); k != nil {
		c.ParamKind = r.paramKind(k)
	}
	if p := o.take("paramRef"); p != nil {
		c.ParamRef = r.paramRef(p)
	}
	if len(c.Expressions) == 0 && !o.wrong {
		r.fail(n.Pos, diag.Missing, "validate.cel needs at least one entry in expressions")
	}
	o.end()
	return c
}

func (r *reader) celValidation(n *Node) CELValidation {
	o := r.object(n, "a validation")
	v := CELValidation{
		Pos: n.Pos, Expression: o.needText("expression").Value, Message: o.str("message"),
		MessageExpression: o.str("messageExpression"), Reason: o.str("reason"),
	}
	o.end()
	return v
}

func (r *reader) celVariable(n *Node) CEL { return r.namedCEL(n, "a variable", "name", "expression") }

func (r *reader) matchCondition(n *Node) CEL {
	return r.namedCEL(n, "a match condition", "name", "expression")
}

func (r *reader) auditAnnotation(n *Node) CEL {
	return r.namedCEL(n, "an audit annotation", "key", "valueExpression")
}

func (r *reader) namedCEL(n *Node, what, name, expression string) CEL {
	o := r.object(n, what)
	c := CEL{Pos: n.Pos, Name: o.needText(name).Value, Expression: o.needText(expression).Value}
	o.end()
	return c
}

func (r *reader) paramKind(n *Node) *ParamKind {
	o := r.object(n, "paramKind")
	k := &ParamKind{Pos: n.Pos, APIVersion: o.needText("apiVersion").Value, Kind: o.needText("kind").Value}
	o.end()
	return k
}

func (r *reader) paramRef(n *Node) *ParamRef {
	o := r.object(n, "paramRef")
	p := &ParamRef{Pos: n.Pos, Name: o.str("name"), Namespace: o.str("namespace"), Selector: r.selector(o.take("selector"))}
	p.ParameterNotFoundAction = o.choice("parameterNotFoundAction", "Allow", "Deny")
	o.end()
	if p.Name != "" && p.Selector != nil {
		r.fail(o.pos("selector"), diag.Conflict, "paramRef has a name and a selector; remove one")
	}
	if p.Name == "" && p.Selector == nil && !o.wrong {
		r.fail(n.Pos, diag.Missing, "paramRef needs a name or a selector")
	}
	return p
}
