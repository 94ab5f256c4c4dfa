package policy

import (
	"slices"

	"github.com/kvap/kvap/diag"
)

// celPolicy reads a policy in CEL.
func (r *reader) celPolicy(doc *Node, read func(*Policy, *Node)) *Policy {
	o := r.object(doc, "a policy")
	p := r.header(o)
	if spec := o.require("spec"); spec != nil {
		read(p, spec)
	}
	o.end()
	return p
}

func (r *reader) validatingSpec(p *Policy, n *Node) {
	o := r.object(n, "a policy's spec")
	v := &Validating{Pos: n.Pos}
	p.Validating = v
	if fp := o.choice("failurePolicy", "Fail", "Ignore"); fp != "" {
		p.FailurePolicy = FailurePolicy(fp)
	}
	if n := o.take("evaluation"); n != nil {
		e := r.object(n, "evaluation")
		v.Evaluation = r.evaluation(p, e)
		e.end()
	}
	if v.Mode == "" {
		v.Mode = "Kubernetes"
	}
	constraints := o.take("matchConstraints")
	switch {
	case constraints != nil:
		v.MatchConstraints = r.matchConstraints(constraints)
	case v.Mode != "JSON": // which judges documents that are no Kubernetes objects
		o.missing("matchConstraints")
	}
	v.MatchConditions = each(o.list("matchConditions"), r.matchCondition)
	v.Variables = each(o.list("variables"), r.celVariable)
	v.Validations = each(o.list("validations"), r.celValidation)
	v.AuditAnnotations = each(o.list("auditAnnotations"), r.auditAnnotation)
	if len(v.Validations) == 0 && len(v.AuditAnnotations) == 0 && !o.wrong {
		r.fail(n.Pos, diag.Missing, "a ValidatingPolicy needs at least one entry in validations")
	}
	r.validationActions(p, o)
	v.Autogen, v.AutogenVAP = r.autogen(o.take("autogen"), "validatingAdmissionPolicy")
	r.celWebhook(o.take("webhookConfiguration"))
	o.end()
}

// celWebhook reads webhookConfiguration of a policy in CEL, which says nothing of what
// the policy does.
func (r *reader) celWebhook(n *Node) {
	if n == nil {
		return
	}
	o := r.object(n, "webhookConfiguration")
	o.whole("timeoutSeconds", 1, 30)
	o.end()
}

// validationActions reads the actions; without any Kyverno denies.
func (r *reader) validationActions(p *Policy, o *object) {
	v := p.Validating
	v.Actions = o.choices("validationActions", "Deny", "Audit", "Warn")
	if old := o.choices("validationAction", "Deny", "Audit", "Warn"); old != nil && v.Actions == nil {
		r.warn(o.pos("validationAction"), diag.Deprecated, "validationAction is now called validationActions; rename it")
		v.Actions = old
	}
	if len(v.Actions) == 0 {
		v.Actions = []string{"Deny"}
	}
	if slices.Contains(v.Actions, "Deny") {
		p.Action = Enforce
	}
}

// evaluation reads what all policies in CEL have in it, and leaves the others.
func (r *reader) evaluation(p *Policy, e *object) (out Evaluation) {
	out.Mode = e.choice("mode", "Kubernetes", "JSON")
	out.AdmissionOff = !r.enabled(e, "admission", true) && !p.handedOver()
	out.BackgroundOff = !r.enabled(e, "background", true)
	p.Admission, p.Background = !out.AdmissionOff, !out.BackgroundOff
	return out
}

// enabled reads a switch.
func (r *reader) enabled(o *object, key string, absent bool) bool {
	n := o.take(key)
	if n == nil {
		return absent
	}
	s := r.object(n, key)
	on := s.boolean("enabled", absent)
	s.end()
	return on
}

// autogen reads the controllers of pods that a policy is for as well, and whether a native
// policy is made of it.
func (r *reader) autogen(n *Node, native string) (controllers []string, made *bool) {
	if n == nil {
		return nil, nil
	}
	o := r.object(n, "autogen")
	if pc := o.take("podControllers"); pc != nil {
		c := r.object(pc, "podControllers")
		controllers = c.strings("controllers")
		c.end()
	}
	if n := o.take(native); n != nil {
		s := r.object(n, native)
		made = s.optionalBool("enabled")
		s.end()
	}
	o.end()
	return controllers, made
}

// matchConstraints reads those of a ValidatingAdmissionPolicy.
func (r *reader) matchConstraints(n *Node) *MatchConstraints {
	o := r.object(n, "matchConstraints")
	m := r.constraints(o, r.resourceRule)
	o.end()
	return m
}

func (r *reader) constraints(o *object, rule func(*Node) ResourceRule) *MatchConstraints {
	m := &MatchConstraints{Pos: o.node.Pos}
	m.NamespaceSelector = r.selector(o.take("namespaceSelector"))
	m.ObjectSelector = r.selector(o.take("objectSelector"))
	m.MatchPolicy = o.choice("matchPolicy", "Exact", "Equivalent")
	m.Rules = each(o.list("resourceRules"), rule)
	m.Exclude = each(o.list("excludeResourceRules"), r.resourceRule)
	return m
}

func (r *reader) resourceRule(n *Node) ResourceRule {
	rule := r.anyOperation(n)
	if n.Kind == Map && n.Get("operations") == nil {
		r.fail(n.Pos, diag.Missing, "a resource rule needs the key operations")
	}
	return rule
}

// anyOperation reads a resource rule that may say nothing of operations.
func (r *reader) anyOperation(n *Node) ResourceRule {
	o := r.object(n, "a resource rule")
	rule := ResourceRule{Pos: n.Pos, Names: o.strings("resourceNames")}
	if rule.Scope = o.choice("scope", "Cluster", "Namespaced", "*"); rule.Scope == "" {
		rule.Scope = "*"
	}
	needed := func(key string) (list []string) {
		if o.require(key) != nil {
			list = o.strings(key)
		}
		return list
	}
	rule.Groups, rule.Versions, rule.Resources = needed("apiGroups"), needed("apiVersions"), needed("resources")
	rule.Operations = o.choices("operations", "CREATE", "UPDATE", "DELETE", "CONNECT", "*")
	o.end()
	return rule
}
