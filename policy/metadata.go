package policy

import "github.com/kvap/kvap/diag"

// metadata reads the object's metadata into the policy-like parts of it.
type metadata struct {
	pos             diag.Pos
	name, namespace string
	namespacePos    diag.Pos
	labels          map[string]string
	annotations     []Pair
}

func (r *reader) metadata(o *object) metadata {
	n := o.require("metadata")
	if n == nil {
		return metadata{pos: o.node.Pos}
	}
	m := r.object(n, "metadata")
	meta := metadata{pos: n.Pos, labels: pairMap(m.pairs("labels")), annotations: m.pairs("annotations")}
	// The API server's own fields, and generateName, which a policy that is
	// referred to by its name cannot use.
	m.allow("generateName", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences", "finalizers", "managedFields", "clusterName")
	name := m.needText("name")
	meta.name = name.Value
	if name.Value != "" {
		meta.pos = name.Pos
	}
	ns := m.text("namespace")
	meta.namespace, meta.namespacePos = ns.Value, ns.Pos
	m.end()
	return meta
}

func pairMap(pairs []Pair) map[string]string {
	if pairs == nil {
		return nil
	}
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		m[p.Key] = p.Value
	}
	return m
}
