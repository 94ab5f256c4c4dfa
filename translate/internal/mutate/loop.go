package mutate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/rule"
)

// Each entry of a foreach is a mutation of its own: it sees what the entry before made. Within
// an entry each element patches the object, and is read from the object as it was; so the
// patches of its elements are made at once where none is about what another changes:
//
//	patchesJson6902 below the element           operations by its index
//	patchStrategicMerge of the list itself      an apply configuration of the list
//	patchStrategicMerge of keys of a map        an operation for each element

// loopsOf lowers the entries of a foreach.
func loopsOf(l *read.Lowering, entries []*policy.MutateForEach) patch {
	out := patch{asked: partial.Sure(cel.True())}
	for i, f := range entries {
		one := loopOf(l, f)
		if i > 0 && native.Mentions(one.asked.Expr.Value, "object") {
			panic(l.Unsupported("an entry of a foreach that may be an error, behind another one,"))
		}
		out.filling, out.asked = out.filling.And(one.filling), out.asked.Then(one.asked)
		out.mutations, out.effects = append(out.mutations, one.mutations...), append(out.effects, one.effects...)
	}
	return out
}

// A mutateLoop is an entry of a foreach being lowered.
type mutateLoop struct {
	*read.Lowering
	of   *policy.MutateForEach
	list cel.Value // what it goes through
	path []string  // where that is in the object; nil where it is no list of the object
	elem *schema.Type
	hint string
	// reading is what the list demands.
	reading read.Demands
}

func loopOf(l *read.Lowering, f *policy.MutateForEach) patch {
	l = l.Inside()
	l.SetPos(f.Pos)
	if f.ForEach != nil {
		panic(l.Unsupported("a foreach in a foreach of a mutate rule"))
	}
	w := mutateLoop{Lowering: l, of: f}
	w.readList()
	if f.Merge != nil {
		return w.merge()
	}
	return w.json()
}

// readList reads the list. A key that is missing is an error of the rule.
func (w *mutateLoop) readList() {
	e := ElementsOf(w.Lowering, w.of.List)
	w.list, w.elem, w.hint, w.reading = e.List, e.Elem, e.Hint, e.Reading
	w.path, _, _ = w.list.OptionalPath()
}

// Elements are what a foreach goes through.
type Elements struct {
	List    cel.Value
	Elem    *schema.Type
	Hint    string
	Reading read.Demands // what the list demands
}

// ElementsOf reads the list of a foreach: a list of a known type of elements.
func ElementsOf(l *read.Lowering, list policy.Text) Elements {
	l.SetPos(list.Pos)
	e, d := jmespath.Parse(list.Value, list.Pos)
	if d != nil {
		panic(read.Refusal{Diagnostic: diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will run this rule", d.Message)})
	}
	j := query.Outside(l, e)
	out := Elements{Reading: j.Anyway()}
	var s read.Sequence
	switch {
	case j.Form == read.PlaceForm && j.V.Kind() == schema.List:
		out.Reading = out.Reading.And(read.Demand("list", j.V.Found()))
		s = read.ListOf{V: j.V.Settled(), Hint: read.Hint(j.V)}
	case j.Form == read.SequenceForm:
		s = j.S
	default:
		panic(l.Unsupported("the list of a foreach that is no list of the object"))
	}
	var ok bool
	out.List, ok = read.InOrder(l, s)
	if !ok || !s.Demands(false).None() {
		panic(l.Unsupported("the list of a foreach that may be an error"))
	}
	out.Elem, out.Hint = elemOfParts(s), read.HintOf(s)
	if read.KindOf(out.Elem) == schema.Any {
		panic(l.Unsupported("a foreach over elements of which no type is known"))
	}
	return out
}

// elemOfParts is the type of the elements of lists that are joined: what all of them have.
func elemOfParts(s read.Sequence) *schema.Type {
	parts, ok := s.(read.Concat)
	if !ok || len(parts) == 0 {
		return s.Elem()
	}
	out := elemOfParts(parts[0])
	for _, part := range parts[1:] {
		out = bothTypes(out, elemOfParts(part))
	}
	return out
}

// bothTypes is what is known of a value that is of one of two types.
func bothTypes(a, b *schema.Type) *schema.Type {
	switch {
	case a == b:
		return a
	case read.KindOf(a) != schema.Object || read.KindOf(b) != schema.Object:
		return read.AnyType()
	}
	out := &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{}}
	for name, f := range a.Fields {
		if g, ok := b.Fields[name]; ok && f.Type.Kind == g.Type.Kind {
			both := *f
			both.Required = f.Required && g.Required
			out.Fields[name] = &both
		}
	}
	return out
}

// enterElement makes an element and its index those at hand. The
// condition is that it is not skipped.
func (w *mutateLoop) enterElement(x, index read.Operand) cel.Bool {
	f := &policy.ForEach{Pos: w.of.Pos, List: w.of.List, Context: w.of.Context, Preconditions: w.of.Preconditions}
	w.Lowering = rule.Entered(w.Lowering, f, x, index, 0)
	w.SetPos(w.of.Pos)
	return celrule.Simplified(w.Lowering, condition.Conditions(w.Lowering, w.of.Preconditions), w.Environment).Expr
}

// json is a patch below each element.
func (w *mutateLoop) json() patch {
	if len(w.path) < 2 || w.path[0] != "object" {
		panic(w.Unsupported("a JSON patch of the elements of a list that is no list of the object"))
	}
	i, release := w.Binders.Bind("i")
	defer release()
	x, release := w.Binders.Bind(w.hint)
	defer release()
	elem := read.PlaceOf(x, w.elem)
	when := w.enterElement(read.OperandAt(elem), read.IntOf(i))
	out := patch{asked: partial.Sure(cel.True())}
	text := readJSONPatch(w.Lowering, w.of.JSON)
	out.filling = w.ofEach(x, when, text.filling())
	if broken := text.unquoted(); !broken.IsFalse() {
		all := w.list.Macro(cel.MacroExists, x, cel.And(when, broken).Value).AsBool()
		out.asked = out.asked.Then(partial.MayErr(cel.CondBool(all, partial.Failing("quoted"), cel.True())))
	}
	ops := &opWriter{merging: &merging{Lowering: w.Lowering, kind: w.Target.GVK}}
	scope := &loopScope{path: w.path, elem: elem, loop: &opLoop{list: w.list, i: i, x: x, when: when}}
	var paths []string
	for _, n := range text.operations {
		before := ops.added
		ops.operation(text, n, scope)
		path := n.Get("path").Str
		for _, other := range paths {
			if other == path || ops.added > before+1 && n.Get("op").Str != "add" {
				panic(w.Unsupported("operations of a foreach that are about the same"))
			}
		}
		paths = append(paths, path)
	}
	if need := cel.And(ops.needs...); !need.IsTrue() {
		some := w.list.Macro(cel.MacroExists, x, cel.And(when, cel.Not(need)).Value).AsBool()
		out.asked = out.asked.Then(partial.MayErr(cel.CondBool(some, partial.Failing("value"), cel.True())))
	}
	out.mutations = []mutating.Mutation{{Pos: w.of.JSON.Pos, Type: mutating.JSONPatch, Expr: patchText(ops.ops)}}
	out.effects = []effect{w.effect(effectOfOperations(ops.ops, w.places(x)), x, when)}
	return out
}

// ofEach is what the list demands, and what an element does of each that is not skipped.
func (w *mutateLoop) ofEach(x cel.Value, when cel.Bool, d read.Demands) read.Demands {
	each := read.Demands{Unsure: d.Unsure, Native: d.Native}
	if all := d.All(); !all.IsTrue() {
		each = each.And(read.Demand(d.Hint, w.list.Macro(cel.MacroAll, x, cel.Implies(when, all).Value).AsBool()))
	}
	return w.reading.And(each)
}

// merge is a merge for each element.
func (w *mutateLoop) merge() patch {
	x, release := w.Binders.Bind(w.hint)
	defer release()
	elem := read.PlaceOf(x, w.elem)
	if w.of.Order == policy.Ascending {
		panic(w.Unsupported("a patchStrategicMerge for each element in ascending order, whose last element comes first,"))
	}
	when := w.enterElement(read.OperandAt(elem), rule.NoIndex(w.Lowering))
	out := patch{filling: w.ofEach(x, when, query.Filling(w.Lowering, w.of.Merge)), asked: partial.Sure(cel.True())}
	m := merging{Lowering: w.Lowering, kind: w.Target.GVK, gates: &[]cel.Bool{}}
	if e, ok := w.ownList(&m, w.of.Merge, w.Object.V, nil, elem, x, when); ok {
		out.mutations, out.effects = m.mutations([]edit{e}, w.of.Merge), []effect{w.effect(m.effectOf([]edit{e}, w.places(x)), x, when)}
		return out
	}
	edits := m.mapping(w.of.Merge, w.Object.V, nil)
	if len(*m.gates) > 0 || !plainEdits(edits) {
		panic(w.Unsupported("a patchStrategicMerge for each element that has conditions, or merges lists"))
	}
	ops := &opWriter{merging: &m}
	ops.edits(edits, nil, nil)
	loop := &opLoop{list: w.list, x: x, when: when}
	for i, o := range ops.ops {
		mentions := func(v cel.Value) bool { return !v.IsZero() && v.Count(x.VariableName()) > 0 }
		switch {
		case o.op == "add" && mentions(o.at.text()) && !mentions(o.value):
			ops.ops[i].loop = loop
		case o.op == "add" && !mentions(o.at.text()) && !mentions(o.value) && o.value.MakesEmpty():
			// A parent, which the API server drops where nothing is added.
		default:
			panic(w.Unsupported("a patchStrategicMerge whose elements may write the same field"))
		}
	}
	out.mutations = []mutating.Mutation{{Pos: w.of.Merge.Pos, Type: mutating.JSONPatch, Expr: patchText(ops.ops)}}
	out.effects = []effect{w.effect(m.effectOf(edits, w.places(x)), x, when)}
	return out
}

// places are those of the element at hand, as far as it is one of a list of the object.
func (w *mutateLoop) places(x cel.Value) map[string][]string {
	if len(w.path) < 2 || w.path[0] != "object" {
		return nil
	}
	return map[string][]string{x.VariableName(): append(slices.Clone(w.path[1:]), cel.EachElement)}
}

// effect is that of a patch for each element that is not skipped.
func (w *mutateLoop) effect(e effect, x cel.Value, when cel.Bool) effect {
	e.reads = append(e.reads, placedValue{when.Value, w.places(x)})
	e.never = e.never || w.places(x) == nil
	return e
}

// plainEdits tells of edits that add, and of maps.
func plainEdits(edits []edit) bool {
	return !slices.ContainsFunc(edits, func(e edit) bool {
		return e.list != nil || e.remove || !e.when.IsTrue() || !plainEdits(e.fields) || e.fields != nil && e.at.Kind() != schema.Map && !e.at.Certain() && !read.IsStructural(e.name)
	})
}

// ownList is the edit of the list that the foreach goes through, where a patch is about the
// element at hand of that and nothing else:
//
//	spec:
//	  containers:
//	  - name: "{{ element.name }}"
//	    tty: true
func (w *mutateLoop) ownList(m *merging, n *policy.Node, at read.Place, path []string, elem read.Place, x cel.Value, when cel.Bool) (edit, bool) {
	if len(n.Fields) != 1 || query.HasVariables(&policy.Node{Kind: policy.String, Str: n.Fields[0].Key}) {
		return edit{}, false
	}
	kind, name := splitPatchAnchor(n.Fields[0].Key)
	e := edit{name: name, at: at.Field(name), path: append(slices.Clone(path), name), when: cel.True()}
	if kind != anchor.Plain || e.at.Never {
		return e, false
	}
	value := n.Fields[0].Value
	if value.Kind == policy.Map {
		inner, ok := w.ownList(m, value, e.at, e.path, elem, x, when)
		e.fields = []edit{inner}
		return e, ok
	}
	how, known := listMergeOf(m.kind, e.path)
	if value.Kind != policy.List || len(value.Items) != 1 || !known || len(how.Keys) != 1 || !slices.Equal(append([]string{"object"}, e.path...), w.path) {
		return e, false
	}
	item := value.Items[0]
	id := item.Get(how.Keys[0])
	if id == nil || hasPatchAnchors(item) || !cel.Equal(written(m.Lowering, id, elem.Field(how.Keys[0]).Typ, ""), x.Field(how.Keys[0])) {
		return e, false
	}
	fields := m.mapping(without(item, how.Keys[0]), elem, append(slices.Clone(e.path), mutating.Element))
	if len(fields) == 0 {
		return e, false
	}
	e.list = &listEdit{key: how.Keys[0], items: []itemEdit{{x: x, asked: when, chosen: when, fields: fields, source: item}}}
	return e, true
}
