package query

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/compare"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// eval lowers a JMESPath expression, with cur as the current node. A nil cur is
// the root of the context.
func eval(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	read.Step(l)
	return read.Bounded(l, evalNode(l, e, cur))
}

func evalNode(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	switch e.Op {
	case jmespath.Current:
		if cur == nil {
			panic(l.Unsupported("the whole context as a value"))
		}
		return *cur
	case jmespath.Field:
		return fieldOf(l, e, cur)
	case jmespath.Sub:
		if j, ok := fieldOfRequest(l, e, cur); ok {
			return known(l, l.Read(j))
		}
		left := eval(l, e.Args[0], cur)
		return read.InEach(left, func(j read.Operand) read.Operand { return sub(l, j, e.Args[1]) })
	case jmespath.Pipe:
		return pipe(l, e, cur)
	case jmespath.Index, jmespath.Slice, jmespath.Flatten, jmespath.Projection, jmespath.ValueProjection, jmespath.Filter:
		return evalElements(l, e, cur)
	case jmespath.MultiList, jmespath.MultiHash:
		return multi(l, e, cur)
	case jmespath.Or:
		return firstTrue(l, e, cur)
	case jmespath.And:
		return and(l, e, cur)
	case jmespath.Not:
		of := eval(l, e.Args[0], cur).Softly()
		d, _ := read.DemandsOf(l, of)
		return read.BoolOf(cel.Not(read.Truthy(l, of))).Demanding(d)
	case jmespath.Compare:
		return comparedTo(l, e, cur)
	case jmespath.Literal:
		if e.Text != nil {
			return filledLiteral(l, e.Text)
		}
		return read.LitOf(e.Value)
	case jmespath.RawString: // a '...' that holds variables: a text, whatever they are
		return read.InEach(Template(l, e.Text), func(j read.Operand) read.Operand { return toString(l, j) })
	case jmespath.Call:
		return call(l, e, cur)
	}
	panic(l.Unsupported("the expression " + e.String()))
}

// evalElements lowers what is about the elements of a list, or the values of a map.
func evalElements(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	if cur == nil && takesContext(e) {
		return read.LitOf(nil)
	}
	switch e.Op {
	case jmespath.Index:
		left := eval(l, e.Args[0], cur)
		return read.InEach(left, func(j read.Operand) read.Operand { return index(l, j, e.Num) })
	case jmespath.Slice:
		panic(l.Unsupported("a slice"))
	case jmespath.Flatten:
		return flatten(l, errorless(l, e.Args[0], cur))
	case jmespath.Projection:
		return projection(l, e.Args[0], e.Args[1], cur)
	case jmespath.Filter:
		left := errorless(l, e.Args[0], cur)
		return read.InEach(left, func(j read.Operand) read.Operand { return filterBy(l, read.AsSequence(l, j), e.Args[2], e.Args[1]) })
	}
	left := errorless(l, e.Args[0], cur) // a projection of values
	return read.InEach(left, func(j read.Operand) read.Operand {
		if j.Form == read.ImagesForm {
			return imageProjection(l, j.Images, e.Args[1])
		}
		return project(l, values(l, j), e.Args[1])
	})
}

// takesContext tells that e takes the current node for a list: [], [*], [?x], [0]. The
// context is a map, so there they are null.
func takesContext(e *jmespath.Expr) bool {
	left := e.Args[0]
	if left.Op == jmespath.Flatten {
		left = left.Args[0]
	}
	return left.Op == jmespath.Current && e.Op != jmespath.ValueProjection
}

// pipe is left | right.
func pipe(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	return read.InEach(eval(l, e.Args[0], cur).Softly(), func(j read.Operand) read.Operand {
		if j.Form == read.ErrorForm { // whatever right makes of it
			return j
		}
		return eval(l, e.Args[1], &j)
	}).Softly()
}

func and(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	a := eval(l, e.Args[0], cur).Softly()
	if a.Form == read.ErrorForm {
		return a
	}
	d, _ := read.DemandsOf(l, a)
	taken := read.Truthy(l, a)
	b := Knowing(l, taken, func(l *read.Lowering) read.Operand { return eval(l, e.Args[1], cur) })
	if isPredicate(a) && isPredicate(b) {
		both := read.BoolOf(cel.And(a.V.Expr.AsBool(), b.V.Expr.AsBool()))
		return both.Demanding(d, read.DemandsWhere(taken, b.Anyway(), read.Demands{}))
	}
	return read.Choice(taken, b, a).Demanding(d)
}

// comparedTo is left == right, and the like.
func comparedTo(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	if slices.ContainsFunc(e.Args[:2], func(arg *jmespath.Expr) bool { return mayFail(arg) && isProjected(arg) }) {
		panic(l.Unsupported("a comparison of a list whose elements may be errors"))
	}
	a, b := eval(l, e.Args[0], cur).Softly(), eval(l, e.Args[1], cur).Softly()
	ofA, _ := read.DemandsOf(l, a)
	ofB, _ := read.DemandsOf(l, b)
	return compare.Compare(l, scalar.Relation(e.Comparator.String()), a, b).Demanding(ofA, ofB)
}

// isProjected tells of an expression with a projection in it.
func isProjected(e *jmespath.Expr) bool { return hasOp(e, jmespath.Projection) }

// Knowing builds something in a context where a condition is known to hold.
func Knowing[T any](l *read.Lowering, c cel.Bool, build func(l *read.Lowering) T) T {
	l = l.Inside()
	l.Facts = append(l.Facts[:len(l.Facts):len(l.Facts)], c)
	return build(l)
}

// known is j without the guards that are known to hold.
func known(l *read.Lowering, j read.Operand) read.Operand {
	if j.Form != read.PlaceForm || len(l.Facts) == 0 || j.V.Never {
		return j
	}
	if slices.ContainsFunc(j.V.Guards, func(g read.Guard) bool { return !read.Knows(l, g.Cond) }) {
		return j
	}
	return j.Settled()
}

// sub is left.right, where a missing left stays an error.
func sub(l *read.Lowering, left read.Operand, right *jmespath.Expr) read.Operand {
	if left.Form == read.ErrorForm {
		return left
	}
	if left.Form == read.PlaceForm && !left.V.Certain() && beginning(right).Op != jmespath.Field {
		inner := left.Settled()
		return behindGuards(l, left.V, eval(l, right, &inner), right)
	}
	return eval(l, right, &left)
}

// beginning is what an expression begins with: the call, in split(@, '-')[0].
func beginning(e *jmespath.Expr) *jmespath.Expr {
	switch e.Op {
	case jmespath.Index, jmespath.Sub, jmespath.Pipe:
		return beginning(e.Args[0])
	}
	return e
}

// behindGuards is j, which right gives of v, where v is found. Elsewhere it is missing,
// or what right gives of null.
func behindGuards(l *read.Lowering, v read.Place, j read.Operand, right *jmespath.Expr) read.Operand {
	if v.Never {
		return read.Operand{Form: read.ErrorForm, Hint: "missing"}
	}
	called := beginning(right).Op == jmespath.Call
	of, d := j.Freed()
	d = read.DemandsWhere(v.Found(), d, read.Demands{})
	switch {
	case j.Form == read.PlaceForm && !(called && !v.Shaped().IsTrue()): // a function of null is no null
		of.V.Guards = slices.Concat(v.Guards, of.V.Guards)
		return of.Demanding(d)
	case j.Form == read.SequenceForm:
		return read.SequenceOf(read.Guarded{Sequence: of.S, V: v, Called: called}).Demanding(d)
	}
	w, c := v.Demanded()
	elsewhere := read.Operand{Form: read.ErrorForm, Hint: "missing"}
	if !w.Shaped().IsTrue() {
		null := read.LitOf(nil)
		elsewhere = read.Choice(w.KeysFound(), eval(l, right, &null), elsewhere)
	}
	return read.Choice(c, read.Choice(w.Found(), j, elsewhere), read.TypeError("value"))
}

func multi(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	switch {
	case cur == nil:
	case cur.Form == read.ChoiceForm: // of which one may be null
		return read.InEach(*cur, func(j read.Operand) read.Operand { return multi(l, e, &j) })
	case cur.Form == read.LitForm && cur.Lit == nil, cur.Form == read.ErrorForm:
		return *cur
	case cur.Form == read.SequenceForm && !cur.S.Null().IsFalse(), cur.Form == read.PlaceForm && !cur.V.Certain(): // null where it is not found
		inner := cur.Settled()
		return read.Choice(read.Present(l, *cur), multi(l, e, &inner), read.LitOf(nil))
	}
	var parts []read.Operand
	for _, arg := range e.Args {
		j := eval(l, arg, cur).Softly()
		if j.Form == read.ErrorForm {
			return j
		}
		parts = append(parts, j)
	}
	if e.Op == jmespath.MultiHash {
		return read.SelectionOf(read.HashForm, e.Keys, parts)
	}
	return read.SelectionOf(read.MultiForm, e.Keys, parts)
}

// firstTrue is a || b: b is only evaluated where a is not taken.
func firstTrue(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	a := eval(l, e.Args[0], cur).Softly()
	d, _ := read.DemandsOf(l, a)
	b := Knowing(l, cel.Not(read.Truthy(l, a)), func(l *read.Lowering) read.Operand { return eval(l, e.Args[1], cur).Softly() })
	return or(l, a, b).Demanding(d)
}

// or is a || b: b where a is null or falsy.
func or(l *read.Lowering, a, b read.Operand) read.Operand {
	return read.From(func(a read.Operand) read.Operand { return orElse(l, a, b) }, a)
}

// orElse is or, of what demands nothing itself.
func orElse(l *read.Lowering, a, b read.Operand) read.Operand {
	if a.Form == read.ErrorForm {
		return a
	}
	if a.Form == read.LitForm {
		if read.IsTruthy(a.Lit) {
			return a
		}
		return b
	}
	if list, ok := b.Lit.([]any); ok && len(list) == 0 && b.Anyway().None() { // a list or [] is the list, empty where it is missing
		if s := read.AsSequence(l, a); s != nil && (a.Form == read.SequenceForm || a.V.Kind() == schema.List) {
			return read.SequenceOf(read.OrEmpty{Sequence: s})
		}
	}
	if isPredicate(a) && isPredicate(b) {
		d := read.DemandsWhere(a.V.Expr.AsBool(), read.Demands{}, b.Anyway())
		return read.BoolOf(cel.Or(a.V.Expr.AsBool(), b.V.Expr.AsBool())).Demanding(d)
	}
	if a.Form == read.ChoiceForm {
		return a.With(or(l, *a.Then, b), or(l, *a.Els, b))
	}
	taken := read.Truthy(l, a)
	if a.Form == read.PlaceForm && a.V.Kind() == schema.Int {
		taken = a.V.Found() // never falsy
	}
	chosen := a.TruthyNow()
	if a.Form == read.PlaceForm && a.V.Kind() == schema.Bool { // of a boolean, only true is taken
		chosen = read.LitOf(true)
	}
	return read.Choice(taken, chosen, b)
}

// isPredicate tells that j is a boolean that an expression of ours gives.
func isPredicate(j read.Operand) bool {
	return j.Form == read.PlaceForm && j.V.Certain() && j.V.Kind() == schema.Bool && j.V.Origin == read.FromPredicate
}

// Outside is query of an expression that stands outside {{ }}.
func Outside(l *read.Lowering, e *jmespath.Expr) read.Operand {
	l = l.Inside()
	l.DeleteRewrite = false
	return query(l, e)
}

// query is an expression on the whole context.
func query(l *read.Lowering, e *jmespath.Expr) read.Operand {
	l = l.Inside()
	l.Loaded = loaded(l, e)
	j := eval(l, e, nil)
	j = whereLoaded(l, e, j)
	if !l.On(native.Delete) && Mentions(e.String(), "images") { // an error where Kyverno cannot load them, read or only mentioned
		j = j.Demanding(allImages(l).Anyway())
	}
	return j
}

// errorless is e with what is an error for any reason read as null: so do flattening,
// filters and value projections.
func errorless(l *read.Lowering, e *jmespath.Expr, cur *read.Operand) read.Operand {
	j := eval(l, e, cur).Softly()
	d := j.Anyway()
	if d.Unsure {
		panic(l.Unsupported("an expression that may be an error, which is null here,"))
	}
	loading := read.Demands{Loads: d.Loads, Hint: d.Hint, Native: d.Native}
	return read.Choice(cel.And(d.Conds...).Simplify(), j.Undemanding(), read.LitOf(nil)).Demanding(loading).Over(func(j read.Operand) read.Operand {
		if j.Form == read.ErrorForm {
			return read.LitOf(nil)
		}
		if e, ok := j.S.(read.Entries); ok && e.Given {
			e.Given = false
			return read.SequenceOf(e)
		}
		return j
	})
}

// Node lowers a value of the source whose strings may hold variables.
func Node(l *read.Lowering, n *policy.Node) read.Operand {
	if n == nil {
		return read.LitOf(nil)
	}
	l.SetPos(n.Pos)
	switch n.Kind {
	case policy.String:
		return Template(l, ParseTemplate(n.Str, n.Pos))
	case policy.Int:
		return read.LitOf(float64(n.Int))
	case policy.List, policy.Map:
		if !HasVariables(n) {
			return read.LitOf(floats(n.Value()))
		}
		if n.Kind == policy.List {
			var items []read.Operand
			for _, item := range n.Items {
				items = append(items, Node(l, item))
			}
			return read.SelectionOf(read.MultiForm, nil, items)
		}
		var keys []string
		var values []read.Operand
		for _, f := range n.Fields {
			keys = append(keys, f.Key)
			values = append(values, Node(l, f.Value))
		}
		return read.SelectionOf(read.HashForm, keys, values)
	}
	return read.LitOf(n.Value())
}

// HasVariables tells whether any string below n may hold a variable or reference.
func HasVariables(n *policy.Node) bool {
	if n.Kind == policy.String {
		t, d := jmespath.ParseTemplate(n.Str, n.Pos)
		if d != nil {
			return true
		}
		c, ok := t.Constant()
		return !ok || c != n.Str
	}
	return slices.ContainsFunc(n.Items, HasVariables) || slices.ContainsFunc(n.Fields, func(f policy.Field) bool {
		return HasVariables(f.Value) || HasVariables(&policy.Node{Kind: policy.String, Str: f.Key})
	})
}

// floats makes the numbers of a literal float64, the one number type.
func floats(v any) any {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}

// NodeOf is a value as a node of the source, at a position.
func NodeOf(v any, pos diag.Pos) *policy.Node {
	n := &policy.Node{Pos: pos}
	switch v := v.(type) {
	case bool:
		n.Kind, n.Bool = policy.Bool, v
	case float64:
		n.Kind, n.Float = policy.Float, v
		if v == float64(int64(v)) {
			n.Kind, n.Int = policy.Int, int64(v)
		}
	case string:
		n.Kind, n.Str = policy.String, v
	case []any:
		n.Kind = policy.List
		for _, item := range v {
			n.Items = append(n.Items, NodeOf(item, pos))
		}
	case map[string]any:
		n.Kind = policy.Map
		for _, k := range read.SortedKeys(v) {
			n.Fields = append(n.Fields, policy.Field{Key: k, Pos: pos, Value: NodeOf(v[k], pos)})
		}
	}
	return n
}
