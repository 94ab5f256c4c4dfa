package policy

import (
	"slices"

	"github.com/kvap/kvap/diag"
)

// A Generate is the body of a generate rule. Where ForEach is there, the target
// of the rule itself is empty.
type Generate struct {
	Pos diag.Pos
	GenerateTarget
	ForEach []*GenerateForEach

	Synchronize bool
	// Existing is generateExisting of the rule; nil when absent.
	Existing *bool
	// Orphan is orphanDownstreamOnPolicyDelete; nil when absent.
	Orphan *bool
}

// Orphans tells that what the rule has made stays when the rule or its policy is
// deleted. By default it does so for copies.
func (g *Generate) Orphans() bool {
	if g.Orphan != nil {
		return *g.Orphan
	}
	return slices.ContainsFunc(g.targets(), func(t *GenerateTarget) bool { return t.Clone != nil || t.CloneList != nil })
}

// A GenerateTarget is what a rule makes, and what of: one of Data, Clone and
// CloneList, or nothing, which is the bare object. The texts, and all strings below
// Data, may hold variables.
type GenerateTarget struct {
	Pos                                    diag.Pos
	APIVersion, Kind, Namespace, Name, UID Text
	Data                                   *Node
	Clone                                  *CloneSource
	CloneList                              *CloneList
}

// A CloneSource is the object that is copied.
type CloneSource struct {
	Pos             diag.Pos
	Namespace, Name Text
}

// A CloneList selects the objects that are copied.
type CloneList struct {
	Pos       diag.Pos
	Namespace Text
	Kinds     []Text    // apiVersion/Kind
	Selector  *Selector // nil when absent
	// SelectorNode is the selector as written, for its variables.
	SelectorNode *Node
}

// A GenerateForEach is one entry of generate.foreach.
type GenerateForEach struct {
	Pos           diag.Pos
	List          Text // a bare JMESPath expression
	Context       []*ContextEntry
	Preconditions *Conditions
	GenerateTarget
	Source *Node
}

func (r *reader) generate(n *Node) *Generate {
	o := r.object(n, "generate")
	g := &Generate{Pos: n.Pos, Existing: o.optionalBool("generateExisting")}
	g.Synchronize = o.boolean("synchronize", false)
	g.Orphan = o.optionalBool("orphanDownstreamOnPolicyDelete")
	g.ForEach = each(o.list("foreach"), r.generateForEach)
	if len(g.ForEach) > 0 {
		o.atMostOne("data", "clone", "cloneList", "foreach")
		o.allow("apiVersion", "kind", "namespace", "name", "uid", "data", "clone", "cloneList")
	} else {
		g.GenerateTarget = r.generateTarget(o)
	}
	o.end()
	return g
}

func (r *reader) generateForEach(n *Node) *GenerateForEach {
	o := r.object(n, "a foreach entry")
	f := &GenerateForEach{Pos: n.Pos, Source: n, List: o.needText("list")}
	f.Context = each(o.list("context"), r.contextEntry)
	f.Preconditions = r.conditions(o.take("preconditions"))
	f.GenerateTarget = r.generateTarget(o)
	o.end()
	return f
}

// generateTarget reads what is generated and where it comes from.
func (r *reader) generateTarget(o *object) GenerateTarget {
	t := GenerateTarget{Pos: o.node.Pos, APIVersion: o.text("apiVersion"), Kind: o.text("kind"), UID: o.text("uid")}
	t.Namespace, t.Name = o.text("namespace"), o.text("name")
	t.Data = o.take("data")
	if n := o.take("clone"); n != nil {
		c := r.object(n, "clone")
		t.Clone = &CloneSource{Pos: n.Pos, Namespace: c.text("namespace"), Name: c.needText("name")}
		c.end()
	}
	if n := o.take("cloneList"); n != nil {
		c := r.object(n, "cloneList")
		t.CloneList = &CloneList{Pos: n.Pos, Namespace: c.text("namespace"), Kinds: c.texts("kinds"), SelectorNode: c.take("selector")}
		t.CloneList.Selector = r.selector(t.CloneList.SelectorNode)
		c.end()
	}
	if o.atMostOne("data", "clone", "cloneList") == 0 && !o.wrong {
		r.note(o.node.Pos, diag.Missing, "%s has no data, clone or cloneList, so the rule makes an object that has a kind and a name and nothing else", o.what)
	}
	if o.node.Get("cloneList") == nil && !o.wrong {
		for _, key := range []string{"apiVersion", "kind", "name"} {
			switch n := o.node.Get(key); {
			case n == nil || n.Kind == Null:
				r.fail(o.node.Pos, diag.Missing, "%s needs the key %s", o.what, key)
			case n.Kind == String && n.Str == "":
				r.fail(n.Pos, diag.Missing, "%s needs a value for %s; it is empty", o.what, key)
			}
		}
	}
	return t
}
