package policy

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
	c.Context = each(o.list("context"), r.contextEntry)
	c.Conditions = r.conditions(o.take("conditions"))
	c.Propagation = o.choice("deletionPropagationPolicy", "Foreground", "Background", "Orphan")
	o.end()
}
