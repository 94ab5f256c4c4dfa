package policy

import (
	"slices"

	"github.com/kvap/kvap/diag"
)

// validatingPolicy reads a ValidatingPolicy.
func (r *reader) validatingPolicy(doc *Node) *Policy {
	o := r.object(doc, "a policy")
	p := r.header(o)
	if spec := o.require("spec"); spec != nil {
		r.validatingSpec(p, spec)
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
	r.evaluation(p, o)
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
	r.autogen(v, o.take("autogen"))
	if w := o.take("webhookConfiguration"); w != nil {
		b := r.object(w, "webhookConfiguration")
		b.whole("timeoutSeconds", 1, 30)
		b.end()
	}
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

func (r *reader) evaluation(p *Policy, o *object) {
	v := p.Validating
	v.Mode = "Kubernetes"
	n := o.take("evaluation")
	if n == nil {
		return
	}
	e := r.object(n, "evaluation")
	if mode := e.choice("mode", "Kubernetes", "JSON"); mode != "" {
		v.Mode = mode
	}
	v.AdmissionOff = !r.enabled(e, "admission") && !p.handedOver()
	v.BackgroundOff = !r.enabled(e, "background")
	e.end()
	p.Admission, p.Background = !v.AdmissionOff, !v.BackgroundOff
}

// enabled reads a switch that is on when absent.
func (r *reader) enabled(o *object, key string) bool {
	n := o.take(key)
	if n == nil {
		return true
	}
	s := r.object(n, key)
	on := s.boolean("enabled", true)
	s.end()
	return on
}

func (r *reader) autogen(v *Validating, n *Node) {
	if n == nil {
		return
	}
	o := r.object(n, "autogen")
	if pc := o.take("podControllers"); pc != nil {
		c := r.object(pc, "podControllers")
		v.Autogen = c.strings("controllers")
		c.end()
	}
	if vap := o.take("validatingAdmissionPolicy"); vap != nil {
		s := r.object(vap, "validatingAdmissionPolicy")
		v.AutogenVAP = s.optionalBool("enabled")
		s.end()
	}
	o.end()
}

// matchConstraints reads those of a ValidatingAdmissionPolicy.
func (r *reader) matchConstraints(n *Node) *MatchConstraints {
	o := r.object(n, "matchConstraints")
	m := &MatchConstraints{Pos: n.Pos}
	m.NamespaceSelector = r.selector(o.take("namespaceSelector"))
	m.ObjectSelector = r.selector(o.take("objectSelector"))
	m.MatchPolicy = o.choice("matchPolicy", "Exact", "Equivalent")
	m.Rules = each(o.list("resourceRules"), r.resourceRule)
	m.Exclude = each(o.list("excludeResourceRules"), r.resourceRule)
	o.end()
	return m
}

func (r *reader) resourceRule(n *Node) ResourceRule {
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
	if o.require("operations") != nil {
		rule.Operations = o.choices("operations", "CREATE", "UPDATE", "DELETE", "CONNECT", "*")
	}
	o.end()
	return rule
}
