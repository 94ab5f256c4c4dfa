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
	r.checkNames(name, ns)
	m.end()
	return meta
}

// checkNames refuses names that no cluster takes. They become names of objects and
// files, so nothing else may get past this place.
func (r *reader) checkNames(name, namespace Text) {
	if name.Value != "" && !IsSubdomain(name.Value) {
		r.fail(name.Pos, diag.OutOfRange, "name cannot be %q; no cluster takes it: it has to be lower-case letters, digits, '-' and '.', "+
			"with a letter or digit at both ends and beside each '.'; rename the object", name.Value)
	}
	if namespace.Value != "" && !IsLabel(namespace.Value) {
		r.fail(namespace.Pos, diag.OutOfRange, "namespace cannot be %q; no cluster takes it: it has to be at most 63 lower-case letters, digits and '-', "+
			"with a letter or digit at both ends; correct it", namespace.Value)
	}
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
