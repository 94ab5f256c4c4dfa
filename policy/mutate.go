package policy

import "github.com/kvap/kvap/diag"

// A Mutate is the body of a mutate rule. Of ForEach and the two patches one is
// set.
type Mutate struct {
	Pos diag.Pos
	// Existing tells that the rule has targets, be it an empty list: it changes
	// objects that are there, when a trigger says so, and nothing at admission.
	Existing bool
	Targets  []*MutateTarget
	ForEach  []*MutateForEach
	Patch
	// OnPolicyUpdate is mutateExistingOnPolicyUpdate; nil when absent.
	OnPolicyUpdate *bool
}

// A Patch says how an object is changed. One of its parts is set; both are
// nil where a foreach stands instead.
type Patch struct {
	Merge *Node // patchStrategicMerge, a map
	JSON  *Text // patchesJson6902
}

// A MutateTarget selects existing objects that a rule changes. Its texts may hold
// variables.
type MutateTarget struct {
	Pos              diag.Pos
	APIVersion, Kind Text
	Namespace, Name  Text
	Selector         *Selector // nil when absent
	Context          []*ContextEntry
	Preconditions    *Conditions // nil when absent
	SelectorNode     *Node       // as written, for its variables
}

// An Order is the order in which a foreach visits its elements.
type Order string

// The orders. None given means Descending for a merge and Ascending for a JSON
// patch.
const (
	Ascending  Order = "Ascending"
	Descending Order = "Descending"
)

// A MutateForEach is one entry of mutate.foreach.
type MutateForEach struct {
	Pos           diag.Pos
	List          Text // a bare JMESPath expression
	Order         Order
	Context       []*ContextEntry
	Preconditions *Conditions
	ForEach       []*MutateForEach
	Patch
}

func (r *reader) mutate(n *Node) *Mutate {
	o := r.object(n, "mutate")
	m := &Mutate{Pos: n.Pos}
	m.Existing = o.take("targets") != nil
	m.Targets = each(o.list("targets"), r.mutateTarget)
	m.ForEach = each(o.list("foreach"), r.mutateForEach)
	m.Patch = r.patch(o)
	m.OnPolicyUpdate = o.optionalBool("mutateExistingOnPolicyUpdate")
	o.one("foreach", "patchStrategicMerge", "patchesJson6902")
	o.end()
	return m
}

// patch reads the two forms of a patch.
func (r *reader) patch(o *object) (p Patch) {
	if n := o.take("patchStrategicMerge"); n != nil {
		if n.Kind != Map {
			r.wrongType(n, "a map")
		} else {
			p.Merge = n
		}
	}
	p.JSON = o.optional("patchesJson6902")
	r.checkPatch(p)
	return p
}

func (r *reader) mutateTarget(n *Node) *MutateTarget {
	o := r.object(n, "a target")
	t := &MutateTarget{Pos: n.Pos, APIVersion: o.needText("apiVersion"), Kind: o.needText("kind")}
	t.Namespace, t.Name = o.text("namespace"), o.text("name")
	o.str("uid")
	t.SelectorNode = o.take("selector")
	t.Selector = r.selector(t.SelectorNode)
	t.Context = each(o.list("context"), r.contextEntry)
	t.Preconditions = r.conditions(o.take("preconditions"))
	o.end()
	return t
}

func (r *reader) mutateForEach(n *Node) *MutateForEach {
	o := r.object(n, "a foreach entry")
	f := &MutateForEach{Pos: n.Pos, List: o.needText("list")}
	f.Order = Order(o.choice("order", string(Ascending), string(Descending)))
	f.Context = each(o.list("context"), r.contextEntry)
	f.Preconditions = r.conditions(o.take("preconditions"))
	f.Patch = r.patch(o)
	f.ForEach = each(o.list("foreach"), r.mutateForEach)
	o.one("foreach", "patchStrategicMerge", "patchesJson6902")
	o.end()
	return f
}

// patchesJSON tells whether there is a JSON patch in the body. Its paths are not
// those of a controller.
func (m *Mutate) patchesJSON() bool {
	return m != nil && (m.JSON != nil && m.JSON.Value != "" || loopsPatchJSON(m.ForEach))
}

func loopsPatchJSON(loops []*MutateForEach) bool {
	for _, f := range loops {
		if f.JSON != nil && f.JSON.Value != "" || loopsPatchJSON(f.ForEach) {
			return true
		}
	}
	return false
}
