package policy

import (
	"slices"

	"github.com/kvap/kvap/diag"
)

// A Generating is the spec of a GeneratingPolicy: what it makes for the objects that it
// matches.
type Generating struct {
	Pos              diag.Pos
	MatchConstraints *MatchConstraints // nil when absent
	MatchConditions  []CEL
	Variables        []CEL
	Entries          []GenerateEntry // in the order in which they are evaluated
	AuditAnnotations []CEL
	// Synchronize keeps what was made in step (evaluation.synchronize), and Orphan leaves it
	// when the policy is deleted (evaluation.orphanDownstreamOnPolicyDelete). Existing tells
	// that objects from before the policy trigger it too (evaluation.generateExisting), and
	// SkipBackground that what the background controller does triggers nothing.
	Synchronize, Orphan, Existing, SkipBackground bool
	Evaluation
}

// A GenerateEntry is an entry of generate: an expression that calls generator.Apply, or the
// documents of a template.
type GenerateEntry struct {
	Pos        diag.Pos
	Expression string // "" for a template
	Template   []*Node
	// Interpolate tells that the texts of the template have expressions in (( and )).
	Interpolate bool
}

// Lists tells whether a resource rule lists an operation by its name.
func (g *Generating) Lists(operation string) bool {
	return g.MatchConstraints != nil && slices.ContainsFunc(g.MatchConstraints.Rules, func(r ResourceRule) bool {
		return slices.Contains(r.Operations, operation)
	})
}

func (r *reader) generatingSpec(p *Policy, n *Node) {
	o := r.object(n, "a policy's spec")
	g := &Generating{Pos: n.Pos, SkipBackground: true}
	p.Generating = g
	p.FailurePolicy = Ignore // it denies nothing, whatever becomes of it
	if e := o.take("evaluation"); e != nil {
		r.generatingEvaluation(p, e)
	}
	if constraints := o.require("matchConstraints"); constraints != nil {
		g.MatchConstraints = r.matchConstraints(constraints)
		if len(g.MatchConstraints.Rules) == 0 && constraints.Kind == Map {
			r.fail(constraints.Pos, diag.Missing, "matchConstraints needs at least one entry in resourceRules")
		}
	}
	g.MatchConditions = each(o.list("matchConditions"), r.matchCondition)
	g.Variables = each(o.list("variables"), r.celVariable)
	entries := o.require("generate")
	g.Entries = each(r.list(entries), r.generateEntry)
	if entries != nil && entries.Kind == List && len(entries.Items) == 0 {
		r.fail(entries.Pos, diag.Missing, "a %s needs at least one entry in generate", p.Kind)
	}
	g.AuditAnnotations = each(o.list("auditAnnotations"), r.auditAnnotation)
	p.ServerSideApply = o.boolean("useServerSideApply", false)
	r.celWebhook(o.take("webhookConfiguration"))
	o.end()
}

func (r *reader) generatingEvaluation(p *Policy, n *Node) {
	e := r.object(n, "evaluation")
	g := p.Generating
	g.AdmissionOff = !r.enabled(e, "admission", true)
	p.Admission = !g.AdmissionOff
	g.Existing = r.enabled(e, "generateExisting", false)
	g.Synchronize = r.enabled(e, "synchronize", false)
	g.Orphan = r.enabled(e, "orphanDownstreamOnPolicyDelete", false)
	g.SkipBackground = e.boolean("skipBackgroundRequests", true)
	e.end()
}

// generateEntry reads an entry of generate, which is one of two.
func (r *reader) generateEntry(n *Node) GenerateEntry {
	o := r.object(n, "an entry of generate")
	entry := GenerateEntry{Pos: n.Pos}
	if o.take("expression") != nil {
		text := o.needText("expression")
		entry.Pos, entry.Expression = text.Pos, text.Value
	}
	if t := o.take("template"); t != nil {
		r.generateTemplate(&entry, t)
	}
	o.one("expression", "template")
	o.end()
	return entry
}

// generateTemplate reads a template: YAML with one or more documents, each a mapping.
func (r *reader) generateTemplate(entry *GenerateEntry, n *Node) {
	o := r.object(n, "a template")
	entry.Interpolate = o.choice("interpolate", "none", "cel") == "cel"
	text := o.needText("value")
	o.end()
	if text.Value == "" {
		return
	}
	docs, ds := documents(text.Pos.File, []byte(text.Value))
	for _, d := range ds {
		r.fail(text.Pos, diag.Syntax, "the template: %s (line %d of it)", d.Message, d.Line)
	}
	for _, doc := range docs {
		if doc.root.Kind != Map {
			r.fail(text.Pos, diag.WrongType, "each document of a template must be a map, not %s", article(doc.root.Kind))
			continue
		}
		doc.root.moveTo(text.Pos)
		if entry.Interpolate {
			r.checkTemplate(doc.root)
		}
		entry.Template = append(entry.Template, doc.root)
	}
	if len(docs) == 0 && len(ds) == 0 {
		r.fail(text.Pos, diag.Missing, "the template has no document, so nothing is made")
	}
}

// moveTo gives a node, and all below it, the place of the text that it was read from.
func (n *Node) moveTo(pos diag.Pos) {
	if n == nil {
		return
	}
	n.Pos = pos
	for _, item := range n.Items {
		item.moveTo(pos)
	}
	for i := range n.Fields {
		n.Fields[i].Pos = pos
		n.Fields[i].Value.moveTo(pos)
	}
}
