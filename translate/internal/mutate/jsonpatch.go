package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
)

// Of a patchesJson6902 Kyverno fills the variables in before it reads the text, makes the
// parents of what is added, and removes nothing where nothing is. A variable is native where
// it stands in quotes, and only as long as what it gives ends no quotes.

// A jsonText is a JSON patch with the variables that are in it.
type jsonText struct {
	*read.Lowering
	operations []*policy.Node
	marks      []mark // in the order of the text
}

// A mark stands for a variable, in quotes or not.
type mark struct {
	variable *jmespath.Variable
	quote    byte // 0 for none
}

// The marks that stand for variables: of an index of a foreach, which is a number, and of any
// other, which is read as it stands within quotes only.
const (
	indexMark = "kvap-index-"
	valueMark = "kvap: # "
)

// readJSONPatch reads a JSON patch.
func readJSONPatch(l *read.Lowering, t *policy.Text) jsonText {
	l.SetPos(t.Pos)
	out := jsonText{Lowering: l}
	var b strings.Builder
	for _, part := range query.ParseTemplate(t.Value, t.Pos).Parts {
		switch {
		case part.Ref != nil:
			panic(l.Unsupported("a reference $(...)"))
		case part.Var == nil:
			b.WriteString(part.Text)
		default:
			out.marks = append(out.marks, mark{part.Var, openQuote(b.String())})
			as := valueMark
			if isIndex(part.Var) {
				as = indexMark
			}
			b.WriteString(as + strconv.Itoa(len(out.marks)-1) + ".")
		}
	}
	var ok bool
	if out.operations, ok = policy.PatchOperations(policy.Text{Value: b.String(), Pos: t.Pos}); !ok {
		panic(l.Unsupported("a JSON patch with variables outside of quotes"))
	}
	found := 0
	for _, op := range out.operations {
		found += out.count(op)
	}
	if found != len(out.marks) {
		panic(l.Unsupported("a JSON patch with variables outside of quotes"))
	}
	return out
}

// openQuote is the quote that is open at the end of a text; 0 for none.
func openQuote(text string) (quote byte) {
	line := text[strings.LastIndexByte(text, '\n')+1:]
	for i := range len(line) {
		switch c := line[i]; {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == c && (c == '\'' || line[i-1] != '\\'):
			quote = 0
		}
	}
	return quote
}

// isIndex tells of the index of an element.
func isIndex(v *jmespath.Variable) bool {
	return v.Expr != nil && v.Expr.Op == jmespath.Field && strings.HasPrefix(v.Expr.String(), "elementIndex")
}

// count is how many marks are in values of a node.
func (j jsonText) count(n *policy.Node) (found int) {
	for i := range j.marks {
		for _, mark := range []string{indexMark, valueMark} {
			found += strings.Count(n.Str, mark+strconv.Itoa(i)+".")
		}
	}
	for _, item := range n.Items {
		found += j.count(item)
	}
	for _, f := range n.Fields {
		found += j.count(f.Value)
	}
	return found
}

// filled is a node with its variables where they were.
func (j jsonText) filled(n *policy.Node) *policy.Node {
	out := *n
	for i, v := range j.marks {
		out.Str = strings.ReplaceAll(out.Str, indexMark+strconv.Itoa(i)+".", "{{"+v.variable.Raw+"}}")
		out.Str = strings.ReplaceAll(out.Str, valueMark+strconv.Itoa(i)+".", "{{"+v.variable.Raw+"}}")
	}
	out.Items, out.Fields = slices.Clone(n.Items), slices.Clone(n.Fields)
	for i := range out.Items {
		out.Items[i] = j.filled(out.Items[i])
	}
	for i := range out.Fields {
		out.Fields[i].Value = j.filled(out.Fields[i].Value)
	}
	return &out
}

// jsonPatch lowers a patchesJson6902. What is worked out from the object as it was before
// another operation is a mutation of its own.
func jsonPatch(l *read.Lowering, t *policy.Text) patch {
	text := readJSONPatch(l, t)
	out := patch{filling: text.filling(), asked: partial.Sure(cel.True())}
	if broken := text.unquoted(); !broken.IsFalse() {
		out.asked = partial.MayErr(cel.CondBool(broken, partial.Failing("quoted"), cel.True()))
	}
	var ops []operation
	var paths []string
	var all effect
	flush := func() {
		if len(ops) > 0 {
			all.join(effectOfOperations(ops, nil))
			out.mutations = append(out.mutations, mutating.Mutation{Pos: t.Pos, Type: mutating.JSONPatch, Expr: patchText(ops)})
		}
		ops, paths = nil, nil
	}
	for _, n := range text.operations {
		w := &opWriter{merging: &merging{Lowering: l, kind: l.Target.GVK}}
		w.operation(text, n, nil)
		if need := cel.And(w.needs...); !need.IsTrue() {
			if len(out.mutations)+len(ops) > 0 {
				panic(l.Unsupported("a replacement of what may be missing, behind another operation,"))
			}
			out.asked = out.asked.Then(partial.MayErr(cel.CondBool(need, cel.True(), partial.Failing("value"))))
		}
		path := n.Get("path").Str
		if slices.ContainsFunc(paths, func(before string) bool { return related(before, path, w.added) }) {
			flush()
		}
		ops, paths = append(ops, w.ops...), append(paths, path)
	}
	flush()
	out.effects = []effect{all}
	checkSteps(l, out.mutations)
	return out
}

// related tells that an operation may mean something else behind another: one of them is
// about an index, makes parents that the other makes too, or is above the other.
func related(before, path string, operations int) bool {
	parent := func(p string) string { return p[:strings.LastIndexByte(p, '/')+1] }
	if !strings.HasPrefix(path, "/") || !strings.HasPrefix(before, "/") {
		return true
	}
	if strings.HasPrefix(path+"/", before+"/") || strings.HasPrefix(before+"/", path+"/") {
		return true
	}
	return parent(path) != parent(before) || strings.ContainsAny(path[strings.LastIndexByte(path, '/'):], "-0123456789") || operations > 1
}

// A loopScope is what the operations of an entry of a foreach know: its list, by its path in
// the object, and the element.
type loopScope struct {
	path []string
	loop *opLoop
	elem read.Place
}

// operation writes one operation.
func (w *opWriter) operation(text jsonText, n *policy.Node, in *loopScope) {
	w.SetPos(w.Pos)
	op := n.Get("op").Str
	if n.Get("path") == nil || !strings.HasPrefix(n.Get("path").Str, "/") {
		panic(w.Unsupported("a JSON patch with a path that does not begin with a slash"))
	}
	at, here, loop := w.walkTo(n.Get("path").Str, in, op == "add")
	o := operation{when: cel.True(), op: op, at: here, loop: loop}
	if loop == nil && in != nil {
		panic(w.Unsupported("a JSON patch in a foreach that is not about its elements"))
	}
	switch op {
	case "add", "replace":
		if n.Get("value") == nil || n.Get("value").Kind == policy.Null {
			panic(w.Unsupported("a JSON patch that writes null"))
		}
		value := text.filled(n.Get("value"))
		o.value = written(w.merging.Lowering, value, at.Typ, "")
		if hasEmptyMaps(value) {
			o.value = exactly(w.merging.Lowering, value, at.Typ)
		}
		if op == "replace" && !at.Certain() { // an error where there is nothing; natively it is added
			w.needs = append(w.needs, at.Found())
		}
	case "remove":
		o.when = at.Found()
	default:
		panic(w.Unsupported("the operation " + op + " of a JSON patch"))
	}
	w.add(o)
}

// filling is what the variables demand.
func (j jsonText) filling() (d read.Demands) {
	for _, m := range j.marks {
		of, _ := read.DemandsOf(j.Lowering, query.Variable(j.Lowering, m.variable))
		d = d.And(of)
	}
	return d
}

// unquoted is: some variable of a patch gives a text that ends the quotes in which it stands,
// or that reads otherwise in them, for the element at hand.
func (j jsonText) unquoted() cel.Bool {
	var any []cel.Bool
	for _, m := range j.marks {
		if isIndex(m.variable) {
			continue
		}
		v := query.Variable(j.Lowering, m.variable)
		if v.Form == read.LitForm || read.KindOf(v.Typ()) != schema.String {
			continue
		}
		ends := `["\\\n]`
		if m.quote == '\'' {
			ends = `['\n]`
		}
		said, _ := query.Text(j.Lowering, v)
		any = append(any, said.Matches(ends))
	}
	return cel.Or(any...)
}

// walkTo goes to a path, and makes the parents that are missing where makes is set. loop is
// that of the element which the path goes through.
func (w *opWriter) walkTo(path string, in *loopScope, makes bool) (at read.Place, here pointer, loop *opLoop) {
	at = w.Object.V
	steps := strings.Split(path, "/")[1:]
	for i, step := range steps {
		last := i == len(steps)-1
		if i > 0 && makes && (in == nil || loop != nil) { // a list with elements is there
			w.parent(cel.Bool{}, at, here, emptyFor(at.Typ), loop)
		}
		switch {
		case strings.HasPrefix(step, indexMark):
			if in == nil || loop != nil || !slices.Equal(append([]string{"object"}, steps[:i]...), in.path) || last {
				panic(w.Unsupported("an index of another list than that of the foreach, or an element as a whole, in a JSON patch"))
			}
			loop, at = in.loop, in.elem
			here = here.at(cel.Func(cel.FuncString, loop.i))
		case strings.Contains(step, valueMark):
			panic(w.Unsupported("a variable in a path of a JSON patch"))
		case at.Kind() == schema.List:
			at, here = w.intoList(at, here, step, last, makes, loop)
		case at.Dynamic():
			panic(w.Unsupported("a JSON patch of what has no known type"))
		default:
			name := strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
			at, here = at.Field(name), here.below(name)
			if at.Never {
				panic(w.Unsupported("a path that the kind does not have, " + path + ","))
			}
		}
	}
	return at, here, loop
}

// intoList is a step into a list.
func (w *opWriter) intoList(list read.Place, here pointer, step string, last, makes bool, loop *opLoop) (read.Place, pointer) {
	item := read.PlaceOf(list.Expr.Index(cel.Int(0)), list.Elem())
	switch n, err := strconv.Atoi(step); {
	case last && makes && (step == "-" || step == "-1"):
		return item, here.below("-")
	case last:
		panic(w.Unsupported("an index in a JSON patch"))
	case step == "-1" && makes && loop == nil:
		// The last element, which is made where there is none.
		size := list.Expr.Size()
		has := cel.And(list.Found(), size.Compare(cel.Greater, cel.Int(0)))
		w.add(operation{when: cel.Not(has), op: "add", at: here.below("-"), value: emptyFor(list.Elem())})
		elem := list.Item(-1)
		elem.Guards = []read.Guard{{Cond: has}}
		here = here.at(cel.Func(cel.FuncString, cel.Cond(has, size.Binary(cel.Minus, cel.Int(1)), cel.Int(0))))
		w.made = append(w.made, here.text().String())
		return elem, here
	case err == nil && n >= 0 && list.Elem().Kind != schema.Any:
		return read.PlaceOf(list.Expr.Index(cel.Int(int64(n))), list.Elem()), here.below(step)
	}
	panic(w.Unsupported("the index " + step + " in a JSON patch"))
}

// emptyFor is what a parent of a type is made as.
func emptyFor(t *schema.Type) cel.Value {
	if read.KindOf(t) == schema.List {
		return cel.List()
	}
	return cel.Map()
}

// exactly writes maps and lists as they stand, with those that are empty, for a place of a type.
func exactly(l *read.Lowering, n *policy.Node, t *schema.Type) cel.Value {
	switch n.Kind {
	case policy.Map:
		names, values := make([]string, len(n.Fields)), make([]cel.Value, len(n.Fields))
		for i, f := range n.Fields {
			names[i], values[i] = f.Key, exactly(l, f.Value, fieldType(l, t, f))
		}
		return mapLiteral(names, values)
	case policy.List:
		var items []cel.Value
		for _, item := range n.Items {
			items = append(items, exactly(l, item, elemOf(t)))
		}
		return cel.List(sameTyped(items)...)
	}
	return written(l, n, t, "")
}

func hasEmptyMaps(n *policy.Node) bool {
	return n.Kind == policy.Map && len(n.Fields) == 0 || slices.ContainsFunc(n.Items, hasEmptyMaps) ||
		slices.ContainsFunc(n.Fields, func(f policy.Field) bool { return hasEmptyMaps(f.Value) })
}

// Whole is a value as it stands, for what is made anew: of any type, with what is null, and in
// literals of mixed types, which Kyverno takes in a policy that generates.
func Whole(l *read.Lowering, n *policy.Node) cel.Value {
	l.SetPos(n.Pos)
	switch n.Kind {
	case policy.Map:
		entries := make([]cel.Entry, len(n.Fields))
		for i, f := range n.Fields {
			if query.HasVariables(&policy.Node{Kind: policy.String, Str: f.Key}) {
				l.SetPos(f.Pos)
				panic(l.Unsupported("a variable in a key of what is generated"))
			}
			entries[i] = cel.Entry{Key: cel.String(f.Key), Value: Whole(l, f.Value)}
		}
		return cel.Map(entries...)
	case policy.List:
		items := make([]cel.Value, len(n.Items))
		for i, item := range n.Items {
			items[i] = Whole(l, item)
		}
		return cel.List(items...)
	case policy.Null:
		return cel.Null()
	case policy.String:
		return wholeText(l, n)
	case policy.Float:
		if f, ok := n.Value().(float64); ok {
			return cel.Double(f)
		}
	}
	return constant(l, n.Value(), n, read.AnyType())
}

// wholeText is a text in which there may be variables. One that is a variable and nothing else is
// of the type of that, whatever it is.
func wholeText(l *read.Lowering, n *policy.Node) cel.Value {
	j := query.Template(l, query.ParseTemplate(n.Str, n.Pos))
	l.SetPos(n.Pos)
	if j.Form == read.PlaceForm && j.V.Kind() == schema.Any { // null stays null
		return j.V.Expr
	}
	v, ok := read.Expr(l, j)
	if !ok {
		panic(l.Unsupported("a variable that is not of the request"))
	}
	return v
}
