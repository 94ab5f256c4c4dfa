package policy

import "github.com/kvap/kvap/diag"

// cleanup reads a CleanupPolicy or ClusterCleanupPolicy.
func (r *reader) cleanup(doc *Node) *Cleanup {
	// As in v2beta1 policies there is no legacy form.
	r.beta = true
	o := r.object(doc, "a cleanup policy")
	c := &Cleanup{Pos: doc.Pos, Kind: doc.Get("kind").text(), Source: doc}
	o.allow("apiVersion", "kind", "status")
	meta := r.metadata(o)
	c.Name, c.Namespace = meta.name, meta.namespace
	if c.Kind == "CleanupPolicy" && c.Namespace == "" {
		c.Namespace = "default"
	}
	if spec := o.require("spec"); spec != nil {
		r.cleanupSpec(c, spec)
	}
	o.end()
	return c
}

func (r *reader) cleanupSpec(c *Cleanup, n *Node) {
	o := r.object(n, "a cleanup policy's spec")
	c.Schedule = o.needText("schedule")
	if m := o.require("match"); m != nil {
		c.Match = r.match(m, "match")
	}
	if m := o.take("exclude"); m != nil {
		c.Exclude = r.match(m, "exclude")
	}
	for _, block := range []*MatchBlock{c.Match, c.Exclude} {
		r.nobodysFilters(block)
		if c.Kind == "CleanupPolicy" {
			r.ownNamespace(block)
		}
	}
	c.Context = each(o.list("context"), r.contextEntry)
	for _, e := range c.Context {
		if e.ConfigMap != nil || e.ImageRegistry != nil {
			r.fail(e.Pos, diag.OutOfRange, "the context of a cleanup policy has no ConfigMaps and no registries; use an apiCall or a globalReference")
		}
	}
	c.Conditions = r.conditions(o.take("conditions"))
	c.Propagation = o.choice("deletionPropagationPolicy", "Foreground", "Background", "Orphan")
	o.end()
}

// nobodysFilters refuses filters by user: nobody asks for what a schedule does.
func (r *reader) nobodysFilters(m *MatchBlock) {
	if m == nil {
		return
	}
	for _, f := range m.Filters() {
		if len(f.Roles)+len(f.ClusterRoles)+len(f.Subjects) > 0 {
			r.fail(f.Pos, diag.Conflict, "a cleanup policy runs on a schedule and knows no user; remove roles, clusterRoles and subjects")
		}
	}
}
