package mutate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
	"github.com/kvap/kvap/vap"
)

// A selection is how the objects of a target are found.
type selection struct {
	find       cel.Value // with the trigger as object
	found      cel.Bool  // what must hold of the trigger besides
	conditions []vap.Condition
}

// changedBy is the kind of a target.
func changedBy(l *read.Lowering, t *policy.MutateTarget) native.Target {
	constant := func(of policy.Text, what string) string {
		l.SetPos(of.Pos)
		if query.HasVariables(&policy.Node{Kind: policy.String, Str: of.Value, Pos: of.Pos}) || scalar.IsWild(of.Value) {
			panic(l.Refuse(diag.NoKyvernoForm, "the %s of a target is a variable or has a wildcard, and a MutatingPolicy names it; write it out", what))
		}
		return of.Value
	}
	group, version, grouped := strings.Cut(constant(t.APIVersion, "apiVersion"), "/")
	if !grouped {
		group, version = "", group
	}
	kind, subresource, _ := strings.Cut(constant(t.Kind, "kind"), "/")
	if subresource != "" && subresource != "status" {
		panic(l.Refuse(diag.NoKyvernoForm, "the target %s is a subresource, which Kyverno writes as the kind itself; name that", t.Kind.Value))
	}
	gvk := schema.GVK{Group: group, Version: version, Kind: kind}
	known := l.Opts.Schemas.Resources(group, version, kind)
	if len(known) != 1 || known[0].Guessed {
		panic(l.Refuse(diag.NoKyvernoForm, "the kind %s of a target is not known; give its definition with --crds", gvk))
	}
	r := known[0]
	out := native.Target{GVK: r.GVK, Parent: r.GVK, Subresource: subresource, Group: r.Group, Version: r.Version, Resource: r.Plural, Scope: native.Cluster, Type: l.Opts.Schemas.Type(r.GVK)}
	if r.Namespaced {
		out.Scope = native.Namespaced
	}
	out.Body = read.ObjectType(l, out)
	if l.Opts.Schemas.Custom(r.GVK) || r.Project != nil { // its definition may have changed since an object was stored
		out.Body = read.Unvalidated(out.Body)
	}
	return out
}

// A chosen is the name or the namespace of targets. It is a text that all have, a wildcard, or a text
// that only the request knows, which may be either; empty, it says nothing.
type chosen struct {
	text   policy.Text
	any    bool
	exact  cel.Value // zero for none
	wild   string
	asked  bool // only the request knows it
	demand read.Demands
}

// chosenBy reads the name or the namespace of a target in the walk for the trigger.
func chosenBy(w *read.Lowering, t policy.Text) chosen {
	w.SetPos(t.Pos)
	out := chosen{text: t}
	j := query.Template(w, query.ParseTemplate(t.Value, t.Pos))
	if j.Form == read.LitForm {
		text, isText := j.Lit.(string)
		out.demand = j.Anyway()
		switch {
		case !isText:
			panic(w.Unsupported("a name or a namespace of targets that is no text"))
		case text == "":
			out.any = true
		case scalar.IsWild(text):
			out.wild, out.any = text, strings.Trim(text, "*") == ""
		default:
			out.exact = cel.String(text)
		}
		return out
	}
	if j.Form == read.ErrorForm {
		panic(w.Refuse(diag.NoKyvernoForm, "a variable in the name or the namespace of targets is never there"))
	}
	if read.KindOf(j.Typ()) != schema.String || mayBeNull(j) {
		panic(w.Refuse(diag.NoKyvernoForm, "a name or a namespace of targets may be null, or no text; give it a default that is a text, or the definition of the trigger's kind with --crds"))
	}
	v, d := query.Text(w, j)
	out.demand = d
	out.exact, out.asked = v, !isIdentity(w, j)
	return out
}

// isIdentity tells of a name or a namespace of the request, which is neither empty nor a wildcard. A
// Binding has those of the Pod, which the API server looks at first.
func isIdentity(w *read.Lowering, j read.Operand) bool {
	binds := w.Target.Resource == "pods/binding"
	if j.Form != read.PlaceForm || !read.IsPlain(j.V.Typ) && !binds {
		return false
	}
	for _, of := range []string{"object", "oldObject"} {
		meta := cel.Ident(of).Field("metadata")
		if cel.Equal(j.V.Expr, meta.Field("name")) || cel.Equal(j.V.Expr, meta.Field("namespace")) {
			return true
		}
	}
	return cel.Equal(j.V.Expr, cel.Ident("request").Field("namespace"))
}

// selectionOf is how the objects of a target are found: by an expression in the walk for the trigger,
// and by conditions in the one behind it.
func selectionOf(w, behind *read.Lowering, t *policy.MutateTarget, of native.Target) selection {
	namespace, name := chosenBy(w, t.Namespace), chosenBy(w, t.Name)
	w.SetPos(t.Pos)
	isNamed := !name.exact.IsZero() && !name.asked
	inOne := !namespace.exact.IsZero() && !namespace.asked
	switch {
	case w.Policy.Namespaced() && of.Scope == native.Cluster:
		panic(w.Refuse(diag.NoKyvernoForm, "the target %s is in no namespace, and a policy of a namespace changes what is in it alone", of.Parent.Kind))
	case w.Policy.Namespaced():
		namespace, inOne = chosen{exact: cel.String(w.Policy.Namespace), demand: namespace.demand}, true
	case of.Scope == native.Cluster && !namespace.any:
		panic(w.Refuse(diag.NoKyvernoForm, "the target %s is in no namespace; remove the namespace from the target", of.Parent.Kind))
	}
	if asksLabels(t) && (name.asked || namespace.asked) {
		panic(w.Refuse(diag.NoKyvernoForm, "whether Kyverno asks the selector of the target depends on whether the variable in its name or namespace is a wildcard; "+
			"use the name or the namespace of the trigger, or remove one of the two"))
	}
	args := []cel.Value{cel.String(of.Parent.APIVersion()), cel.String(of.Resource)}
	if !w.Policy.Namespaced() {
		in := cel.String("")
		if inOne {
			in = namespace.exact
		}
		args = append(args, in)
	}
	var out selection
	demand := namespace.demand.And(name.demand)
	if isNamed && (inOne || of.Scope == native.Cluster && !asksLabels(t)) { // whatever its labels
		if asksLabels(t) && query.HasVariables(t.SelectorNode) {
			panic(w.Refuse(diag.NoKyvernoForm, "Kyverno asks no selector of a target that namespace and name tell, but fills in its variables; remove the selector"))
		}
		constantLabels(w, t) // which may be refused
		out.find = cel.Ident("resource").Call("Get", append(args, name.exact)...)
	} else {
		labels := constantLabels(w, t)
		if !labels.IsZero() {
			args = append(args, labels)
		}
		out.find = cel.Ident("resource").Call("List", args...)
		meta := behind.Object.V.Field("metadata")
		if !inOne {
			out.choose(behind, "namespace", namespace, meta.Field("namespace"))
		}
		out.choose(behind, "name", name, meta.Field("name"))
		if labels.IsZero() {
			out.selects(behind, t, meta.Field("labels"))
		}
	}
	out.found = out.find.AsBool().Unread(demand.All(), func(name string) (cel.Value, bool) { return read.Defined(w, name) })
	if demand.Unsure {
		panic(w.Unsupported("a variable in the name or the namespace of targets that may be an error"))
	}
	return out
}

// choose holds the name or the namespace of an object to what a target says of it.
func (s *selection) choose(behind *read.Lowering, what string, c chosen, of read.Place) {
	var is cel.Bool
	x := of.Expr
	switch {
	case c.any:
		return
	case c.exact.IsZero():
		is = native.Matches(x, c.wild)
	default:
		behind.SetPos(c.text.Pos)
		v, _ := query.Text(behind, query.Template(behind, query.ParseTemplate(c.text.Value, c.text.Pos)))
		if is = x.Eq(v); c.asked {
			v = compare.Once(behind, what+"OfTargets", v)
			is = cel.Or(v.Eq(cel.String("")), compare.Wildcard(x, v))
		}
	}
	s.conditions = append(s.conditions, vap.Condition{Pos: c.text.Pos, Name: what, Expr: is})
}

// asksLabels tells that a target has a selector that says something.
func asksLabels(t *policy.MutateTarget) bool {
	return t.SelectorNode != nil && len(t.SelectorNode.Fields) > 0
}

// constantLabels are the labels of a selector that names nothing but labels; zero for another, and for none.
func constantLabels(l *read.Lowering, t *policy.MutateTarget) cel.Value {
	s := t.Selector
	if s == nil || query.HasVariables(t.SelectorNode) {
		return cel.Value{}
	}
	if native.RefusedSelector(s) {
		panic(refusedSelector(l, t))
	}
	if len(s.Expressions) > 0 || len(s.MatchLabels) == 0 {
		return cel.Value{}
	}
	var labels []cel.Entry
	for _, p := range s.MatchLabels {
		labels = append(labels, cel.Entry{Key: cel.String(p.Key), Value: cel.String(p.Value)})
	}
	return cel.Map(labels...)
}

func refusedSelector(l *read.Lowering, t *policy.MutateTarget) read.Refusal {
	l.SetPos(t.SelectorNode.Pos)
	return l.Refuse(diag.NoKyvernoForm, "no API server takes the selector of the target, and the rule changes nothing; labels have no wildcards there")
}

// selects holds the labels of an object to the selector of a target.
func (s *selection) selects(behind *read.Lowering, t *policy.MutateTarget, labels read.Place) {
	if t.Selector == nil {
		if t.SelectorNode != nil && t.SelectorNode.Kind != policy.Null && len(t.SelectorNode.Fields) > 0 {
			panic(behind.Unsupported("a selector of a target that is a variable"))
		}
		return
	}
	behind.SetPos(t.SelectorNode.Pos)
	if slices.ContainsFunc(t.Selector.Expressions, native.InvalidRequirement) {
		panic(refusedSelector(behind, t))
	}
	var all []cel.Bool
	var demand read.Demands
	for _, p := range t.Selector.MatchLabels {
		n := &policy.Node{Kind: policy.String, Str: p.Value, Pos: t.SelectorNode.Pos}
		if query.HasVariables(&policy.Node{Kind: policy.String, Str: p.Key}) {
			panic(behind.Unsupported("a variable in a key of the selector of a target"))
		}
		j := query.Template(behind, query.ParseTemplate(p.Value, n.Pos))
		if _, isText := j.Lit.(string); j.Form == read.LitForm && !isText || j.Form != read.LitForm && read.KindOf(j.Typ()) != schema.String {
			panic(behind.Refuse(diag.NoKyvernoForm, "a label in the selector of a target may be no text; give it a default that is one, or compare it in the preconditions of the target"))
		}
		v, d := query.Text(behind, j)
		demand = demand.And(d)
		all = append(all, labels.Field(p.Key).Soft(false, func(x cel.Value) cel.Bool { return x.Eq(v) }))
	}
	for _, e := range t.Selector.Expressions {
		if slices.ContainsFunc(append([]string{e.Key}, e.Values...), func(s string) bool { return query.HasVariables(&policy.Node{Kind: policy.String, Str: s}) }) {
			panic(behind.Unsupported("a variable in the matchExpressions of a target"))
		}
		label := labels.Field(e.Key)
		in := func(x cel.Value) cel.Bool { return native.OneOfTexts(x, e.Values) }
		switch e.Operator {
		case "In":
			all = append(all, label.Soft(false, in))
		case "NotIn":
			all = append(all, cel.Not(label.Soft(false, in)))
		case "Exists":
			all = append(all, label.Found())
		default:
			all = append(all, cel.Not(label.Found()))
		}
	}
	if demand.Unsure {
		panic(behind.Unsupported("a variable in the selector of a target that may be an error"))
	}
	if is := behind.Told(demand, cel.And(all...)); !is.Expr.IsTrue() {
		s.conditions = append(s.conditions, vap.Condition{Pos: t.SelectorNode.Pos, Name: "selector", Expr: is.Expr, Sound: !is.Errs})
	}
}

// preconditionsOf are those of a target.
func preconditionsOf(w *read.Lowering, t *policy.MutateTarget) partial.Bool {
	return condition.Conditions(w, t.Preconditions)
}

// ofTarget is a body in which {{ @ }} is what the target has at that place.
func ofTarget(l *read.Lowering, m *policy.Mutate) *policy.Mutate {
	if m.Merge == nil {
		return m
	}
	out := *m
	out.Merge = placed(l, m.Merge, "target")
	return &out
}

// currentValue is {{ @ }}.
var currentValue = regexp.MustCompile(`(\{\{-?\s*)@(\s*\}\})`)

func placed(l *read.Lowering, n *policy.Node, at string) *policy.Node {
	out := *n
	if n.Kind == policy.String && currentValue.MatchString(n.Str) {
		if at == "" {
			l.SetPos(n.Pos)
			panic(l.Unsupported("the value at hand, {{ @ }}, in a list or below an anchor"))
		}
		out.Str = currentValue.ReplaceAllString(n.Str, "${1}"+strings.ReplaceAll(at, "$", "$$")+"${2}")
	}
	out.Items = slices.Clone(n.Items)
	for i, item := range n.Items {
		out.Items[i] = placed(l, item, "")
	}
	out.Fields = slices.Clone(n.Fields)
	for i, f := range n.Fields {
		below := ""
		if kind, _ := splitPatchAnchor(f.Key); kind == anchor.Plain && at != "" && !query.HasVariables(&policy.Node{Kind: policy.String, Str: f.Key}) {
			below = at + "." + strconv.Quote(f.Key)
		}
		out.Fields[i].Value = placed(l, f.Value, below)
	}
	return &out
}
