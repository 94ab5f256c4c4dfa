package policy

import "github.com/kvap/kvap/diag"

// The bodies of mutate, generate and verifyImages are checked here and kept as
// nodes: nothing but the interpreter reads them.

func (r *reader) mutate(n *Node) {
	o := r.object(n, "mutate")
	for _, item := range o.list("targets") {
		r.mutateTarget(item)
	}
	for _, item := range o.list("foreach") {
		r.mutateForEach(item)
	}
	r.patches(o)
	o.optionalBool("mutateExistingOnPolicyUpdate")
	o.one("foreach", "patchStrategicMerge", "patchesJson6902")
	o.end()
}

// patches reads the two forms of a patch.
func (r *reader) patches(o *object) {
	if p := o.take("patchStrategicMerge"); p != nil && p.Kind != Map {
		r.wrongType(p, "a map")
	}
	o.str("patchesJson6902")
}

func (r *reader) mutateTarget(n *Node) {
	o := r.object(n, "a target")
	o.needText("apiVersion")
	o.needText("kind")
	o.str("namespace")
	o.str("name")
	o.str("uid")
	r.selector(o.take("selector"))
	each(o.list("context"), r.contextEntry)
	r.conditions(o.take("preconditions"))
	o.end()
}

func (r *reader) mutateForEach(n *Node) {
	o := r.object(n, "a foreach entry")
	o.needText("list")
	o.choice("order", "Ascending", "Descending")
	each(o.list("context"), r.contextEntry)
	r.conditions(o.take("preconditions"))
	r.patches(o)
	for _, item := range o.list("foreach") {
		r.mutateForEach(item)
	}
	o.one("foreach", "patchStrategicMerge", "patchesJson6902")
	o.end()
}

func (r *reader) generate(n *Node) {
	o := r.object(n, "generate")
	o.optionalBool("generateExisting")
	o.optionalBool("synchronize")
	o.optionalBool("orphanDownstreamOnPolicyDelete")
	entries := o.list("foreach")
	for _, item := range entries {
		f := r.object(item, "a foreach entry")
		f.needText("list")
		each(f.list("context"), r.contextEntry)
		r.conditions(f.take("preconditions"))
		r.generateTarget(f)
		f.end()
	}
	if len(entries) > 0 {
		o.allow("apiVersion", "kind", "namespace", "name", "uid", "data", "clone", "cloneList")
	} else {
		r.generateTarget(o)
	}
	o.end()
}

// generateTarget reads what is generated and where it comes from.
func (r *reader) generateTarget(o *object) {
	for _, key := range []string{"apiVersion", "kind", "namespace", "name", "uid"} {
		o.str(key)
	}
	o.take("data")
	if n := o.take("clone"); n != nil {
		c := r.object(n, "clone")
		c.str("namespace")
		c.needText("name")
		c.end()
	}
	if n := o.take("cloneList"); n != nil {
		c := r.object(n, "cloneList")
		c.str("namespace")
		c.strings("kinds")
		r.selector(c.take("selector"))
		c.end()
	}
	o.one("data", "clone", "cloneList")
	if o.node.Get("cloneList") == nil && !o.wrong {
		for _, key := range []string{"kind", "name"} {
			if n := o.node.Get(key); n == nil || n.Kind == Null {
				o.r.fail(o.node.Pos, diag.Missing, "%s needs the key %s", o.what, key)
			}
		}
	}
}
