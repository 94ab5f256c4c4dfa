package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A release is the Kubernetes release that the output is for.
type release cel.Release

// Has tells whether a new policy may call a CEL function on the release.
func (r release) Has(function string) bool {
	return cel.Release(r).Supports(cel.FirstRelease(function, 0))
}

// A scope says where objects of a kind live.
type scope int

const (
	anyScope scope = iota
	namespaced
	cluster
)

// A target is one kind of object that a rule is lowered for: a resource, or all
// that a wildcard stands for.
type target struct {
	gvk schema.GVK // of the object's body; for a subresource its own
	// group, version and resource are as a resource rule names them.
	group, version, resource string
	parent                   schema.GVK // the top-level kind; gvk where there is no subresource
	sub                      string
	scope                    scope
	typ                      *schema.Type
	// kindWild is a wildcard for the kind that no resource rule can say.
	kindWild string
	guessed  bool
}

func (t target) key() string {
	return strings.Join([]string{t.group, t.version, t.resource, t.kindWild}, "/")
}

// targets are the resources that a kind selector matches.
func (l *lowering) targets(k policy.Text) []target {
	l.setPos(k.Pos)
	sel, ok := policy.ParseKind(k.Value)
	if !ok {
		return nil
	}
	if scalar.IsWild(sel.Kind) {
		return l.wildTargets(sel)
	}
	var out []target
	for _, r := range l.opts.Schemas.Resources(sel.Group, sel.Version, sel.Kind) {
		if r.Guessed {
			l.noteGuess(sel, r)
		}
		if !r.Guessed && r.Group != "" && versionIsWild(k.Value, sel) {
			r.Version = sel.Version
		}
		out = append(out, l.resourceTargets(r, sel.Subresource)...)
	}
	return out
}

// versionIsWild tells that a selector says itself that any version will do, also
// one that no schema knows. One that names no version takes those that are known:
// the API server converts the others to them. (The core group has only v1.)
func versionIsWild(written string, sel policy.KindSelector) bool {
	first, _, more := strings.Cut(written, "/")
	return more && first != sel.Kind && scalar.IsWild(sel.Version)
}

func (l *lowering) noteGuess(sel policy.KindSelector, r schema.Resource) {
	l.note(diag.GuessedResource, "the kind %s is not known; its resource is taken to be %s. Give its definition with --crds to be sure", sel.Kind, r.Plural)
}

// resourceTargets is a resource with the subresources that a selector names.
func (l *lowering) resourceTargets(r schema.Resource, sub string) []target {
	anyVersion := scalar.IsWild(r.Version) // whose fields no schema knows
	main := target{gvk: r.GVK, parent: r.GVK, group: orAny(r.Group, r.Guessed), version: orAny(r.Version, r.Guessed || anyVersion),
		resource: r.Plural, scope: cluster, typ: l.opts.Schemas.Type(r.GVK), guessed: r.Guessed || anyVersion}
	switch {
	case r.Guessed:
		main.scope = anyScope
	case r.Namespaced:
		main.scope = namespaced
	}
	isPod := r.GVK == schema.GVK{Version: "v1", Kind: "Pod"}
	var out []target
	if sub == "" || scalar.WildMatch(sub, "") {
		out = append(out, main)
	}
	if sub == "" {
		if isPod { // a Pod's ephemeral containers count as the Pod
			ephemeral := main
			ephemeral.resource, ephemeral.sub = "pods/ephemeralcontainers", "ephemeralcontainers"
			out = append(out, ephemeral)
		}
		return out
	}
	known := false
	for _, s := range r.Subresources {
		if scalar.WildMatch(sub, s.Name) {
			known = true
			out = append(out, subTarget(main, s.Name, s.GVK, l.opts.Schemas.Type(s.GVK)))
		}
	}
	if !known && !scalar.IsWild(sub) {
		out = append(out, subTarget(main, sub, schema.GVK{}, nil))
	}
	return out
}

func subTarget(main target, name string, gvk schema.GVK, typ *schema.Type) target {
	t := main
	t.resource, t.sub, t.gvk, t.typ = main.resource+"/"+name, name, gvk, typ
	return t
}

// orAny is a group or version for a resource rule, which has no wildcards but *.
func orAny(s string, guessed bool) string {
	if guessed && (s == "" || scalar.IsWild(s)) {
		return "*"
	}
	return s
}

// wildTargets is a selector whose kind is a wildcard: every resource, with the
// kind's wildcard as a condition.
func (l *lowering) wildTargets(sel policy.KindSelector) []target {
	if scalar.IsWild(sel.Group) && sel.Group != "*" || scalar.IsWild(sel.Version) && sel.Version != "*" {
		panic(l.unsupported("a kind whose group or version is a wildcard with letters"))
	}
	t := target{group: sel.Group, version: sel.Version, resource: "*"}
	if sel.Kind != "*" {
		t.kindWild = sel.Kind
	}
	switch sel.Subresource {
	case "":
		// ephemeral containers count as the Pod
		eph := t
		eph.group, eph.version, eph.resource, eph.sub = "", "v1", "pods/ephemeralcontainers", "ephemeralcontainers"
		eph.parent = schema.GVK{Version: "v1", Kind: "Pod"}
		if (sel.Group == "*" || sel.Group == "") && scalar.WildMatch(sel.Version, "v1") && scalar.WildMatch(sel.Kind, "Pod") {
			eph.kindWild = ""
			return []target{t, eph}
		}
	case "*":
		t.resource, t.sub = "*/*", "*"
	default:
		if scalar.IsWild(sel.Subresource) {
			panic(l.unsupported("a subresource that is a wildcard with letters"))
		}
		t.resource, t.sub = "*/"+sel.Subresource, sel.Subresource
	}
	return []target{t}
}

// ops are the operations that can happen to the target.
func (t target) ops() []operation {
	switch {
	case t.sub == "":
		return []operation{opCreate, opUpdate, opDelete}
	case t.sub == "ephemeralcontainers": // never created, but one rule with the pods reads better
		return []operation{opCreate, opUpdate}
	case t.sub == "status", t.sub == "scale", t.sub == "resize", t.sub == "approval", t.sub == "finalize":
		return []operation{opUpdate}
	case t.sub == "binding" || t.sub == "eviction" || t.sub == "token":
		return []operation{opCreate}
	case t.connects():
		return []operation{opConnect}
	}
	return []operation{opCreate, opUpdate, opDelete, opConnect}
}

// connects tells that the target is a connection to a pod, a service or a node,
// which is opened and nothing else.
func (t target) connects() bool {
	switch t.sub {
	case "exec", "attach", "portforward", "proxy":
		return t.parent.Group == "" && t.parent.Version == "v1" && !t.guessed
	}
	return false
}

// objectType is the type of the object: its schema, or what every object has.
func (l *lowering) objectType(t target) *schema.Type {
	required := func(name string, typ *schema.Type) *schema.Field {
		return &schema.Field{Name: name, Type: typ, Required: true}
	}
	out := schema.Type{Kind: schema.Object, Open: true, Fields: map[string]*schema.Field{}}
	if t.typ != nil && t.typ.Kind == schema.Object {
		out = *t.typ
		fields := make(map[string]*schema.Field, len(t.typ.Fields))
		for k, f := range t.typ.Fields {
			fields[k] = f
		}
		out.Fields = fields
	}
	if t.hasMetadata() {
		out.Fields["metadata"] = required("metadata", l.objectMeta())
	}
	out.Fields["apiVersion"] = required("apiVersion", stringType())
	out.Fields["kind"] = required("kind", stringType())
	return &out
}

// hasMetadata tells that the body is an object with metadata for sure, as the
// options of a connection are not.
func (t target) hasMetadata() bool {
	if t.sub == "" || t.sub == "ephemeralcontainers" || t.sub == "status" {
		return true
	}
	return t.typ != nil && t.typ.Fields["metadata"] != nil
}

// refuseMetadata: Kyverno holds a pattern against options to which it has added
// the metadata of an object in the request's namespace.
func (l *lowering) refuseMetadata(p *policy.Node) {
	if l.element != nil || l.target.hasMetadata() {
		return
	}
	for _, f := range p.Fields {
		if _, key := splitAnchor(f.Key); key == "metadata" {
			l.setPos(f.Pos)
			panic(l.unsupported("a pattern about the metadata of what may have none"))
		}
	}
}

// objectMeta is ObjectMeta with the name, which every object has when policies see it.
func (l *lowering) objectMeta() *schema.Type { return l.opts.Schemas.ObjectMeta() }
