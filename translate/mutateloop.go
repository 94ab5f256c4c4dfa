package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
)

// Each entry of a foreach is a mutation of its own: it sees what the entry before made. Within
// an entry each element patches the object, and is read from the object as it was; so the
// patches of its elements are made at once where none is about what another changes:
//
//	patchesJson6902 below the element           operations by its index
//	patchStrategicMerge of the list itself      an apply configuration of the list
//	patchStrategicMerge of keys of a map        an operation for each element

// loopsOf lowers the entries of a foreach.
func (l *lowering) loopsOf(entries []*policy.MutateForEach) patch {
	out := patch{asked: native.Sure(cel.True())}
	for i, f := range entries {
		one := l.loopOf(f)
		if i > 0 && native.Mentions(one.asked.Expr.Value, "object") {
			panic(l.unsupported("an entry of a foreach that may be an error, behind another one,"))
		}
		out.asked = out.asked.AndThen(one.asked)
		out.mutations, out.effects = append(out.mutations, one.mutations...), append(out.effects, one.effects...)
	}
	return out
}

// A mutateLoop is an entry of a foreach being lowered.
type mutateLoop struct {
	*lowering
	of    *policy.MutateForEach
	list  cel.Value // what it goes through; it is there where asked holds
	path  []string  // where that is in the object; nil where it is no list of the object
	elem  *schema.Type
	hint  string
	asked native.Truth
}

func (l *lowering) loopOf(f *policy.MutateForEach) patch {
	defer l.restore(l.environment)
	l.setPos(f.Pos)
	if f.ForEach != nil {
		panic(l.unsupported("a foreach in a foreach of a mutate rule"))
	}
	w := mutateLoop{lowering: l, of: f, asked: native.Sure(cel.True())}
	w.readList()
	if f.Merge != nil {
		return w.merge()
	}
	return w.json()
}

// readList reads the list. A key that is missing is an error of the rule.
func (w *mutateLoop) readList() {
	w.setPos(w.of.List.Pos)
	e, d := jmespath.Parse(w.of.List.Value, w.of.List.Pos)
	if d != nil {
		panic(refusal{diag.Warnf(d.Pos, diag.NoExpression, "%s; the webhook will run this rule", d.Message)})
	}
	j := w.queryOutside(e)
	var s sequence
	switch {
	case j.form == placeForm && j.v.kind() == schema.List:
		if need := j.v.found(); !need.IsTrue() {
			w.needFor("list", need)
		}
		s = listOf{v: j.v, hint: w.lowering.hint(j.v)}
	case j.form == sequenceForm:
		s = j.s
	default:
		panic(w.unsupported("the list of a foreach that is no list of the object"))
	}
	var ok bool
	n := w.collected(func() { w.list, ok = w.inOrder(s) })
	if !ok || !n.none() {
		panic(w.unsupported("the list of a foreach that may be an error"))
	}
	w.elem, w.hint = elemOfParts(s), hintOf(s)
	if kindOf(w.elem) == schema.Any {
		panic(w.unsupported("a foreach over elements of which no type is known"))
	}
	w.path, _, _ = w.list.OptionalPath()
}

// elemOfParts is the type of the elements of lists that are joined: what all of them have.
func elemOfParts(s sequence) *schema.Type {
	parts, ok := s.(concat)
	if !ok || len(parts) == 0 {
		return s.elem()
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
	case kindOf(a) != schema.Object || kindOf(b) != schema.Object:
		return anyType()
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

// enterElement makes an element the one at hand, with its index where that is known. The
// condition is that it is not skipped.
func (w *mutateLoop) enterElement(x operand, index cel.Value) cel.Bool {
	f := &policy.ForEach{Pos: w.of.Pos, List: w.of.List, Context: w.of.Context, Preconditions: w.of.Preconditions}
	w.enter(f, x, 0)
	if !index.IsZero() {
		w.scope["elementIndex"], w.scope["elementIndex0"] = intOf(index), intOf(index)
	}
	w.setPos(w.of.Pos)
	return w.simplified(w.conditions(w.of.Preconditions), w.environment).Expr
}

// json is a patch below each element.
func (w *mutateLoop) json() patch {
	if len(w.path) < 2 || w.path[0] != "object" {
		panic(w.unsupported("a JSON patch of the elements of a list that is no list of the object"))
	}
	i, release := w.binders.Bind("i")
	defer release()
	x, release := w.binders.Bind(w.hint)
	defer release()
	elem := placeOf(x, w.elem)
	when := w.enterElement(operandAt(elem), i)
	out := patch{asked: w.asked}
	w.ofElement(x, when, func() { w.jsonOf(&out, i, x, elem, when) })
	return out
}

// ofElement builds what is made of an element, and needs for each what that needs.
func (w *mutateLoop) ofElement(x cel.Value, when cel.Bool, build func()) {
	n := w.collected(build)
	if need := n.all(); !need.IsTrue() {
		w.needFor(n.hint, w.list.Macro(cel.MacroAll, x, cel.Implies(when, need).Value).AsBool())
	}
	w.needAll(needs{unsure: n.unsure, native: n.native})
}

func (w *mutateLoop) jsonOf(out *patch, i, x cel.Value, elem place, when cel.Bool) {
	text := w.readJSONPatch(w.of.JSON)
	if broken := text.unquoted(); !broken.IsFalse() {
		all := w.list.Macro(cel.MacroExists, x, cel.And(when, broken).Value).AsBool()
		out.asked = out.asked.AndThen(native.MayErr(cel.CondBool(all, partial.Failing("quoted"), cel.True())))
	}
	ops := &opWriter{merging: &merging{lowering: w.lowering, kind: w.target.GVK}}
	scope := &loopScope{path: w.path, elem: elem, loop: &opLoop{list: w.list, i: i, x: x, when: when}}
	var paths []string
	for _, n := range text.operations {
		before := len(ops.ops)
		ops.operation(text, n, scope)
		path := n.Get("path").Str
		for _, other := range paths {
			if other == path || len(ops.ops) > before+1 && n.Get("op").Str != "add" {
				panic(w.unsupported("operations of a foreach that are about the same"))
			}
		}
		paths = append(paths, path)
	}
	if need := cel.And(ops.needs...); !need.IsTrue() {
		some := w.list.Macro(cel.MacroExists, x, cel.And(when, cel.Not(need)).Value).AsBool()
		out.asked = out.asked.AndThen(native.MayErr(cel.CondBool(some, partial.Failing("value"), cel.True())))
	}
	out.mutations = []mutating.Mutation{{Pos: w.of.JSON.Pos, Type: mutating.JSONPatch, Expr: patchText(ops.ops)}}
	out.effects = []effect{w.effect(effectOfOperations(ops.ops, w.places(x)), x, when)}
}

// merge is a merge for each element.
func (w *mutateLoop) merge() patch {
	x, release := w.binders.Bind(w.hint)
	defer release()
	elem := placeOf(x, w.elem)
	if w.of.Order == policy.Ascending {
		panic(w.unsupported("a patchStrategicMerge for each element in ascending order, whose last element comes first,"))
	}
	when := w.enterElement(operandAt(elem), cel.Value{})
	out := patch{asked: w.asked}
	w.ofElement(x, when, func() { w.mergeOf(&out, x, elem, when) })
	return out
}

func (w *mutateLoop) mergeOf(out *patch, x cel.Value, elem place, when cel.Bool) {
	m := merging{lowering: w.lowering, kind: w.target.GVK, gates: &[]cel.Bool{}}
	if e, ok := w.ownList(&m, w.of.Merge, w.object.v, nil, elem, x, when); ok {
		out.mutations, out.effects = m.mutations([]edit{e}, w.of.Merge), []effect{w.effect(m.effectOf([]edit{e}, w.places(x)), x, when)}
		return
	}
	edits := m.mapping(w.of.Merge, w.object.v, nil)
	if len(*m.gates) > 0 || !plainEdits(edits) {
		panic(w.unsupported("a patchStrategicMerge for each element that has conditions, or merges lists"))
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
			panic(w.unsupported("a patchStrategicMerge whose elements may write the same field"))
		}
	}
	out.mutations = []mutating.Mutation{{Pos: w.of.Merge.Pos, Type: mutating.JSONPatch, Expr: patchText(ops.ops)}}
	out.effects = []effect{w.effect(m.effectOf(edits, w.places(x)), x, when)}
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
		return e.list != nil || e.remove || !e.when.IsTrue() || !plainEdits(e.fields) || e.fields != nil && e.at.kind() != schema.Map && !e.at.certain() && !isStructural(e.name)
	})
}

// ownList is the edit of the list that the foreach goes through, where a patch is about the
// element at hand of that and nothing else:
//
//	spec:
//	  containers:
//	  - name: "{{ element.name }}"
//	    tty: true
func (w *mutateLoop) ownList(m *merging, n *policy.Node, at place, path []string, elem place, x cel.Value, when cel.Bool) (edit, bool) {
	if len(n.Fields) != 1 || hasVariables(&policy.Node{Kind: policy.String, Str: n.Fields[0].Key}) {
		return edit{}, false
	}
	kind, name := splitPatchAnchor(n.Fields[0].Key)
	e := edit{name: name, at: at.field(name), path: append(slices.Clone(path), name), when: cel.True()}
	if kind != anchor.Plain || e.at.never {
		return e, false
	}
	value := n.Fields[0].Value
	if value.Kind == policy.Map {
		inner, ok := w.ownList(m, value, e.at, e.path, elem, x, when)
		e.fields = []edit{inner}
		return e, ok
	}
	how, known := listMergeOf(m.kind, e.path)
	if value.Kind != policy.List || len(value.Items) != 1 || !known || len(how.keys) != 1 || !slices.Equal(append([]string{"object"}, e.path...), w.path) {
		return e, false
	}
	item := value.Items[0]
	id := item.Get(how.keys[0])
	if id == nil || hasPatchAnchors(item) || !cel.Equal(m.written(id, elem.field(how.keys[0]).typ, ""), x.Field(how.keys[0])) {
		return e, false
	}
	fields := m.mapping(without(item, how.keys[0]), elem, append(slices.Clone(e.path), mutating.Element))
	if len(fields) == 0 {
		return e, false
	}
	e.list = &listEdit{key: how.keys[0], items: []itemEdit{{x: x, asked: when, chosen: when, fields: fields, source: item}}}
	return e, true
}
