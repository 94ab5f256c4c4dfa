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
	v.MatchConstraints = o.take("matchConstraints")
	switch {
	case v.MatchConstraints != nil:
		r.matchConstraints(v.MatchConstraints)
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
	v.AdmissionOff = !r.enabled(e, "admission")
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

// matchConstraints checks those of a ValidatingAdmissionPolicy; they are kept as
// they are.
func (r *reader) matchConstraints(n *Node) {
	o := r.object(n, "matchConstraints")
	r.selector(o.take("namespaceSelector"))
	r.selector(o.take("objectSelector"))
	o.choice("matchPolicy", "Exact", "Equivalent")
	for _, item := range o.list("resourceRules") {
		r.resourceRule(item)
	}
	for _, item := range o.list("excludeResourceRules") {
		r.resourceRule(item)
	}
	o.end()
}

func (r *reader) resourceRule(n *Node) {
	o := r.object(n, "a resource rule")
	o.choice("scope", "Cluster", "Namespaced", "*")
	o.strings("resourceNames")
	for _, key := range []string{"apiGroups", "apiVersions", "resources"} {
		if o.require(key) != nil {
			o.strings(key)
		}
	}
	if o.require("operations") != nil {
		o.choices("operations", "CREATE", "UPDATE", "DELETE", "CONNECT", "*")
	}
	o.end()
}
