package policy

import "github.com/kvap/kvap/diag"

// A Mutating is the spec of a MutatingPolicy: a MutatingAdmissionPolicy with a few
// additions.
type Mutating struct {
	Pos              diag.Pos
	MatchConstraints *MatchConstraints // nil when absent
	MatchConditions  []CEL             // which may use the variables
	Variables        []CEL
	Mutations        []Mutation // in the order in which they are made
	AuditAnnotations []CEL
	// ReinvocationPolicy is Never (default) or IfNeeded. Kyverno never runs a policy twice.
	ReinvocationPolicy string
	// Autogen is the list of controllers of autogen.podControllers; nil when absent.
	Autogen    []string
	AutogenMAP *bool // autogen.mutatingAdmissionPolicy.enabled
	// Existing tells that objects which are there are changed too
	// (evaluation.mutateExisting), and SkipBackground that what the background controller
	// does triggers nothing.
	Existing       bool
	SkipBackground bool
	// ReplacesAtomic lets an apply configuration replace lists and maps that are changed as
	// a whole only (evaluation.useServerSideApply). Otherwise that is an error.
	ReplacesAtomic bool
	// Targets select the objects that are changed, in place of the one of the request; nil
	// when absent.
	Targets          *MatchConstraints
	TargetExpression string
	TargetConditions []CEL
	Evaluation
}

// ChangesOthers tells that the policy changes other objects than the one of the request,
// and nothing at admission.
func (m *Mutating) ChangesOthers() bool {
	return m.Targets != nil && (len(m.Targets.Rules) > 0 || m.TargetExpression != "")
}

// Selected are the constraints that select the objects which are there: those of targets,
// with the resources of the policy where they name none.
func (m *Mutating) Selected() *MatchConstraints {
	if m.Targets == nil {
		return m.MatchConstraints
	}
	if len(m.Targets.Rules) > 0 || m.MatchConstraints == nil {
		return m.Targets
	}
	out := *m.Targets
	out.Rules = m.MatchConstraints.Rules
	return &out
}

// A Mutation is one change of a MutatingPolicy.
type Mutation struct {
	Pos        diag.Pos
	PatchType  PatchType
	Expression string
}

// A PatchType is what the expression of a Mutation gives.
type PatchType string

// The patch types: an Object that is merged, as in a server-side apply, or a list of
// JSONPatch.
const (
	ApplyConfiguration PatchType = "ApplyConfiguration"
	JSONPatch          PatchType = "JSONPatch"
)

func (r *reader) mutatingSpec(p *Policy, n *Node) {
	o := r.object(n, "a policy's spec")
	m := &Mutating{Pos: n.Pos, ReinvocationPolicy: "Never", SkipBackground: true}
	p.Mutating = m
	if fp := o.choice("failurePolicy", "Fail", "Ignore"); fp != "" {
		p.FailurePolicy = FailurePolicy(fp)
	}
	if again := o.choice("reinvocationPolicy", "Never", "IfNeeded"); again != "" {
		m.ReinvocationPolicy = again
	}
	if e := o.take("evaluation"); e != nil {
		r.mutatingEvaluation(p, e)
	}
	if constraints := o.require("matchConstraints"); constraints != nil {
		m.MatchConstraints = r.matchConstraints(constraints)
		if len(m.MatchConstraints.Rules) == 0 && constraints.Kind == Map {
			r.fail(constraints.Pos, diag.Missing, "matchConstraints needs at least one entry in resourceRules")
		}
	}
	m.MatchConditions = each(o.list("matchConditions"), r.matchCondition)
	m.Variables = each(o.list("variables"), r.celVariable)
	m.Mutations = each(o.list("mutations"), r.mutation)
	m.AuditAnnotations = each(o.list("auditAnnotations"), r.auditAnnotation)
	m.Autogen, m.AutogenMAP = r.autogen(o.take("autogen"), "mutatingAdmissionPolicy")
	if targets := o.take("targetMatchConstraints"); targets != nil {
		t := r.object(targets, "targetMatchConstraints")
		m.TargetExpression = t.str("expression")
		m.Targets = r.constraints(t, r.resourceRule)
		t.end()
	}
	m.TargetConditions = each(o.list("targetMatchConditions"), r.matchCondition)
	r.celWebhook(o.take("webhookConfiguration"))
	o.end()
}

func (r *reader) mutatingEvaluation(p *Policy, n *Node) {
	e := r.object(n, "evaluation")
	m := p.Mutating
	m.Evaluation = r.evaluation(p, e)
	m.Existing = r.enabled(e, "mutateExisting", false)
	m.SkipBackground = e.boolean("skipBackgroundRequests", true)
	m.ReplacesAtomic = e.boolean("useServerSideApply", false)
	e.end()
}

// mutation reads an entry of mutations, which has the patch of its type and no other.
// Kyverno passes over an entry that has not.
func (r *reader) mutation(n *Node) Mutation {
	o := r.object(n, "a mutation")
	m := Mutation{Pos: n.Pos, PatchType: PatchType(o.r.choice(o.require("patchType"), string(ApplyConfiguration), string(JSONPatch)))}
	for _, one := range []struct {
		of  PatchType
		key string
	}{{ApplyConfiguration, "applyConfiguration"}, {JSONPatch, "jsonPatch"}} {
		body := o.take(one.key)
		switch {
		case body == nil && m.PatchType == one.of:
			o.missing(one.key)
		case body != nil && m.PatchType != "" && m.PatchType != one.of:
			r.fail(body.Pos, diag.Conflict, "a mutation with the patchType %s has no %s; remove it, or change the patchType", m.PatchType, one.key)
		case body != nil:
			b := r.object(body, one.key)
			m.Expression = b.needText("expression").Value
			b.end()
		}
	}
	o.end()
	return m
}
