package generate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/mutate"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
	"github.com/kvap/kvap/vap"
)

// make is what the rule makes of a trigger.
func (t *trigger) make(l *read.Lowering) {
	body := l.Rule.Generate
	add := func(n *policy.GenerateTarget, made partial.Bool) {
		t.entries = append(t.entries, vap.Expression{Pos: n.Pos, Expr: made.Expr.Value})
		t.mayErr = t.mayErr || made.Errs
	}
	if len(body.ForEach) == 0 {
		add(&body.GenerateTarget, made(l, &body.GenerateTarget))
	}
	for _, f := range body.ForEach {
		if t.mayErr {
			l.SetPos(f.Pos)
			panic(l.Unsupported("an entry of a foreach behind one that may be an error"))
		}
		add(&f.GenerateTarget, loop(l, f))
	}
}

// made is the call that makes a target: an error where a variable of it is one, or where what it copies
// is not there. Each kind of a list has its own: one that cannot be listed keeps no other from being copied.
func made(l *read.Lowering, t *policy.GenerateTarget) partial.Bool {
	l.SetPos(t.Pos)
	var objects []cel.Value
	var filling read.Demands
	switch {
	case t.Clone != nil:
		objects, filling = clone(l, t)
	case t.CloneList != nil:
		objects, filling = cloneList(l, t)
	default:
		filling = query.Filling(l, t.Data)
		objects = []cel.Value{object(l, t, &filling)}
	}
	var namespace []cel.Value
	if !l.Policy.Namespaced() {
		namespace = append(namespace, text(l, t.Namespace, &filling))
	}
	l.SetPos(t.Pos)
	var calls []cel.Bool
	for _, object := range objects {
		calls = append(calls, cel.Ident("generator").Call("Apply", append(slices.Clone(namespace), cel.List(object))...).AsBool())
	}
	out := l.Told(filling, cel.And(calls...))
	if t.Clone != nil || t.CloneList != nil {
		return out.ErrsInCEL()
	}
	return out
}

// text is a text of a target, which must be one where it is filled in.
func text(l *read.Lowering, t policy.Text, filling *read.Demands) cel.Value {
	n := &policy.Node{Kind: policy.String, Str: t.Value, Pos: t.Pos}
	j := query.Template(l, query.ParseTemplate(t.Value, t.Pos))
	l.SetPos(t.Pos)
	_, isText := j.Lit.(string)
	kind := read.KindOf(j.Typ())
	if j.Form == read.LitForm && !isText || j.Form != read.LitForm && kind != schema.String && (kind != schema.Any || j.Form != read.PlaceForm) {
		panic(l.Unsupported("a name, a namespace or a kind that is no text"))
	}
	*filling = filling.And(query.Filling(l, n))
	return mutate.Whole(l, n)
}

// constant is a text of a target without variables.
func constant(l *read.Lowering, t policy.Text) string {
	if query.HasVariables(&policy.Node{Kind: policy.String, Str: t.Value, Pos: t.Pos}) {
		l.SetPos(t.Pos)
		panic(l.Unsupported("a variable in the kind of what is copied, or in the kind of the data,"))
	}
	return t.Value
}

// object is a target made of data. What the target says itself counts, but a kind in the data.
func object(l *read.Lowering, t *policy.GenerateTarget, filling *read.Demands) cel.Value {
	out := []cel.Entry{entry("apiVersion", text(l, t.APIVersion, filling))}
	kind := text(l, t.Kind, filling)
	if k := t.Data.Get("kind"); k != nil && k.Kind == policy.String && k.Str != "" {
		kind = cel.String(constant(l, policy.Text{Value: k.Str, Pos: k.Pos}))
	}
	metadata := []cel.Entry{entry("name", text(l, t.Name, filling))}
	for _, f := range fields(l, t.Data.Get("metadata")) {
		checkKey(l, f)
		switch f.Key {
		case "name", "namespace":
		case "labels", "annotations":
			metadata = append(metadata, entry(f.Key, texts(l, f.Value)))
		default:
			metadata = append(metadata, entry(f.Key, mutate.Whole(l, f.Value)))
		}
	}
	out = append(out, entry("kind", kind), entry("metadata", cel.Map(metadata...)))
	for _, f := range fields(l, t.Data) {
		checkKey(l, f)
		if f.Key == "items" && f.Value.Kind != policy.Map {
			l.SetPos(f.Pos)
			panic(l.Refuse(diag.NoKyvernoForm, "a GeneratingPolicy takes an object that has items for a list, and makes those; give each a rule"))
		}
		if f.Key != "apiVersion" && f.Key != "kind" && f.Key != "metadata" {
			out = append(out, entry(f.Key, mutate.Whole(l, f.Value)))
		}
	}
	return cel.Map(out...)
}

func entry(key string, value cel.Value) cel.Entry {
	return cel.Entry{Key: cel.String(key), Value: value}
}

// fields are those of a map of the data; none where there is none.
func fields(l *read.Lowering, n *policy.Node) []policy.Field {
	if n == nil || n.Kind == policy.Null {
		return nil
	}
	if n.Kind != policy.Map {
		l.SetPos(n.Pos)
		panic(l.Unsupported("data, or metadata, of a target that are no map"))
	}
	return n.Fields
}

// checkKey refuses a key with variables.
func checkKey(l *read.Lowering, f policy.Field) {
	if query.HasVariables(&policy.Node{Kind: policy.String, Str: f.Key}) {
		l.SetPos(f.Pos)
		panic(l.Unsupported("a variable in a key of what is generated"))
	}
}

// texts is a map of which the values are texts, as those of labels are.
func texts(l *read.Lowering, n *policy.Node) cel.Value {
	if n.Kind != policy.Map {
		return mutate.Whole(l, n)
	}
	var out []cel.Entry
	for _, f := range fields(l, n) {
		checkKey(l, f)
		value := mutate.Whole(l, f.Value)
		switch value.LiteralType() {
		case "string", "null":
		case "int", "double", "bool":
			value = cel.String(scalar.Text(f.Value.Value()))
		default:
			value = labelText(l, f.Value, value)
		}
		out = append(out, entry(f.Key, value))
	}
	return cel.Map(out...)
}

// labelText is a variable in a label.
func labelText(l *read.Lowering, n *policy.Node, value cel.Value) cel.Value {
	if n.Kind != policy.String {
		return value
	}
	switch j := query.Template(l, query.ParseTemplate(n.Str, n.Pos)); read.KindOf(j.Typ()) {
	case schema.String:
		return value
	case schema.Int, schema.Bool:
		return cel.Func(cel.FuncString, value)
	}
	l.SetPos(n.Pos)
	panic(l.Unsupported("a label or an annotation that may be no text"))
}

// clone is the copy of one object, which keeps its name.
func clone(l *read.Lowering, t *policy.GenerateTarget) (objects []cel.Value, filling read.Demands) {
	namespace, name := text(l, t.Clone.Namespace, &filling), text(l, t.Clone.Name, &filling)
	var of read.Demands
	if called := text(l, t.Name, &of); !cel.Equal(called, name) {
		l.SetPos(t.Name.Pos)
		panic(l.Refuse(diag.NoKyvernoForm, "what a GeneratingPolicy copies keeps the name of its source; give the copy that name, or write it out as data"))
	}
	return []cel.Value{resource(l, "Get", constant(l, t.APIVersion), constant(l, t.Kind), namespace, name)}, filling
}

// cloneList is the copies of the objects that are listed.
func cloneList(l *read.Lowering, t *policy.GenerateTarget) (objects []cel.Value, filling read.Demands) {
	namespace := text(l, t.CloneList.Namespace, &filling)
	var selected []cel.Value
	if s := t.CloneList.Selector; s != nil {
		l.SetPos(s.Pos)
		if len(s.Expressions) > 0 || query.HasVariables(t.CloneList.SelectorNode) {
			panic(l.Refuse(diag.NoKyvernoForm, "resource.List selects by labels that are equal, and by no matchExpressions or variables; name the labels in matchLabels"))
		}
		var labels []cel.Entry
		for _, p := range s.MatchLabels {
			labels = append(labels, entry(p.Key, cel.String(p.Value)))
		}
		if len(labels) > 0 {
			selected = append(selected, cel.Map(labels...))
		}
	}
	for _, k := range t.CloneList.Kinds {
		apiVersion, kind := splitKind(l, k)
		objects = append(objects, resource(l, "List", apiVersion, kind, namespace, selected...))
	}
	if len(objects) == 0 {
		panic(l.Unsupported("a cloneList without kinds"))
	}
	return objects, filling
}

// splitKind are the version and the kind of a kind of a list of sources.
func splitKind(l *read.Lowering, k policy.Text) (apiVersion, kind string) {
	text := constant(l, k)
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		l.SetPos(k.Pos)
		panic(l.Unsupported("a kind of a cloneList that is not apiVersion/Kind"))
	}
	return text[:i], text[i+1:]
}

// resource reads objects of a kind by the plural that it has, or, where nobody knows that, by what
// the cluster says. A policy of a namespace reads in it alone, and names none.
func resource(l *read.Lowering, how cel.Function, apiVersion, kind string, namespace cel.Value, more ...cel.Value) cel.Value {
	group, version, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		group, version = "", apiVersion
	}
	args := []cel.Value{cel.String(apiVersion)}
	of := l.Opts.Schemas.Resources(group, version, kind)
	if len(of) == 1 && !of[0].Guessed {
		args = append(args, cel.String(of[0].Plural))
	} else {
		args = []cel.Value{cel.Ident("resource").Call("ToGVR", cel.String(apiVersion), cel.String(kind))}
	}
	if !l.Policy.Namespaced() {
		args = append(args, namespace)
	}
	return cel.Ident("resource").Call(how, append(args, more...)...)
}
