package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/translate/internal/read"
)

// A JSON patch is a sum of lists of operations, each under its condition. The operations of
// one patch are made in order, but each is worked out from the object as it was: a parent
// that is missing is made by an operation in front.
//
//	(has(object.metadata.labels) ? [] : [JSONPatch{op: "add", path: "/metadata/labels", value: {}}]) +
//	  [JSONPatch{op: "add", path: "/metadata/labels/a", value: "b"}]

// An operation is one of a JSON patch, for an element of a loop where there is one.
type operation struct {
	when  cel.Bool
	loop  *opLoop
	op    string
	at    pointer
	from  pointer
	value cel.Value // zero for none
	// parent tells that this makes what others are in. Where whole is set it has done so already:
	// a value that is the first in its parent is added with it where that is missing.
	parent bool
	whole  *operation
}

// An opLoop goes through a list: i is the index where the operations ask for it, else zero.
type opLoop struct {
	list, i, x cel.Value
	when       cel.Bool
}

// A pointer is the path of an operation: texts, and what is a text at run time.
type pointer []cel.Value

// below is the pointer of a key.
func (p pointer) below(key string) pointer {
	return append(slices.Clone(p), cel.String("/"+strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")))
}

// at is the pointer of what is known at run time: an index, or a key that is escaped.
func (p pointer) at(step cel.Value) pointer {
	return append(slices.Clone(p), cel.String("/"), step)
}

// text is the path as an expression.
func (p pointer) text() cel.Value {
	var parts []cel.Value
	for _, part := range p {
		if last := len(parts) - 1; last >= 0 && part.IsText() && parts[last].IsText() {
			parts[last] = cel.String(parts[last].Prefix() + part.Prefix())
			continue
		}
		parts = append(parts, part)
	}
	return sum(parts)
}

// sum is all parts, one behind the other.
func sum(parts []cel.Value) (out cel.Value) {
	for i, part := range parts {
		if i == 0 {
			out = part
			continue
		}
		out = out.Plus(part)
	}
	return out
}

// patchText is operations as a list of JSONPatch.
func patchText(ops []operation) cel.Value {
	var lists []cel.Value
	for i := 0; i < len(ops); {
		o := ops[i]
		if o.loop != nil {
			lists = append(lists, o.looped())
			i++
			continue
		}
		var same []cel.Value
		for ; i < len(ops) && ops[i].loop == nil && cel.Equal(ops[i].when.Value, o.when.Value); i++ {
			same = append(same, ops[i].made())
		}
		list := cel.List(same...)
		if !o.when.IsTrue() {
			list = cel.Cond(o.when, list, cel.List())
		}
		lists = append(lists, list)
	}
	return sum(lists)
}

func (o operation) made() cel.Value {
	if o.whole != nil {
		plain := o
		plain.whole = nil
		return cel.Cond(cel.Not(o.whole.when), plain.made(), o.whole.made())
	}
	fields := []cel.StructField{{Name: "op", Value: cel.String(o.op)}}
	if len(o.from) > 0 {
		fields = append(fields, cel.StructField{Name: "from", Value: o.from.text()})
	}
	fields = append(fields, cel.StructField{Name: "path", Value: o.at.text()})
	if !o.value.IsZero() {
		fields = append(fields, cel.StructField{Name: "value", Value: o.value})
	}
	return cel.Struct("JSONPatch", fields...)
}

// looped is the operation for each element.
func (o operation) looped() cel.Value {
	bodies := []cel.Value{o.made()}
	if when := cel.And(o.loop.when, o.when); !when.IsTrue() {
		bodies = append([]cel.Value{when.Value}, bodies...)
	}
	if o.loop.i.IsZero() {
		return o.loop.list.Macro(cel.MacroMap, o.loop.x, bodies...)
	}
	return o.loop.list.IndexedMacro(cel.MacroTransformList, o.loop.i, o.loop.x, bodies...)
}

// asOperations are edits as JSON patches: one, and behind it one for each element that is
// written in a list with a key, for these move.
func (m *merging) asOperations(edits []edit, pos diag.Pos) []mutating.Mutation {
	w := &opWriter{merging: m}
	w.edits(edits, nil, nil)
	var out []mutating.Mutation
	if len(w.ops) > 0 {
		text := patchText(w.ops).Knowing(cel.And(w.known...))
		out = append(out, mutating.Mutation{Pos: pos, Type: mutating.JSONPatch, Expr: text})
	}
	for _, ops := range w.behind {
		out = append(out, mutating.Mutation{Pos: pos, Type: mutating.JSONPatch, Expr: patchText(ops)})
	}
	checkSteps(m.Lowering, out)
	return out
}

// checkSteps refuses operations behind others that write what they read of the object.
func checkSteps(l *read.Lowering, steps []mutating.Mutation) {
	changes := func(name string) bool { return l.Trigger == nil || name != "request" } // which has the trigger
	for i, one := range steps {
		if i > 0 && slices.ContainsFunc(one.Expr.FieldsOf("JSONPatch", "value"), func(v cel.Value) bool { return slices.ContainsFunc(v.Idents(), changes) }) {
			panic(l.Unsupported("a value of the object in a patch of several steps"))
		}
	}
}

// An opWriter writes edits as operations.
type opWriter struct {
	*merging
	ops    []operation
	behind [][]operation // patches behind the first
	made   []string      // parents that are made, if they have to be
	needs  []cel.Bool    // what has to be there
	known  []cel.Bool    // what is there, of what is given
	added  int           // operations, with those that are in one with others
}

func (w *opWriter) edits(edits []edit, at pointer, loop *opLoop) {
	for _, e := range edits {
		here := at.below(e.name)
		if !e.key.IsZero() {
			here = at.at(cel.Func(cel.FuncEscapeKey, e.key))
		}
		switch {
		case e.remove:
			w.add(operation{when: both(e.guard, e.at.Found()), op: "remove", at: here, loop: loop})
		case e.list != nil:
			w.list(e, here, loop)
		case e.fields != nil:
			if !slices.ContainsFunc(w.given, func(path []string) bool { return slices.Equal(path, e.path) }) {
				w.parent(e.guard, e.at, here, cel.Map(), loop)
			} else {
				w.known = append(w.known, e.at.Found())
			}
			w.edits(guarded(e.guard, e.fields), here, loop)
		default:
			value := e.set
			if value.IsZero() {
				value = e.plain
			}
			if value.IsZero() {
				value = written(w.merging.Lowering, e.value, e.at.Typ, "")
			}
			w.add(operation{when: both(e.guard, e.when), op: "add", at: here, value: value, loop: loop})
		}
	}
}

// add adds an operation, in one with its parent if that is made right in front of it and the
// value, which is written twice then, is short.
func (w *opWriter) add(o operation) {
	w.added++
	last := len(w.ops) - 1
	if last >= 0 && w.ops[last].parent && o.isIn(w.ops[last]) {
		whole := w.ops[last]
		whole.value = cel.Map(cel.Entry{Key: cel.String(o.step()), Value: o.value})
		if o.step() == "-" {
			whole.value = cel.List(o.value)
		}
		o.whole = &whole
		w.ops[last] = o
		return
	}
	w.ops = append(w.ops, o)
}

// isIn tells of a short value that is always added to a parent.
func (o operation) isIn(parent operation) bool {
	n, longest := len(parent.at), 24
	if o.loop != nil {
		longest = 45 // another loop is as long
	}
	return o.op == "add" && !o.parent && o.when.IsTrue() && o.besides(parent) && len(o.value.String()) <= longest &&
		len(o.at) == n+1 && o.at[n].IsText() && o.at[n].Prefix() != "/" &&
		slices.EqualFunc(o.at[:n], parent.at, cel.Equal)
}

// step is the last step of where a value is added.
func (o operation) step() string {
	step := strings.TrimPrefix(o.at[len(o.at)-1].Prefix(), "/")
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

// besides tells of operations for the same element, or for none.
func (o operation) besides(other operation) bool {
	if o.loop == nil || other.loop == nil {
		return o.loop == other.loop
	}
	return cel.Equal(o.loop.list, other.loop.list) && cel.Equal(o.loop.x, other.loop.x) && cel.Equal(o.loop.when.Value, other.loop.when.Value)
}

// parent makes what has to be there, once.
func (w *opWriter) parent(guard cel.Bool, at read.Place, here pointer, empty cel.Value, loop *opLoop) {
	key := here.text().String()
	if loop != nil {
		key += loop.x.String() // of another loop it is another
	}
	if at.Certain() || slices.Contains(w.made, key) {
		return
	}
	w.made = append(w.made, key)
	w.add(operation{when: both(guard, cel.Not(at.Found())), op: "add", at: here, value: empty, loop: loop, parent: true})
}

// list changes elements in their places, by index.
func (w *opWriter) list(e edit, here pointer, loop *opLoop) {
	if loop != nil {
		panic(w.Unsupported("a JSON patch of lists in lists"))
	}
	source := read.ListOf{V: e.at}.Source(false)
	for k := len(e.list.items) - 1; k >= 0; k-- {
		item := e.list.items[k]
		if !item.x.IsZero() {
			if !item.chosen.IsTrue() {
				panic(w.Unsupported("a JSON patch of some elements, which come to the front,"))
			}
			i, release := w.Binders.Bind("i")
			w.edits(guarded(e.guard, item.guarded()), here.at(cel.Func(cel.FuncString, i)), &opLoop{list: source, i: i, x: item.x, when: cel.True()})
			release()
			continue
		}
		w.behind = append(w.behind, w.element(e, item, here, source))
	}
}

// element writes one element: into the one that has its key, which then goes to the front, or
// in front as a new one.
func (w *opWriter) element(e edit, item itemEdit, here pointer, source cel.Value) []operation {
	i, release := w.Binders.Bind("i")
	defer release()
	x, release := w.Binders.Bind(read.Singular(e.name))
	defer release()
	has := func(x cel.Value) cel.Bool { return hasKey(read.PlaceOf(x, e.at.Elem()), e.list.key, item.id) }
	is := has(x)
	loop := &opLoop{list: source, i: i, x: x, when: is}
	one := &opWriter{merging: w.merging}
	if hasPatchAnchors(item.source) {
		panic(w.Unsupported("additions in an element of a JSON patch"))
	}
	fields := w.mapping(without(item.source, e.list.key), read.PlaceOf(x, e.at.Elem()), append(slices.Clone(e.path), mutating.Element))
	if hasKeyedLists(fields) {
		panic(w.Unsupported("a JSON patch of lists in lists"))
	}
	one.edits(fields, here.at(cel.Func(cel.FuncString, i)), loop)
	one.add(operation{when: i.Compare(cel.Greater, cel.Int(0)), loop: loop, op: "move", from: here.at(cel.Func(cel.FuncString, i)), at: here.below("0")})
	missing := cel.Not(w.Binders.Exists(source, read.Singular(e.name), has))
	one.parent(cel.Bool{}, e.at, here, cel.List(), nil)
	one.add(operation{when: missing, op: "add", at: here.below("0"), value: writtenMap(w.merging.Lowering, item.source, e.at.Elem(), "")})
	return one.ops
}

// hasKey is: an element has a key, which may be missing.
func hasKey(elem read.Place, key string, id cel.Value) cel.Bool {
	return elem.Field(key).Soft(false, func(v cel.Value) cel.Bool { return v.Eq(id) })
}

// hasKeyedLists tells of edits of elements.
func hasKeyedLists(edits []edit) bool {
	return slices.ContainsFunc(edits, func(e edit) bool { return e.list != nil || hasKeyedLists(e.fields) })
}
