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
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/vap"
)

// LowerPolicy is what becomes of a MutatingPolicy, which is one rule with the name of the
// policy: a MutatingAdmissionPolicy where these are asked for, or else the webhook runs it.
func LowerPolicy(p *policy.Policy, o *api.Options) api.RuleResult {
	res := api.RuleResult{Policy: p, Target: api.Native}
	m := p.Mutating
	for _, f := range celrule.FormsOf(m.Autogen, match.ConstraintsOf(m.MatchConstraints)) { // as the webhook has them
		res.Forms = append(res.Forms, api.Form{Name: f.Prefixed(p.Name)})
	}
	switch {
	case p.Invalid: // its error has been told where it was read
		res.Target = api.Unsupported
	case m.ChangesOthers() && !m.Existing:
		res.Refuse(diag.Warnf(p.Pos, diag.ChangesExisting, "the policy is about objects that are there already (targetMatchConstraints), and changes none: set evaluation.mutateExisting.enabled, or remove targetMatchConstraints"))
	case m.AdmissionOff && !m.Existing:
		res.Refuse(diag.Warnf(p.Pos, diag.BackgroundOnly, "the policy is for background scans only (evaluation.admission.enabled: false); nothing runs it at admission"))
	case !o.Mutations || m.Existing: // one policy is carried out by one side
		why := diag.Warnf(p.Pos, diag.OtherRule, "a %s has no native form; the webhook will run this policy", p.Kind)
		if m.Existing {
			why = diag.Warnf(p.Pos, diag.OtherRule, "a %s that changes existing objects has no native form; the controller will run this policy in the background", p.Kind)
		}
		if broken := brokenCEL(m, o); broken != nil {
			why = *broken
		}
		res.Refuse(why)
	default:
		drafts, notes, why := mutatingDrafts(p, o)
		if why != nil {
			res.Refuse(*why)
			break
		}
		res.Found, res.Mutating = notes.Sort(), drafts
		res.Codes = api.CodesOf(res.Found)
	}
	return res
}

// brokenCEL is the error of the first expression that compiles nowhere, as far as its text
// tells: Kyverno has functions and types of its own.
func brokenCEL(m *policy.Mutating, o *api.Options) *diag.Diagnostic {
	expressions := slices.Concat(m.MatchConditions, m.AuditAnnotations, m.TargetConditions)
	if m.TargetExpression != "" {
		expressions = append(expressions, policy.CEL{Pos: m.Targets.Pos, Expression: m.TargetExpression})
	}
	for _, one := range m.Mutations {
		expressions = append(expressions, policy.CEL{Pos: one.Pos, Expression: one.Expression})
	}
	var before []vap.Variable
	for _, v := range m.Variables {
		expr, why := celrule.ReadCEL(v.Expression, v.Pos, o.Release)
		if why == nil {
			why = celrule.Undeclared(expr, before, v.Pos)
		}
		if why != nil && why.Code == diag.BadExpression {
			return why
		}
		before = append(before, vap.Variable{Name: v.Name})
	}
	for _, one := range expressions {
		if _, why := celrule.ReadCEL(one.Expression, one.Pos, o.Release); why != nil && why.Code == diag.BadExpression {
			return why
		}
	}
	return nil
}

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

// What a MutatingPolicy writes, and what an API server makes of it.

// putsParts tells that a mutation may write a part of an object of some matched kind. Objects of
// custom kinds are no Go structs.
func (w *mutatingWalk) putsParts(v cel.Value) bool {
	v = vap.Inlined(v, w.Draft.Variables)
	namespace := native.ShapeOf(w.Opts.Schemas.Type(schema.GVK{Version: "v1", Kind: "Namespace"}))
	return !w.ofEachKind(func(k matchedKind) bool {
		if w.Opts.Schemas.Custom(k.gvk) {
			return true
		}
		shape := native.ShapeOf(k.typ)
		c := cel.Checker{Roots: []cel.Root{
			{Name: "object", Shape: shape}, {Name: "oldObject", Shape: shape}, {Name: "namespaceObject", Shape: namespace},
			{Name: "request", Shape: native.ShapeOf(requestType())},
		}}
		return !c.Puts(v, native.IsShape(func(t *schema.Type) bool {
			return t.Kind != schema.Object && t.Kind != schema.List && t.Kind != schema.Map && t.Kind != schema.Any
		}))
	})
}

// requestType has what is known of a request.
func requestType() *schema.Type {
	object := func(names ...string) *schema.Type {
		out := &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{}}
		for _, name := range names {
			out.Fields[name] = &schema.Field{Name: name, Type: read.StringType()}
		}
		return out
	}
	out := object("uid", "subResource", "requestSubResource", "name", "namespace", "operation")
	for name, t := range map[string]*schema.Type{
		"kind": object("group", "version", "kind"), "resource": object("group", "version", "resource"), "userInfo": object("username", "uid"),
		"requestKind": object("group", "version", "kind"), "requestResource": object("group", "version", "resource"), "dryRun": {Kind: schema.Bool},
	} {
		out.Fields[name] = &schema.Field{Name: name, Type: t}
	}
	return out
}

// isMadeKey tells of a path to a label or an annotation, whatever its key.
func isMadeKey(path cel.Value) bool {
	return strings.HasPrefix(path.Prefix(), "/metadata/labels/") || strings.HasPrefix(path.Prefix(), "/metadata/annotations/")
}

// typeAt is the type at a path; false where there is none.
func typeAt(t *schema.Type, steps []string) (*schema.Type, bool) {
	for _, step := range steps {
		if t == nil || t.Kind == schema.Any {
			return nil, true
		}
		switch t.Kind {
		case schema.Object:
			f, ok := t.Fields[step]
			if !ok {
				return nil, t.Open
			}
			t = f.Type
		case schema.Map:
			t = t.Elem
		case schema.List:
			if step != cel.AnyStep && step != "-" && strings.Trim(step, "0123456789") != "" {
				return nil, false
			}
			t = t.Elem
		default:
			return nil, false
		}
	}
	return t, true
}

// fits tells that the API server decodes a value at a place of a type, as far as it is known.
func fits(v cel.Value, t *schema.Type) bool {
	if t == nil || t.Kind == schema.Any {
		return true
	}
	how, names, parts := v.Made()
	each := func(t *schema.Type) bool {
		return !slices.ContainsFunc(parts, func(part cel.Value) bool { return !fits(part, t) })
	}
	switch how {
	case cel.MadeChoice:
		return each(t)
	case cel.MadeList, cel.MadeEach:
		return t.Kind == schema.List && each(t.Elem)
	case cel.MadeMap:
		if t.Kind == schema.Map {
			return each(t.Elem)
		}
		for i, name := range names {
			f, ok := t.Fields[name]
			if t.Kind != schema.Object || !ok && !t.Open || ok && !fits(parts[i], f.Type) {
				return false
			}
		}
		return t.Kind == schema.Object
	}
	switch v.LiteralType() {
	case "string":
		return t.Kind == schema.String || t.Kind == schema.IntOrString
	case "int":
		return t.Kind == schema.Int || t.Kind == schema.Number || t.Kind == schema.IntOrString || read.IsQuantityType(t)
	case "double":
		return t.Kind == schema.Number || read.IsQuantityType(t)
	case "bool":
		return t.Kind == schema.Bool
	}
	return true
}
