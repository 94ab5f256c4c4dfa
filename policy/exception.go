package policy

import "github.com/kvap/kvap/diag"

// exception reads a PolicyException.
func (r *reader) exception(doc *Node) *Exception {
	// An exception matches as v2beta1 policies do, without the legacy form.
	r.beta = true
	o := r.object(doc, "an exception")
	e := &Exception{Pos: doc.Pos, Background: true, Source: doc}
	o.allow("apiVersion", "kind", "status")
	meta := r.metadata(o)
	e.Name, e.Namespace = meta.name, meta.namespace
	if e.Namespace == "" {
		e.Namespace = "default"
	}
	if spec := o.require("spec"); spec != nil {
		r.exceptionSpec(e, spec)
	}
	o.end()
	return e
}

func (r *reader) exceptionSpec(e *Exception, n *Node) {
	o := r.object(n, "an exception's spec")
	e.Background = o.boolean("background", true)
	if m := o.require("match"); m != nil {
		e.Match = r.match(m, "match")
	}
	e.Conditions = r.conditions(o.take("conditions"))
	e.Exceptions = each(r.list(o.require("exceptions")), r.exceptionRef)
	e.PodSecurity = each(o.list("podSecurity"), r.podSecurityExclude)
	o.end()
	if e.Exceptions != nil && len(e.Exceptions) == 0 {
		r.fail(o.pos("exceptions"), diag.Missing, "an exception needs at least one entry in exceptions")
	}
}

func (r *reader) exceptionRef(n *Node) ExceptionRef {
	o := r.object(n, "an entry of exceptions")
	ref := ExceptionRef{Pos: n.Pos, PolicyName: o.needText("policyName").Value}
	if o.require("ruleNames") != nil {
		ref.RuleNames = o.strings("ruleNames")
	}
	o.end()
	return ref
}
