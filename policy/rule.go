package policy

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
)

// rule reads one rule. p tells of the policy around it; its rules are not looked at.
func (r *reader) rule(p *Policy, n *Node) *Rule {
	o := r.object(n, "a rule")
	name := o.needText("name")
	rule := &Rule{Pos: n.Pos, Name: name.Value, Origin: name.Value, Source: n}
	if len(name.Value) > maxName {
		r.fail(name.Pos, diag.OutOfRange, "the name of a rule has at most %d characters; this one has %d", maxName, len(name.Value))
	}
	if m := o.require("match"); m != nil {
		rule.Match = r.match(m, "match")
	}
	if m := o.take("exclude"); m != nil {
		rule.Exclude = r.match(m, "exclude")
	}
	if p.Kind == "Policy" {
		r.ownNamespace(rule.Match)
		r.ownNamespace(rule.Exclude)
	}
	rule.Context = each(o.list("context"), r.contextEntry)
	rule.Preconditions = r.conditions(o.take("preconditions"))
	rule.CELPreconditions = each(o.list("celPreconditions"), r.matchCondition)
	rule.ImageExtractors = o.take("imageExtractors")
	if rule.ImageExtractors != nil {
		r.imageExtractors(rule.ImageExtractors)
	}
	rule.SkipBackground = o.boolean("skipBackgroundRequests", true)
	rule.Properties = o.pairs("reportProperties")
	r.body(rule, o)
	o.end()
	if rule.Generate != nil {
		r.checkGenerate(p, rule)
	}
	r.auditedPins(p, rule)
	if !r.again {
		r.expressions(rule)
		r.undefined(rule)
	}
	return rule
}

// body reads the one of four that makes the rule's type.
func (r *reader) body(rule *Rule, o *object) {
	if n := o.take("validate"); n != nil {
		rule.Validate = r.validate(n)
	}
	if n := o.take("mutate"); n != nil {
		rule.Mutate = r.mutate(n)
	}
	if n := o.take("generate"); n != nil {
		rule.Generate = r.generate(n)
	}
	if n := o.take("verifyImages"); n != nil {
		rule.VerifyImages = each(r.list(n), r.imageVerification)
	}
	o.one("validate", "mutate", "generate", "verifyImages")
	isCEL := rule.Validate != nil && rule.Validate.CEL != nil
	if rule.CELPreconditions != nil && !isCEL {
		r.fail(o.pos("celPreconditions"), diag.Conflict, "celPreconditions work with validate.cel only; use preconditions")
	}
	if rule.Context != nil && isCEL {
		r.fail(o.pos("context"), diag.Conflict, "a rule with validate.cel cannot have a context; use validate.cel.variables")
	}
}

// one reports none or several of the keys of which one must stand.
func (o *object) one(keys ...string) {
	if o.atMostOne(keys...) == 0 && !o.wrong {
		o.r.fail(o.node.Pos, diag.Missing, "%s needs one of the keys %s", o.what, strings.Join(keys, ", "))
	}
}

// atMostOne is how many of the keys are there; more than one is refused.
func (o *object) atMostOne(keys ...string) int {
	var found []string
	for _, key := range keys {
		if n := o.node.Get(key); n != nil && n.Kind != Null {
			found = append(found, key)
		}
	}
	if len(found) > 1 && !o.wrong {
		o.r.fail(o.pos(found[1]), diag.Conflict, "%s can have only one of %s; split it in two or remove one", o.what, strings.Join(found, " and "))
	}
	return len(found)
}

// ownNamespace refuses namespaces in the filters of a namespaced policy.
func (r *reader) ownNamespace(m *MatchBlock) {
	if m == nil {
		return
	}
	for _, f := range m.Filters() {
		if len(f.Namespaces) > 0 {
			r.fail(f.Namespaces[0].Pos, diag.Conflict, "a namespaced Policy is about its own namespace only; remove namespaces, or make it a ClusterPolicy")
		}
	}
}

// Filters are all filters of the block; none of nil.
func (m *MatchBlock) Filters() []*Filter {
	if m == nil {
		return nil
	}
	filters := slices.Concat(m.Any, m.All)
	if m.Legacy != nil {
		filters = append(filters, m.Legacy)
	}
	return filters
}

func (r *reader) imageExtractors(n *Node) {
	if n.Kind != Map {
		r.wrongType(n, "a map")
		return
	}
	for _, f := range n.Fields {
		for _, item := range r.list(f.Value) {
			o := r.object(item, "an image extractor")
			o.needText("path")
			o.str("value")
			o.str("name")
			o.str("key")
			o.str("jmesPath")
			o.end()
		}
	}
}
