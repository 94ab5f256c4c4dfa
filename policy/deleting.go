package policy

import "github.com/kvap/kvap/diag"

// A Deleting is what a DeletingPolicy says in CEL of the objects that it deletes.
type Deleting struct {
	MatchConstraints *MatchConstraints // never nil: a policy without is about no object
	Variables        []CEL
	Conditions       []CEL // which may use the variables; all must hold
}

// deleting reads a DeletingPolicy, or one of a namespace.
func (r *reader) deleting(doc *Node) *Cleanup {
	o := r.object(doc, "a policy")
	c := &Cleanup{Pos: doc.Pos, Kind: doc.Get("kind").text(), Source: doc, Deleting: &Deleting{MatchConstraints: &MatchConstraints{}}}
	o.allow("apiVersion", "kind", "status")
	meta := r.metadata(o)
	c.Name, c.Namespace = meta.name, meta.namespace
	if c.Kind == "NamespacedDeletingPolicy" && c.Namespace == "" {
		c.Namespace = "default"
	}
	if spec := o.require("spec"); spec != nil {
		r.deletingSpec(c, spec)
	}
	o.end()
	return c
}

func (r *reader) deletingSpec(c *Cleanup, n *Node) {
	o := r.object(n, "a policy's spec")
	c.Schedule = o.needText("schedule")
	if constraints := o.take("matchConstraints"); constraints != nil {
		m := r.object(constraints, "matchConstraints")
		c.Deleting.MatchConstraints = r.constraints(m, r.anyOperation)
		m.end()
	}
	if len(c.Deleting.MatchConstraints.Rules) == 0 {
		r.warn(n.Pos, diag.Missing, "no resource is named in matchConstraints.resourceRules, so nothing is deleted in a cluster; kvap test judges JSON documents by it")
	}
	c.Deleting.Variables = each(o.list("variables"), r.celVariable)
	c.Deleting.Conditions = each(o.list("conditions"), r.matchCondition)
	c.Propagation = o.choice("deletionPropagationPolicy", "Foreground", "Background", "Orphan")
	o.end()
}
