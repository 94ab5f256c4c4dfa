package policy

import "github.com/kvap/kvap/diag"

func (r *reader) validate(n *Node) *Validate {
	o := r.object(n, "validate")
	v := &Validate{Pos: n.Pos, Message: o.text("message"), AllowExisting: true}
	v.Action = r.action(o.take("failureAction"), "")
	v.Overrides = each(o.list("failureActionOverrides"), r.override)
	if !r.beta {
		v.AllowExisting = o.boolean("allowExistingViolations", true)
	}
	v.Pattern = o.take("pattern")
	v.AnyPattern = r.anyPattern(o)
	v.Deny = r.deny(o.take("deny"))
	v.ForEach = each(o.list("foreach"), r.forEach)
	if ps := o.take("podSecurity"); ps != nil {
		v.PodSecurity = r.podSecurity(ps)
	}
	if cel := o.take("cel"); cel != nil {
		v.CEL = r.celRule(cel)
	}
	if v.Manifests = o.take("manifests"); v.Manifests != nil {
		r.manifests(v.Manifests)
	}
	if v.Assert = o.take("assert"); v.Assert != nil {
		r.warn(o.pos("assert"), diag.Deprecated, "validate.assert has had no effect since Kyverno 1.19; write the check as a pattern or in cel")
	}
	if v.ForEach != nil && len(v.ForEach) == 0 {
		r.fail(o.pos("foreach"), diag.Missing, "foreach is empty; give it an entry with list and a check")
	}
	if v.Assert == nil {
		o.one("pattern", "anyPattern", "deny", "foreach", "podSecurity", "cel", "manifests")
	}
	o.end()
	return v
}

// anyPattern checks that it is a list of patterns.
func (r *reader) anyPattern(o *object) *Node {
	n := o.take("anyPattern")
	if n != nil && n.Kind != List {
		r.wrongType(n, "a list of patterns")
	}
	return n
}

func (r *reader) deny(n *Node) *Deny {
	if n == nil {
		return nil
	}
	o := r.object(n, "deny")
	d := &Deny{Pos: n.Pos, Conditions: r.conditions(o.take("conditions"))}
	o.end()
	return d
}

func (r *reader) forEach(n *Node) *ForEach {
	o := r.object(n, "a foreach entry")
	f := &ForEach{Pos: n.Pos, List: o.needText("list"), ElementScope: o.optionalBool("elementScope")}
	f.Context = each(o.list("context"), r.contextEntry)
	f.Preconditions = r.conditions(o.take("preconditions"))
	f.Pattern = o.take("pattern")
	f.AnyPattern = r.anyPattern(o)
	f.Deny = r.deny(o.take("deny"))
	f.ForEach = each(o.list("foreach"), r.forEach)
	o.one("pattern", "anyPattern", "deny", "foreach")
	o.end()
	return f
}

// manifests checks the keys; the block is kept as it is.
func (r *reader) manifests(n *Node) {
	o := r.object(n, "manifests")
	for _, item := range r.list(o.require("attestors")) {
		imageReader{r, &ImageVerification{}}.attestorSet(item)
	}
	o.str("annotationDomain")
	o.str("repository")
	for _, item := range o.list("ignoreFields") {
		f := r.object(item, "an entry of ignoreFields")
		f.strings("fields")
		for _, obj := range f.list("objects") {
			b := r.object(obj, "an object of ignoreFields")
			for _, key := range []string{"group", "version", "kind", "name", "namespace"} {
				b.str(key)
			}
			b.end()
		}
		f.end()
	}
	if d := o.take("dryRun"); d != nil {
		dry := r.object(d, "dryRun")
		dry.optionalBool("enable")
		dry.str("namespace")
		dry.end()
	}
	o.end()
}
