package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// What is known of a MutatingPolicy for each kind that it matches.

// ofEachKind tells that something is so of each matched kind.
func (w *mutatingWalk) ofEachKind(is func(matchedKind) bool) bool {
	return !slices.ContainsFunc(w.Form.Constraints.Rules, func(r vap.ResourceRule) bool {
		return slices.ContainsFunc(w.kindsOf(r), func(k matchedKind) bool { return !is(k) })
	})
}

// onPaths is a JSON patch of those of the matched kinds that have what it patches:
//
//	[JSONPatch{op: "add", path: "/spec/nodeSelector", …}]
//	object.kind in ["Deployment"] ? [] : [JSONPatch{op: "add", path: "/spec/nodeSelector", …}]
//
// The API server refuses a patch of a path that a kind does not have, and drops what a webhook
// adds there. What is asked of a field that the kind does not have, or of its name, is known of
// each kind.
func (w *mutatingWalk) onPaths(i int, at diag.Pos, v cel.Value) cel.Value {
	inlined := vap.Inlined(v, w.Draft.Variables)
	if len(inlined.Structs("JSONPatch")) == 0 {
		return v
	}
	var having, lacking, lacked []string
	for _, r := range w.Form.Constraints.Rules {
		for _, k := range w.kindsOf(r) {
			one := ofKind(inlined, k)
			missing, unfit := k.lacks(one)
			switch {
			case k.name != "" && k.errs(one) || missing == nil && unfit == "":
				having = append(having, k.name)
				continue
			case unfit != "":
				w.cannot(at, "a JSON patch whose "+unfit)
				return v
			case k.name == "" || !k.drops(one) || slices.ContainsFunc(missing, func(path string) bool { return w.readBehind(i, path) }):
				w.cannot(at, "a JSON patch whose path "+strconv.Quote(missing[0])+" not all kinds have that the policy matches,")
				return v
			}
			lacking, lacked = append(lacking, k.name), append(lacked, missing...)
		}
	}
	slices.Sort(lacking)
	lacking = slices.Compact(lacking)
	switch {
	case lacking == nil:
		return v
	case having == nil && w.Form.Expansion != "":
		return noPatch()
	case having == nil:
		w.cannot(at, "a JSON patch whose path "+strconv.Quote(lacked[0])+" no kind has that the policy matches,")
		return v
	case slices.ContainsFunc(lacking, func(name string) bool { return slices.Contains(having, name) }):
		w.cannot(at, "a JSON patch of one of two kinds of the same name,")
		return v
	}
	w.Note(at, diag.LeftOut, "%s: there is no %s, so nothing is added; the API server drops what Kyverno adds", strings.Join(lacking, ", "), lacked[0])
	return cel.Cond(cel.Ident("object").Field("kind").In(cel.Strings(lacking...)), cel.List(), v)
}

// noPatch is a JSON patch without an operation, of the type that the API server wants.
func noPatch() cel.Value {
	never := cel.Struct("JSONPatch", cel.StructField{Name: "op", Value: cel.String("test")}, cel.StructField{Name: "path", Value: cel.String("")})
	return cel.List(never).Macro(cel.MacroFilter, cel.Ident("p"), cel.False().Value)
}

// lacks are the paths of a patch that the kind does not have, or what of the patch the API
// server may not decode.
func (k matchedKind) lacks(patch cel.Value) (missing []string, unfit string) {
	for _, one := range patch.Structs("JSONPatch") {
		path, op := one["path"], one["op"]
		switch {
		case path.IsZero():
			return nil, "path is missing"
		case !op.IsText() || cel.Equal(op, cel.String("copy")) || cel.Equal(op, cel.String("move")):
			return nil, "operation is another one than add, replace, remove or test,"
		case isMadeKey(path) && (one["value"].IsZero() || fits(one["value"], read.StringType())):
			continue
		}
		steps, ok := path.Pointer()
		if !ok {
			return nil, "path is made at run time, or is the whole object: " + path.String() + ","
		}
		t, ok := typeAt(k.typ, steps)
		switch {
		case !ok:
			missing = append(missing, "/"+strings.Join(steps, "/"))
		case !one["value"].IsZero() && !fits(one["value"], t):
			return nil, "value is none for " + strconv.Quote("/"+strings.Join(steps, "/")) + ", which the API server decodes strictly,"
		}
	}
	return missing, unfit
}

// errs tells of a patch that is an error for all objects of the kind, as it is in Kyverno.
func (k matchedKind) errs(patch cel.Value) bool {
	path, ok := patch.ReadsFirst()
	return ok && path[0] == "object" && !k.has(path[1:])
}

// drops tells that all of a patch is added to objects of the kind, whatever they are, at paths
// that the kind does not have.
func (k matchedKind) drops(patch cel.Value) bool {
	for _, path := range patch.FieldsOf("JSONPatch", "path") {
		steps, ok := path.Pointer()
		if !ok || !path.IsText() || k.has(steps) || !isWritten(k.typ, steps[:len(steps)-1]) {
			return false
		}
	}
	return celrule.Harmless(patch) && !slices.ContainsFunc(patch.FieldsOf("JSONPatch", "op"), func(op cel.Value) bool { return !cel.Equal(op, cel.String("add")) })
}

// readBehind tells that a mutation behind the i-th one may read a path of the object, in which
// Kyverno finds what the i-th has added.
func (w *mutatingWalk) readBehind(i int, path string) bool {
	steps := strings.Split(path, "/")[1:]
	composed := byName(w.Draft.Variables)
	return slices.ContainsFunc(w.of.Mutations[i+1:], func(m policy.Mutation) bool {
		if mutating.PatchType(m.PatchType) != mutating.JSONPatch {
			return true
		}
		read := w.Read(m.Expression, m.Pos).Decides(map[string][]string{"object": {}}, composed)
		return slices.ContainsFunc(read, func(of []string) bool {
			n := min(len(of), len(steps))
			return slices.Equal(of[:n], steps[:n])
		})
	})
}

// A matchedKind is a kind that a rule is about.
type matchedKind struct {
	name string // "" where it is not known
	gvk  schema.GVK
	typ  *schema.Type
}

// kindsOf are what a rule is about.
func (w *mutatingWalk) kindsOf(r vap.ResourceRule) (out []matchedKind) {
	for _, group := range r.Groups {
		for _, version := range r.Versions {
			for _, resource := range r.Resources {
				known, ok := w.Opts.Schemas.ByResource(group, version, resource)
				switch {
				case strings.HasSuffix(resource, "/scale"): // an object of another kind
					out = append(out, matchedKind{"", schema.GVK{}, w.anyKind()})
				case ok && !known.Guessed && known.Project == nil:
					out = append(out, matchedKind{known.Kind, known.GVK, w.Opts.Schemas.Type(known.GVK)})
				case slices.Contains([]string{group, version}, "*") || strings.ContainsAny(resource, "*/"):
					out = append(out, matchedKind{"", schema.GVK{}, w.anyKind()}) // any kind
				}
			}
		}
	}
	return out
}

// anyKind is what is known of every object.
func (w *mutatingWalk) anyKind() *schema.Type {
	return &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{
		"metadata": {Name: "metadata", Type: w.Opts.Schemas.ObjectMeta(), Required: true},
	}}
}

// ofKind is an expression of which is known what kind the object has.
func ofKind(v cel.Value, k matchedKind) cel.Value {
	if k.name == "" || k.typ == nil {
		return v
	}
	v = v.SubstitutePath([]string{"object", "kind"}, cel.String(k.name))
	v = v.Rewrite(func(x cel.Value) cel.Value {
		path, ok := x.Asked()
		switch {
		case !ok || path[0] != "object":
		case !k.has(path[1:]):
			return cel.False().Value
		case isWritten(k.typ, path[1:]):
			return cel.True().Value
		}
		return x
	})
	return cel.Simplify(cel.Simplify(v).Taken())
}

// isWritten tells of a path that every object of a type has, valid or not, since its Go type
// writes it.
func isWritten(t *schema.Type, path []string) bool {
	for _, name := range path {
		if t == nil || t.Kind != schema.Object || t.Fields[name] == nil || !t.Fields[name].Required || !read.IsStructural(name) {
			return false
		}
		t = t.Fields[name].Type
	}
	return true
}

// has tells that objects of the kind may have something at a path.
func (k matchedKind) has(steps []string) bool {
	_, ok := typeAt(k.typ, steps)
	return ok
}
