package read

import (
	"maps"
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

// A Release is the Kubernetes release that the output is for.
type Release cel.Release

// Has tells whether a new policy may call a CEL function on the release.
func (r Release) Has(function string) bool {
	return cel.Release(r).Supports(cel.FirstRelease(function, 0))
}

// Targets are the resources that a kind selector matches.
func Targets(l *Lowering, k policy.Text) []native.Target {
	l.SetPos(k.Pos)
	sel, ok := policy.ParseKind(k.Value)
	if !ok {
		return nil
	}
	if scalar.IsWild(sel.Kind) {
		return wildTargets(l, sel)
	}
	var out []native.Target
	for _, r := range l.Opts.Schemas.Resources(sel.Group, sel.Version, sel.Kind) {
		if first, _, _ := strings.Cut(k.Value, "/"); l.Opts.AnyGroup || first != sel.Kind { // v1/Kind may be of the core group
			r.Published = nil
		}
		if r.Guessed {
			noteGuess(l, sel, r)
		}
		if _, ok := optionsOf(l.Opts.Schemas, sel); ok && r.Guessed { // which no request is about
			continue
		}
		if !r.Guessed && r.Group != "" && versionIsWild(k.Value, sel) {
			r.Version = sel.Version
		}
		out = append(out, resourceTargets(l, r, sel.Subresource)...)
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
func noteGuess(l *Lowering, sel policy.KindSelector, r schema.Resource) {
	published := native.Published(l.Opts.Schemas, r.GVK)
	switch {
	case len(r.Published) > 0:
		l.Note(diag.PublishedKind, "the kind %s is taken to be that of %s, as in %s, and one of another group or version is not judged; write group and version, give its definition with --crds, or match each with --any-group",
			sel.Kind, groupVersions(r.Published), published)
	case r.Project != nil:
		l.Note(diag.PublishedKind, "the fields of a kind %s, of whatever group and version, are taken to have the types that they have in %s; write group and version, or give its definition with --crds",
			sel.Kind, published)
	case l.Notes != nil:
		l.Guesses = append(l.Guesses, guess(l, sel, r))
	}
}

// A Guess is a kind that no schema knows.
type Guess struct {
	Pos      diag.Pos
	Why      string // it is not known, and what may be meant
	Resource string // what it is taken for; "" where nothing is of such a kind
}

// Guessed is what there is to tell of the kinds of a rule that no schema knows; false where there
// are none.
func Guessed(l *Lowering) (d diag.Diagnostic, ok bool) {
	if len(l.Guesses) == 0 {
		return d, false
	}
	var why, taken []string
	for _, g := range l.Guesses {
		if !slices.Contains(why, g.Why) {
			why = append(why, g.Why)
		}
		if g.Resource != "" && !slices.Contains(taken, g.Resource) {
			taken = append(taken, g.Resource)
		}
	}
	text := strings.Join(why, "; ")
	switch {
	case len(taken) == 1:
		text += "; its resource is taken to be " + taken[0] + ", and where that is wrong the rule enforces nothing; give its definition with --crds"
	case len(taken) > 1:
		text += "; their resources are taken to be " + strings.Join(taken, ", ") + ", and where one is wrong the rule enforces nothing of it; give the definitions with --crds"
	}
	return diag.Warnf(l.Guesses[0].Pos, diag.GuessedResource, "%s", text), true
}

// guess says why a kind is not known, and what may be meant.
func guess(l *Lowering, sel policy.KindSelector, r schema.Resource) Guess {
	nothing := func(why string) Guess { return Guess{Pos: l.Pos, Why: why} }
	set := l.Opts.Schemas
	if sel.Subresource != strings.ToLower(sel.Subresource) { // as none is called
		written := sel.Kind + "/" + sel.Subresource
		return nothing(written + " is the subresource " + sel.Subresource + " of a kind " + sel.Kind + ", which no cluster has, so it matches nothing; with its group, the kind is written " +
			apiVersions(set.Resources(sel.Kind, "*", sel.Subresource)) + "/" + sel.Subresource)
	}
	if in, ok := optionsOf(set, sel); ok {
		return nothing("no request is about a kind " + sel.Kind + ", so the rule enforces nothing of it; write " + in)
	}
	if removed(sel) {
		why := schema.GVK{Group: sel.Group, Version: sel.Version, Kind: sel.Kind}.String() + " is served by no Kubernetes from " + releases() + ", so the rule enforces nothing of it"
		if now := set.Resources(sel.Group, "*", sel.Kind); len(now) > 0 && !now[0].Guessed {
			return nothing(why + "; write " + apiVersions(now))
		}
		return nothing(why + "; take it out of the match")
	}
	return Guess{Pos: l.Pos, Why: whyGuessed(l, sel), Resource: r.Plural}
}

// optionsOf is the subresource whose requests have options of a kind in them, as pods/exec has
// PodExecOptions.
func optionsOf(set *schema.Set, sel policy.KindSelector) (written string, ok bool) {
	for _, r := range set.Resources("*", "*", "*") {
		for _, sub := range r.Subresources {
			if sub.GVK.Kind == sel.Kind && strings.HasSuffix(sel.Kind, "Options") && scalar.WildMatch(sel.Group, sub.GVK.Group) && scalar.WildMatch(sel.Version, sub.GVK.Version) {
				return r.Kind + "/" + sub.Name, true
			}
		}
	}
	return "", false
}

// removed tells of a version of a group of Kubernetes itself that no release serves with the kind.
func removed(sel policy.KindSelector) bool {
	if scalar.IsWild(sel.Group) || scalar.IsWild(sel.Version) || sel.Version == "" {
		return false
	}
	builtin := sel.Group == "extensions"
	for _, release := range schema.Releases() {
		of, err := schema.Builtin(release)
		if err != nil {
			return false
		}
		for _, r := range of.Resources(sel.Group, "*", "*") {
			builtin = builtin || !r.Guessed
		}
		if r := of.Resources(sel.Group, sel.Version, sel.Kind); len(r) > 0 && !r[0].Guessed {
			return false
		}
	}
	return builtin
}

// releases are the first and the last release that is known.
func releases() string {
	all := schema.Releases()
	return all[0] + " to " + all[len(all)-1]
}

// whyGuessed says why a kind is not known, and what may be meant.
func whyGuessed(l *Lowering, sel policy.KindSelector) string {
	set := l.Opts.Schemas
	other := set.Resources(sel.Group, "*", sel.Kind)
	if other[0].Guessed {
		other = set.Published(sel.Group, "*", sel.Kind)
	}
	if len(other) > 0 {
		return "the kind " + sel.Kind + " is not known in version " + sel.Version + ", but in " + apiVersions(other)
	}
	if elsewhere := set.Resources("*", "*", sel.Kind); len(elsewhere) > 0 && !elsewhere[0].Guessed {
		return "the kind " + sel.Kind + " is not known in the group " + sel.Group + ", but in " + apiVersions(elsewhere)
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

// groupVersions are the versions of kinds as g.io/v1, v2, h.io/v1.
func groupVersions(kinds []schema.GVK) string {
	var words []string
	group := ""
	for _, k := range kinds {
		if k.Group == group {
			words = append(words, k.Version)
			continue
		}
		group = k.Group
		words = append(words, k.APIVersion())
	}
	return strings.Join(words, ", ")
}

func apiVersions(resources []schema.Resource) string {
	var names []string
	for _, r := range resources {
		names = append(names, r.APIVersion())
	}
	return strings.Join(names, " and ")
}

// resourceTargets is a resource with the subresources that a selector names.
func resourceTargets(l *Lowering, r schema.Resource, sub string) []native.Target {
	anyVersion := scalar.IsWild(r.Version) // whose fields no schema knows
	main := native.Target{GVK: r.GVK, Parent: r.GVK, Group: orAny(r.Group, r.Guessed), Version: orAny(r.Version, r.Guessed || anyVersion),
		Resource: r.Plural, Scope: native.Cluster, Type: l.Opts.Schemas.Type(r.GVK), Guessed: r.Guessed || anyVersion, Published: r.Published}
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
			out = append(out, subTarget(main, s.Name, s.GVK, l.Opts.Schemas.Type(s.GVK)))
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
func wildTargets(l *Lowering, sel policy.KindSelector) []native.Target {
	if scalar.IsWild(sel.Group) && sel.Group != "*" || scalar.IsWild(sel.Version) && sel.Version != "*" {
		panic(l.Unsupported("a kind whose group or version is a wildcard with letters"))
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
			panic(l.Unsupported("a subresource that is a wildcard with letters"))
		}
		t.Resource, t.Subresource = "*/"+sel.Subresource, sel.Subresource
	}
	return []native.Target{t}
}

// ObjectType is the type of the object: its schema, or what every object has.
func ObjectType(l *Lowering, t native.Target) *schema.Type {
	required := func(name string, typ *schema.Type) *schema.Field {
		return &schema.Field{Name: name, Type: typ, Required: true}
	}
	out := schema.Type{Kind: schema.Object, Open: true}
	fields := map[string]*schema.Field{}
	if t.Type != nil && t.Type.Kind == schema.Object {
		out = *t.Type
		maps.Copy(fields, t.Type.Fields)
	}
	out.Fields = fields
	if t.HasMetadata() {
		meta := l.Opts.Schemas.ObjectMeta()
		if !l.OfTemplate && t.HasName() {
			meta = Named(meta)
		}
		if !l.OfTemplate && l.AsStored() {
			meta = validatedMeta(meta, t)
		}
		out.Fields["metadata"] = required("metadata", meta)
		out.Fields["metadata"].Required = !l.OfTemplate
	}
	out.Fields["apiVersion"] = required("apiVersion", PlainText())
	out.Fields["kind"] = required("kind", PlainText())
	if !l.AsStored() { // an object is changed before it is validated
		return Unvalidated(&out)
	}
	return &out
}

// validatedMeta is the metadata of an object that was validated: its namespace is the name of
// one, and its own name has no wildcards, but where the API server takes any name.
func validatedMeta(meta *schema.Type, t native.Target) *schema.Type {
	if !t.HasName() {
		return meta // a review, of which nothing is validated, or the object of a subresource
	}
	out := *meta
	out.Fields = maps.Clone(meta.Fields)
	plain := func(name string) {
		f := *meta.Fields[name]
		f.Type = PlainText()
		out.Fields[name] = &f
	}
	plain("namespace")
	if t.Type != nil && !takesAnyName(t.GVK) {
		plain("name")
	}
	return &out
}

// takesAnyName reports whether objects of a kind may be called * too.
func takesAnyName(k schema.GVK) bool {
	return k.Kind == "Event" || slices.Contains([]string{"certificates.k8s.io", "rbac.authorization.k8s.io"}, k.Group)
}

// RefuseMetadata refuses a pattern of metadata where Kyverno holds it against options to which it has added
// the metadata of an object in the request's namespace.
func RefuseMetadata(l *Lowering, p *policy.Node) {
	if l.Element != nil || l.Target.HasMetadata() {
		return
	}
	for _, f := range p.Fields {
		if _, key := anchor.Split(f.Key); key == "metadata" {
			l.SetPos(f.Pos)
			panic(l.Unsupported("a pattern about the metadata of what may have none"))
		}
	}
}

// Named is metadata with a name.
func Named(meta *schema.Type) *schema.Type {
	out := *meta
	out.Fields = maps.Clone(meta.Fields)
	name := *meta.Fields["name"]
	name.Required = true
	out.Fields["name"] = &name
	return &out
}

// IsStructural tells of the fields that are structs in Go wherever a schema requires them.
func IsStructural(name string) bool {
	return slices.Contains([]string{"metadata", "spec", "template", "jobTemplate"}, name)
}

// Unvalidated is a type as it is before an object is validated, or after it was by another definition.
func Unvalidated(t *schema.Type) *schema.Type {
	return unvalidated(t, map[*schema.Type]*schema.Type{})
}

// unvalidated is a type as it is before an object is validated: what the Go type of a kind
// always writes is there, and what only validation asks for may not be.
func unvalidated(t *schema.Type, known map[*schema.Type]*schema.Type) *schema.Type {
	if t == nil {
		return nil
	}
	if out, ok := known[t]; ok {
		return out
	}
	out := *t
	known[t] = &out
	out.Elem = unvalidated(t.Elem, known)
	if t.Fields != nil {
		out.Fields = make(map[string]*schema.Field, len(t.Fields))
	}
	for name, f := range t.Fields {
		g := *f
		g.Type = unvalidated(f.Type, known)
		g.Required = f.Required && (f.Mandatory || IsStructural(name) || name == "apiVersion" || name == "kind")
		if f.Mandatory && !g.Required && g.Type.Kind == schema.List { // which Go writes as null when it is empty
			list := *g.Type
			list.Nullable, g.Type = true, &list
		}
		out.Fields[name] = &g
	}
	return &out
}
