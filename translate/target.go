package translate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A release is the Kubernetes release that the output is for.
type release cel.Release

// Has tells whether a new policy may call a CEL function on the release.
func (r release) Has(function string) bool {
	return cel.Release(r).Supports(cel.FirstRelease(function, 0))
}

// targets are the resources that a kind selector matches.
func (l *lowering) targets(k policy.Text) []native.Target {
	l.setPos(k.Pos)
	sel, ok := policy.ParseKind(k.Value)
	if !ok {
		return nil
	}
	if scalar.IsWild(sel.Kind) {
		return l.wildTargets(sel)
	}
	var out []native.Target
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

// noteGuess tells of a kind whose resource, or whose fields, may not be what they are
// taken for.
func (l *lowering) noteGuess(sel policy.KindSelector, r schema.Resource) {
	if r.Project != nil {
		l.note(diag.PublishedKind, "the fields of a kind %s, of whatever group and version, are taken to have the types that they have in %s; write group and version, or give its definition with --crds",
			sel.Kind, native.Published(l.opts.Schemas, r.GVK))
		return
	}
	l.note(diag.GuessedResource, "%s; its resource is taken to be %s, and where that is wrong the rule enforces nothing; give its definition with --crds", l.whyGuessed(sel), r.Plural)
}

// whyGuessed says why a kind is not known, and what may be meant.
func (l *lowering) whyGuessed(sel policy.KindSelector) string {
	set := l.opts.Schemas
	other := set.Resources(sel.Group, "*", sel.Kind)
	if other[0].Guessed {
		other = set.Published(sel.Group, "*", sel.Kind)
	}
	if len(other) > 0 {
		return "the kind " + sel.Kind + " is not known in version " + sel.Version + ", but in " + apiVersions(other)
	}
	var known []string
	for _, r := range set.Resources("*", "*", "*") {
		known = append(known, r.Kind)
		for _, sub := range r.Subresources {
			if sub.GVK.Kind == sel.Kind {
				return "no request is about a kind " + sel.Kind + ", which is what requests for " + r.Plural + "/" + sub.Name + " have in them; write " + r.Kind + "/" + sub.Name
			}
		}
	}
	slices.Sort(known)
	if near := diag.Nearest(sel.Kind, slices.Compact(known)); near != "" {
		return "the kind " + sel.Kind + " is not known (did you mean " + near + "?)"
	}
	return "the kind " + sel.Kind + " is not known"
}

func apiVersions(resources []schema.Resource) string {
	var names []string
	for _, r := range resources {
		names = append(names, r.APIVersion())
	}
	return strings.Join(names, " and ")
}

// resourceTargets is a resource with the subresources that a selector names.
func (l *lowering) resourceTargets(r schema.Resource, sub string) []native.Target {
	anyVersion := scalar.IsWild(r.Version) // whose fields no schema knows
	main := native.Target{GVK: r.GVK, Parent: r.GVK, Group: orAny(r.Group, r.Guessed), Version: orAny(r.Version, r.Guessed || anyVersion),
		Resource: r.Plural, Scope: native.Cluster, Type: l.opts.Schemas.Type(r.GVK), Guessed: r.Guessed || anyVersion}
	switch {
	case r.Guessed:
		main.Scope = native.AnyScope
	case r.Namespaced:
		main.Scope = native.Namespaced
	}
	isPod := r.GVK == schema.GVK{Version: "v1", Kind: "Pod"}
	var out []native.Target
	if sub == "" || scalar.WildMatch(sub, "") {
		out = append(out, main)
	}
	if sub == "" {
		if isPod { // a Pod's ephemeral containers count as the Pod
			ephemeral := main
			ephemeral.Resource, ephemeral.Subresource = "pods/ephemeralcontainers", "ephemeralcontainers"
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

func subTarget(main native.Target, name string, gvk schema.GVK, typ *schema.Type) native.Target {
	t := main
	t.Resource, t.Subresource, t.GVK, t.Type = main.Resource+"/"+name, name, gvk, typ
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
func (l *lowering) wildTargets(sel policy.KindSelector) []native.Target {
	if scalar.IsWild(sel.Group) && sel.Group != "*" || scalar.IsWild(sel.Version) && sel.Version != "*" {
		panic(l.unsupported("a kind whose group or version is a wildcard with letters"))
	}
	t := native.Target{Group: sel.Group, Version: sel.Version, Resource: "*"}
	if sel.Kind != "*" {
		t.KindWild = sel.Kind
	}
	switch sel.Subresource {
	case "":
		// ephemeral containers count as the Pod
		eph := t
		eph.Group, eph.Version, eph.Resource, eph.Subresource = "", "v1", "pods/ephemeralcontainers", "ephemeralcontainers"
		eph.Parent = schema.GVK{Version: "v1", Kind: "Pod"}
		if (sel.Group == "*" || sel.Group == "") && scalar.WildMatch(sel.Version, "v1") && scalar.WildMatch(sel.Kind, "Pod") {
			eph.KindWild = ""
			return []native.Target{t, eph}
		}
	case "*":
		t.Resource, t.Subresource = "*/*", "*"
	default:
		if scalar.IsWild(sel.Subresource) {
			panic(l.unsupported("a subresource that is a wildcard with letters"))
		}
		t.Resource, t.Subresource = "*/"+sel.Subresource, sel.Subresource
	}
	return []native.Target{t}
}

// objectType is the type of the object: its schema, or what every object has.
func (l *lowering) objectType(t native.Target) *schema.Type {
	required := func(name string, typ *schema.Type) *schema.Field {
		return &schema.Field{Name: name, Type: typ, Required: true}
	}
	out := schema.Type{Kind: schema.Object, Open: true, Fields: map[string]*schema.Field{}}
	if t.Type != nil && t.Type.Kind == schema.Object {
		out = *t.Type
		fields := make(map[string]*schema.Field, len(t.Type.Fields))
		for k, f := range t.Type.Fields {
			fields[k] = f
		}
		out.Fields = fields
	}
	if t.HasMetadata() {
		out.Fields["metadata"] = required("metadata", l.objectMeta())
		out.Fields["metadata"].Required = !l.ofTemplate
	}
	out.Fields["apiVersion"] = required("apiVersion", stringType())
	out.Fields["kind"] = required("kind", stringType())
	if l.rule.Mutate != nil { // an object is changed before it is validated
		return unvalidated(&out, map[*schema.Type]*schema.Type{})
	}
	return &out
}

// refuseMetadata: Kyverno holds a pattern against options to which it has added
// the metadata of an object in the request's namespace.
func (l *lowering) refuseMetadata(p *policy.Node) {
	if l.element != nil || l.target.HasMetadata() {
		return
	}
	for _, f := range p.Fields {
		if _, key := anchor.Split(f.Key); key == "metadata" {
			l.setPos(f.Pos)
			panic(l.unsupported("a pattern about the metadata of what may have none"))
		}
	}
}

// objectMeta is ObjectMeta with the name, which every object has when policies see it.
func (l *lowering) objectMeta() *schema.Type { return l.opts.Schemas.ObjectMeta() }
