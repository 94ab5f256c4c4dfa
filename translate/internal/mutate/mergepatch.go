package mutate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/pattern"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A patchStrategicMerge is read as what it changes in the object, and what it asks: a
// condition anywhere but in an element of a list decides about all of it.
//
//	spec:
//	  +(hostNetwork): false           set where it is not there
//	  (nodeName): "a*"                asked
//	  containers:
//	  - (image): "*:latest"           selects elements
//	    imagePullPolicy: Always       set in those
//
// What it changes becomes an apply configuration where that says it (mergeapply.go), or else
// a JSON patch (patchops.go).

// A patch is what a mutate rule does.
type patch struct {
	filling   read.Demands // of the variables, before anything is asked
	asked     partial.Bool // before anything is changed
	mutations []mutating.Mutation
	parts     []mutating.Mutation // the same in two steps, where that is shorter
	effects   []effect            // of parts that see what the ones before made
	edits     []edit              // of a merge that is one mutation
}

// An edit is a change of one field.
type edit struct {
	name   string
	key    cel.Value  // in place of name: one that is known at run time
	path   []string   // of the field, from the root of the object
	at     read.Place // the field
	when   cel.Bool   // it is changed only there
	value  *policy.Node
	set    cel.Value // the value, of a text or a number
	remove bool
	guard  cel.Bool // the rule asks that for all of it; zero where it asks nothing, or somebody has asked
	// struck and plain are a value that is a map, in an apply configuration and in a JSON patch;
	// zero before they are worked out.
	struck, plain cel.Value
	fields        []edit    // of a map that is merged
	list          *listEdit // of a list that is merged
}

// A listEdit is a change of elements of a list with a key.
type listEdit struct {
	key    string
	unique bool // an API server refuses elements of one key
	items  []itemEdit
}

// An itemEdit is an element that is written, or, where x is set, what a template makes of
// those elements x that select holds of.
type itemEdit struct {
	id, x  cel.Value // the key of a written one, or the variable of a template
	asked  cel.Bool  // what a template asks of an element
	chosen cel.Bool  // that, and something of it is changed
	guard  cel.Bool  // what the rule of a template asks; zero for nothing
	fields []edit
	source *policy.Node
}

// A merging walks a patch.
type merging struct {
	*read.Lowering
	kind schema.GVK
	// gates are the conditions that have been met: of the whole patch, or of an element.
	gates *[]cel.Bool
	// inTest tells of an element that is nothing but a test.
	inTest bool
	// given are the paths of parents that are there, for a mutation in front has made them.
	given [][]string
}

// patchOf lowers what a rule, or an entry of a foreach, does.
func patchOf(l *read.Lowering, m *policy.Mutate) patch {
	l.SetPos(m.Pos)
	switch {
	case m.ForEach != nil:
		return loopsOf(l, m.ForEach)
	case m.Merge != nil:
		return mergePatch(l, m.Merge)
	case m.JSON != nil:
		return jsonPatch(l, m.JSON)
	}
	panic(l.Unsupported("an empty mutate rule"))
}

// mergePatch lowers a patchStrategicMerge.
func mergePatch(l *read.Lowering, n *policy.Node) (out patch) {
	m := merging{Lowering: l, kind: l.Target.GVK, gates: &[]cel.Bool{}}
	edits := m.mapping(n, l.Object.V, nil)
	asked := cel.And(*m.gates...)
	out.filling = query.Filling(l, n)
	out.asked = partial.Sure(asked)
	if len(edits) > 0 && !asked.IsFalse() {
		out.mutations, out.effects = m.mutations(edits, n), []effect{m.effectOf(edits, nil)}
		out.parts = m.parts(edits, n, out.mutations)
		if len(out.mutations) == 1 && (out.mutations[0].Type == mutating.ApplyConfiguration || !writesElements(edits)) {
			out.edits = m.workedOut(edits, "Object")
		}
	}
	return out
}

// mapping is what a map of a patch changes.
func (m *merging) mapping(n *policy.Node, at read.Place, path []string) (out []edit) {
	if at.Dynamic() {
		m.SetPos(n.Pos)
		panic(m.Unsupported("a patch of what has no known type"))
	}
	seen := map[string]bool{}
	for _, f := range sortedFields(n) {
		m.SetPos(f.Pos)
		kind, name := splitPatchAnchor(f.Key)
		if seen[name] || name == "$patch" {
			panic(m.Unsupported("a directive, or a key that stands twice, in a patch"))
		}
		seen[name] = true
		if kind == anchor.Conditional || kind == anchor.Global {
			m.condition(kind, name, f.Value, at)
			continue
		}
		if kind == anchor.Equality || kind == anchor.Negation || kind == anchor.Existence {
			if f.Value.Kind == policy.Null && kind != anchor.Equality {
				continue
			}
			panic(m.Unsupported("the anchor of " + f.Key + " in a patch"))
		}
		if e, ok := m.field(kind == addition, name, f, at, path); ok {
			out = append(out, e)
		}
	}
	return out
}

// field is what a key of a patch changes.
func (m *merging) field(adds bool, name string, f policy.Field, at read.Place, path []string) (edit, bool) {
	e := edit{name: name, when: cel.True()}
	if query.HasVariables(&policy.Node{Kind: policy.String, Str: name}) {
		if at.Kind() != schema.Map || adds {
			panic(m.Unsupported("a variable in a key of a patch"))
		}
		e.key = writtenText(m.Lowering, &policy.Node{Kind: policy.String, Str: name, Pos: f.Pos}, read.StringType())
		e.at, e.path = read.Place{Expr: at.Expr, Typ: elemOf(at.Typ), Guards: at.Guards}, append(slices.Clone(path), "*")
	} else {
		e.at, e.path = at.Field(name), append(slices.Clone(path), name)
	}
	if e.at.Never || e.at.Dynamic() {
		panic(m.Unsupported("the field " + name + ", which the kind does not have or which may be anything,"))
	}
	switch {
	case adds && e.at.Certain():
		return e, false
	case adds:
		if f.Value.Kind == policy.Null || isEmptyMap(f.Value) {
			return e, false
		}
		e.when, e.value = cel.Not(e.at.Found()), f.Value
		if f.Value.Kind != policy.Map && f.Value.Kind != policy.List {
			e.set = written(m.Lowering, f.Value, e.at.Typ, "")
		} else {
			written(m.Lowering, f.Value, e.at.Typ, "") // which may refuse it
		}
		return e, true
	case f.Value.Kind == policy.Null:
		e.remove = true
		return e, true
	case f.Value.Kind == policy.Map:
		if kind := e.at.Kind(); kind != schema.Object && kind != schema.Map {
			panic(unfit(m.Lowering, f.Value))
		}
		e.fields = m.mapping(f.Value, e.at, e.path)
		return e, len(e.fields) > 0
	case f.Value.Kind == policy.List:
		return m.listField(e, f.Value)
	}
	e.value, e.set = f.Value, written(m.Lowering, f.Value, e.at.Typ, "")
	return e, true
}

// condition notes what a key asks. It must be there.
func (m *merging) condition(kind anchor.Kind, name string, n *policy.Node, at read.Place) {
	if kind == anchor.Conditional && m.inTest {
		panic(m.Unsupported("conditions of both kinds in an element of a list"))
	}
	if m.Trigger != nil && n.Kind == policy.String && query.HasVariables(n) {
		n = pattern.Filled(m.Lowering, n)
	}
	if scalar.IsWild(name) || query.HasVariables(n) || n.Kind == policy.Null || anyKey(n, func(k anchor.Kind) bool { return k == addition }) {
		panic(m.Unsupported("a condition of a patch with a wildcard key, a variable, null or an addition in it"))
	}
	v := at.Matched(name)
	if v.Never {
		*m.gates = append(*m.gates, cel.False())
		return
	}
	switch n.Kind {
	case policy.Map, policy.List:
		*m.gates = append(*m.gates, pattern.Conditional(m.Lowering, at, name, n))
		return
	}
	switch have := v.Kind(); {
	case have == schema.Map || have == schema.Object || have == schema.List:
		*m.gates = append(*m.gates, cel.False()) // which have no text
	case name == "name" && n.Kind == policy.String && (n.Str == "*" || n.Str == "?*") && v.Certain():
		// Elements without a name are left alone, and no API server takes them.
	case have == schema.String && (v.Typ.Format == schema.AnyText || read.IsPlain(v.Typ)) && n.Kind == policy.String,
		have == schema.Bool && n.Kind == policy.Bool, have == schema.Int && n.Kind == policy.Int:
		*m.gates = append(*m.gates, pattern.Conditional(m.Lowering, at, name, n))
	default:
		panic(m.Unsupported("a condition of a patch whose value is of another type"))
	}
}

// listField is what a list of a patch changes.
func (m *merging) listField(e edit, n *policy.Node) (edit, bool) {
	if e.at.Kind() != schema.List {
		panic(unfit(m.Lowering, n))
	}
	how, known := listMergeOf(m.kind, e.path)
	if !known {
		panic(m.Unsupported("a list of a kind of which nobody knows how Kyverno merges it"))
	}
	maps := len(n.Items) > 0 && n.Items[0].Kind == policy.Map
	var rest, anchored []*policy.Node
	for _, item := range n.Items {
		switch {
		case !hasPatchAnchors(item):
			rest = append(rest, item)
		case !maps || item.Kind != policy.Map:
			panic(m.Unsupported("anchors in a list that does not begin with a map"))
		case anyKey(item, func(k anchor.Kind) bool { return k == anchor.Global }):
			m.test(e.at, item)
		default:
			anchored = append(anchored, item)
		}
	}
	rest = append(rest, anchored...) // in the form that they have for an element, which comes last
	switch {
	case len(rest) == 0 && len(n.Items) > 0:
		return e, false
	case how.Path != nil && len(how.Keys) != 1:
		panic(m.Unsupported("a list that is merged as a set, or by several keys,"))
	case how.Path != nil:
		return m.keyedList(e, how, rest)
	case slices.ContainsFunc(rest, hasPatchAnchors):
		panic(m.Unsupported("elements with anchors in a list without a key"))
	}
	whole := *n
	whole.Items = rest
	e.value, e.set = &whole, written(m.Lowering, &whole, e.at.Typ, "")
	return e, true
}

// test is: the list is there, and some element is as the test says. (An empty list, which
// passes too, is not there once the API server has read it.)
func (m *merging) test(list read.Place, item *policy.Node) {
	if list.Elem().Kind == schema.Any {
		panic(m.Unsupported("a test of elements of which no type is known"))
	}
	found := list.Soft(false, func(v cel.Value) cel.Bool {
		return m.Binders.Exists(v, read.Singular(list.Expr.LastField()), func(x cel.Value) cel.Bool {
			one := *m
			one.gates, one.inTest = &[]cel.Bool{}, true
			one.mapping(item, read.PlaceOf(x, list.Elem()), []string{"*"})
			return cel.And(*one.gates...)
		})
	})
	*m.gates = append(*m.gates, found)
}

// keyedList is what a patch says of elements that are told apart by a key.
func (m *merging) keyedList(e edit, how mutating.KeyedList, items []*policy.Node) (edit, bool) {
	if len(items) == 0 {
		return e, false
	}
	key := how.Keys[0]
	e.list = &listEdit{key: key, unique: how.Unique}
	elem := e.at.Elem()
	path := append(slices.Clone(e.path), mutating.Element)
	var ids []cel.Value
	templates := 0
	for _, item := range items {
		if item.Kind != policy.Map {
			panic(unfit(m.Lowering, item))
		}
		id := item.Get(key)
		one := *m
		one.gates = &[]cel.Bool{}
		switch {
		case id != nil && (!hasPatchAnchors(item) || key == "name" && onlyAdds(item)):
			out := itemEdit{id: written(one.Lowering, id, fieldType(one.Lowering, elem, policy.Field{Key: key, Pos: id.Pos}), ""), source: item}
			for _, other := range ids {
				if cel.Equal(other, out.id) || !other.IsText() || !out.id.IsText() {
					panic(m.Unsupported("several elements of a patch that may have the same key"))
				}
			}
			ids = append(ids, out.id)
			out.fields = one.mapping(without(item, key), existing(e.at, key, out.id, m.Binders), path)
			e.list.items = append(e.list.items, out)
		case key != "name" || id != nil:
			panic(m.Unsupported("an element of a patch that stands for others, of a list whose elements have no names or with a name of its own,"))
		default:
			if templates++; templates > 1 {
				panic(m.Unsupported("several templates of the elements of a list"))
			}
			x, release := m.Binders.Bind(read.Singular(e.name))
			defer release()
			out := itemEdit{x: x, source: item}
			out.fields = one.mapping(item, read.PlaceOf(x, elem), path)
			if len(out.fields) == 0 {
				continue
			}
			out.asked = cel.And(*one.gates...)
			out.chosen = cel.And(out.asked, someChange(out.fields))
			e.list.items = append(e.list.items, out)
		}
	}
	if templates > 0 && len(ids) > 0 {
		panic(m.Unsupported("elements with anchors and others in one list"))
	}
	return e, len(e.list.items) > 0
}

// someChange is: an element with these edits is changed at all.
func someChange(edits []edit) cel.Bool {
	var any []cel.Bool
	for _, e := range edits {
		switch {
		case e.fields != nil:
			any = append(any, someChange(e.fields))
		case e.remove:
			return cel.True() // it counts as one, whatever is there
		default:
			any = append(any, e.when)
		}
	}
	return cel.Or(any...)
}

// existing is the element of a list that has a key.
func existing(list read.Place, key string, id cel.Value, binders *cel.Scope) read.Place {
	of := binders.Filter(read.ListOf{V: list}.Source(false), read.Singular(list.Expr.LastField()), func(x cel.Value) cel.Bool { return hasKey(read.PlaceOf(x, list.Elem()), key, id) })
	return read.Place{
		Expr: of.Index(cel.Int(0)), Typ: list.Elem(),
		Guards: []read.Guard{{Cond: of.Size().Compare(cel.Greater, cel.Int(0))}},
	}
}

// without is a map without a key.
func without(n *policy.Node, key string) *policy.Node {
	out := *n
	out.Fields = slices.DeleteFunc(slices.Clone(n.Fields), func(f policy.Field) bool { return f.Key == key })
	return &out
}

// addition is the anchor +(k), which only patches have.
const addition = anchor.Global + 1

// additionSyntax is a key that is added.
var additionSyntax = regexp.MustCompile(`^\+\((.+)\)$`)

// splitPatchAnchor reads a key of a patch.
func splitPatchAnchor(key string) (anchor.Kind, string) {
	if m := additionSyntax.FindStringSubmatch(key); m != nil {
		return addition, m[1]
	}
	if kind, name := anchor.Split(key); strings.TrimSpace(key) == key {
		return kind, name
	}
	return anchor.Plain, key
}

func sortedFields(n *policy.Node) []policy.Field {
	out := slices.Clone(n.Fields)
	slices.SortStableFunc(out, func(a, b policy.Field) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// anyKey tells of a key with an anchor, at any depth.
func anyKey(n *policy.Node, is func(anchor.Kind) bool) bool {
	return slices.ContainsFunc(n.Items, func(item *policy.Node) bool { return anyKey(item, is) }) ||
		slices.ContainsFunc(n.Fields, func(f policy.Field) bool {
			kind, _ := splitPatchAnchor(f.Key)
			return is(kind) || anyKey(f.Value, is)
		})
}

func hasPatchAnchors(n *policy.Node) bool {
	return anyKey(n, func(k anchor.Kind) bool { return k != anchor.Plain })
}

func onlyAdds(n *policy.Node) bool {
	return !anyKey(n, func(k anchor.Kind) bool { return k != anchor.Plain && k != addition })
}

// Kyverno's merge goes through all of the object: in each list that it knows a key of, it keeps
// the last of the elements that have the same key, whether or not the patch names the list, and
// whether or not its conditions hold. Natively only what the patch says is changed, and no
// expression of a readable length would take such elements away everywhere. So they stay, and
// the rule is told of.

// merges tells of a rule with a patchStrategicMerge.
func merges(m *policy.Mutate) bool {
	return m.Merge != nil || slices.ContainsFunc(m.ForEach, func(f *policy.MutateForEach) bool { return f.Merge != nil })
}

// noteCollapsed tells of the lists in which Kyverno keeps one element of each key: of those that
// the patch names, for there somebody may count on it, else in a note.
func noteCollapsed(l *read.Lowering, targets []native.Target) {
	if l.Rule.Expansion != "" || !merges(l.Rule.Mutate) { // what is expanded has the lists of its Pods
		return
	}
	keys := map[string]bool{}
	patchedKeys(l.Rule.Mutate.Merge, keys)
	for _, f := range l.Rule.Mutate.ForEach {
		patchedKeys(f.Merge, keys)
	}
	var names, patched []string
	for _, t := range targets {
		for _, list := range keyedLists(t.GVK) {
			name := list.Path[len(list.Path)-1]
			if list.Unique || list.Path[0] == "status" {
				continue
			}
			if names = append(names, name); keys[name] {
				patched = append(patched, name)
			}
		}
	}
	switch {
	case len(patched) > 0:
		slices.Sort(patched)
		l.SetPos(l.Rule.Pos)
		l.Note(diag.ElementsOfOneKey, "of elements of the object that have the same key in a list that is patched (%s), Kyverno keeps the last; natively all stay",
			strings.Join(slices.Compact(patched), ", "))
	case len(names) > 0:
		slices.Sort(names)
		*l.Notes = append(*l.Notes, diag.Notef(l.Rule.Pos, diag.ElementsOfOneKey,
			"of elements of the object that have the same key in a list (%s), Kyverno keeps the last, though the patch does not name the list; natively all stay",
			strings.Join(slices.Compact(names), ", ")))
	}
}

// patchedKeys are the keys of a patch, whatever their anchors.
func patchedKeys(n *policy.Node, keys map[string]bool) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		patchedKeys(item, keys)
	}
	for _, f := range n.Fields {
		_, key := anchor.Split(f.Key)
		keys[strings.TrimSuffix(strings.TrimPrefix(key, "+("), ")")] = true
		patchedKeys(f.Value, keys)
	}
}
