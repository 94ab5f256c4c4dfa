package policy

import (
	"strings"

	"github.com/kvap/kvap/diag"
)

// maxName is the length that Kyverno allows for the names of policies and rules.
const maxName = 63

// autogenControllers is the annotation that says which pod controllers a policy is
// expanded for.
const autogenControllers = "pod-policies.kyverno.io/autogen-controllers"

// policy reads a ClusterPolicy or Policy.
func (r *reader) policy(doc *Node) *Policy {
	o := r.object(doc, "a policy")
	p := r.header(o)
	if spec := o.require("spec"); spec != nil {
		r.spec(p, spec)
	}
	o.end()
	return p
}

// header reads what all kinds of policies share.
func (r *reader) header(o *object) *Policy {
	p := &Policy{
		Pos: o.node.Pos, APIVersion: o.str("apiVersion"), Kind: o.str("kind"), Source: o.node,
		Action: Audit, FailurePolicy: Fail, Admission: true, Background: true,
	}
	o.allow("status")
	meta := r.metadata(o)
	p.Name, p.Namespace, p.Labels = meta.name, meta.namespace, meta.labels
	p.Annotations = pairMap(meta.annotations)
	if len(p.Name) > maxName {
		r.fail(meta.pos, diag.OutOfRange, "the name of a policy has at most %d characters; this one has %d", maxName, len(p.Name))
	}
	switch {
	case p.Namespaced() && p.Namespace == "":
		p.Namespace = "default"
	case !p.Namespaced() && p.Namespace != "":
		r.warn(meta.namespacePos, diag.Conflict, "a %s has no namespace; this one is ignored", p.Kind)
		p.Namespace = ""
	}
	for _, a := range meta.annotations {
		if a.Key == autogenControllers {
			r.controllers(a)
		}
	}
	return p
}

// handedOver tells that admission is switched off in the policy for Kyverno's sake
// only, because kvap judges requests by it: `kvap migrate enforce` does so.
func (p *Policy) handedOver() bool { return p.Annotations["kvap.dev/kyverno"] == "off" }

// controllers warns of values that do not do what they seem to.
func (r *reader) controllers(a Pair) {
	for item := range strings.SplitSeq(a.Value, ",") {
		switch {
		case item == "all":
			r.warn(a.Pos, diag.OutOfRange, "no controller is called \"all\", so it matches none; remove the annotation to expand rules for all controllers")
		case item != strings.TrimSpace(item):
			r.warn(a.Pos, diag.OutOfRange, "the controller %q has a space, so it matches none; write the list without spaces", item)
		}
	}
}

func (r *reader) spec(p *Policy, n *Node) {
	o := r.object(n, "a policy's spec")
	p.Action = r.action(o.take("validationFailureAction"), Audit)
	p.Overrides = each(o.list("validationFailureActionOverrides"), r.override)
	if p.Namespaced() && p.Overrides != nil {
		r.fail(o.pos("validationFailureActionOverrides"), diag.Conflict, "a namespaced Policy cannot have action overrides; set validationFailureAction")
	}
	p.EmitWarning = o.boolean("emitWarning", false)
	p.Admission = o.boolean("admission", true) || p.handedOver()
	p.Background = o.boolean("background", true)
	if !p.Admission && !p.Background {
		r.fail(o.pos("admission"), diag.Conflict, "with both admission and background false the policy does nothing; set one of them to true")
	}
	p.ApplyOne = o.choice("applyRules", "All", "One") == "One"
	r.failurePolicy(p, o)
	o.optionalBool("schemaValidation")
	p.MutateExisting = o.boolean("mutateExistingOnPolicyUpdate", false)
	p.GenerateExisting = o.boolean("generateExisting", false)
	p.ServerSideApply = o.boolean("useServerSideApply", false)
	if old := o.take("generateExistingOnPolicyUpdate"); old != nil {
		r.fail(o.pos("generateExistingOnPolicyUpdate"), diag.UnknownKey, "generateExistingOnPolicyUpdate is no longer supported; use generateExisting")
	}
	r.rules(p, o)
	o.end()
}

// failurePolicy reads it and the other settings that have an old place in the spec
// and a new one in webhookConfiguration.
func (r *reader) failurePolicy(p *Policy, o *object) {
	old := o.choice("failurePolicy", "Fail", "Ignore")
	o.whole("webhookTimeoutSeconds", 1, 30)
	if old != "" {
		p.FailurePolicy = FailurePolicy(old)
	}
	n := o.take("webhookConfiguration")
	if n == nil {
		return
	}
	w := r.object(n, "webhookConfiguration")
	if fp := w.choice("failurePolicy", "Fail", "Ignore"); fp != "" {
		p.FailurePolicy = FailurePolicy(fp)
		if old != "" {
			r.fail(w.pos("failurePolicy"), diag.Conflict, "failurePolicy stands in the spec and in webhookConfiguration; remove the one in the spec")
		}
	}
	w.whole("timeoutSeconds", 1, 30)
	if w.take("timeoutSeconds") != nil && o.take("webhookTimeoutSeconds") != nil {
		r.fail(w.pos("timeoutSeconds"), diag.Conflict, "a timeout stands in the spec and in webhookConfiguration; remove webhookTimeoutSeconds")
	}
	p.MatchConditions = each(w.list("matchConditions"), r.matchCondition)
	w.end()
}

// action reads an action. Small letters mean the same, and are not what an error proposes.
func (r *reader) action(n *Node, absent Action) Action {
	if n != nil && n.Kind == String {
		switch n.Str {
		case "enforce":
			return Enforce
		case "audit":
			return Audit
		}
	}
	if a := Action(r.choice(n, "Audit", "Enforce")); a != "" {
		return a
	}
	return absent
}

func (r *reader) override(n *Node) ActionOverride {
	o := r.object(n, "an action override")
	a := ActionOverride{Pos: n.Pos, Namespaces: o.strings("namespaces")}
	a.Action = r.action(o.require("action"), Audit)
	a.NamespaceSelector = r.selector(o.take("namespaceSelector"))
	o.end()
	return a
}

func (r *reader) rules(p *Policy, o *object) {
	n := o.require("rules")
	for _, item := range r.list(n) {
		rule := r.rule(p, item)
		rule.Index = len(p.Rules)
		for _, other := range p.Rules {
			if other.Name == rule.Name && rule.Name != "" {
				r.fail(rule.Pos, diag.Conflict, "two rules of this policy are called %q, the first on line %d; rename one", rule.Name, other.Pos.Line)
				break
			}
		}
		p.Rules = append(p.Rules, rule)
	}
	if n != nil && n.Kind == List && len(n.Items) == 0 {
		r.fail(n.Pos, diag.Missing, "a policy needs at least one rule")
	}
}
