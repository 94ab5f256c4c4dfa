package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// eval lowers a JMESPath expression, with cur as the current node. A nil cur is
// the root of the context.
func (l *lowering) eval(e *jmespath.Expr, cur *jval) jval {
	switch e.Op {
	case jmespath.Current:
		if cur == nil {
			panic(l.unsupported("the whole context as a value"))
		}
		return *cur
	case jmespath.Field:
		return l.fieldOf(e, cur)
	case jmespath.Sub:
		left := l.eval(e.Args[0], cur)
		return left.over(func(j jval) jval { return l.sub(j, e.Args[1]) })
	case jmespath.Pipe:
		left := l.eval(e.Args[0], cur).softly()
		return left.over(func(j jval) jval { return l.eval(e.Args[1], &j) }).softly()
	case jmespath.Index:
		left := l.eval(e.Args[0], cur)
		return left.over(func(j jval) jval { return l.index(j, e.Num) })
	case jmespath.Flatten:
		return l.flatten(l.eval(e.Args[0], cur).softly())
	case jmespath.Slice:
		left := l.eval(e.Args[0], cur).softly()
		return left.over(func(j jval) jval { return l.slice(j, e) })
	case jmespath.Projection:
		left := l.eval(e.Args[0], cur).softly()
		return left.over(func(j jval) jval {
			if j.form == errorForm { // unlike those below, this projection passes errors on
				return j
			}
			return l.project(l.elements2(j), e.Args[1])
		})
	case jmespath.ValueProjection:
		left := l.eval(e.Args[0], cur).softly()
		return left.over(func(j jval) jval {
			if j.form == imagesForm {
				return l.imageProjection(j.images, e.Args[1])
			}
			return l.project(l.values(j), e.Args[1])
		})
	case jmespath.Filter:
		left := l.eval(e.Args[0], cur).softly()
		return left.over(func(j jval) jval { return l.project(l.filterBy(l.elements2(j), e.Args[2]), e.Args[1]) })
	case jmespath.MultiList, jmespath.MultiHash:
		return l.multi(e, cur)
	case jmespath.Or:
		return l.or(l.eval(e.Args[0], cur).softly(), l.eval(e.Args[1], cur).softly())
	case jmespath.And:
		a := l.eval(e.Args[0], cur).softly()
		if a.form == errorForm {
			return a
		}
		b := l.given(l.truthy(a), func() jval { return l.eval(e.Args[1], cur) })
		if isPredicate(a) && isPredicate(b) {
			return boolOf(cel.And(a.v.expr.AsBool(), b.v.expr.AsBool()))
		}
		return choice(l.truthy(a), b, a)
	case jmespath.Not:
		return boolOf(cel.Not(l.truthy(l.eval(e.Args[0], cur).softly())))
	case jmespath.Compare:
		return l.compare(e.Name, l.eval(e.Args[0], cur).softly(), l.eval(e.Args[1], cur).softly())
	case jmespath.Literal:
		return litOf(e.Value)
	case jmespath.RawString:
		return l.rawString(e.Text)
	case jmespath.Call:
		return l.call(e, cur)
	}
	panic(l.unsupported("the expression " + e.String()))
}

// given builds something in a context where a condition is known to hold.
func (l *lowering) given(c cel.Bool, build func() jval) jval {
	saved := l.facts
	l.facts = append(saved[:len(saved):len(saved)], c)
	defer func() { l.facts = saved }()
	return build()
}

// known is j without the guards that are known to hold.
func (l *lowering) known(j jval) jval {
	if j.form != valForm || len(l.facts) == 0 || j.v.never {
		return j
	}
	for _, g := range j.v.guards {
		if !slices.ContainsFunc(l.facts, func(f cel.Bool) bool { return cel.Equal(f.Value, g.cond.Value) }) {
			return j
		}
	}
	return j.settled()
}

func (l *lowering) fieldOf(e *jmespath.Expr, cur *jval) jval {
	if e.Dynamic != nil {
		key := l.template(e.Dynamic)
		if lit, ok := key.lit.(string); ok && key.form == litForm {
			return l.member(cur, lit)
		}
		return l.dynamicField(cur, key)
	}
	return l.member(cur, e.Name)
}

func (l *lowering) member(cur *jval, name string) jval {
	if cur == nil {
		return l.root(name)
	}
	return cur.over(func(j jval) jval { return l.known(l.field(j, name)) })
}

// sub is left.right, where a missing left stays an error.
func (l *lowering) sub(left jval, right *jmespath.Expr) jval {
	if left.form == errorForm {
		return left
	}
	if left.form == valForm && !left.v.certain() {
		switch right.Op {
		case jmespath.Call, jmespath.Projection, jmespath.Filter, jmespath.ValueProjection, jmespath.MultiList, jmespath.MultiHash:
			inner := left.settled()
			return l.behindGuards(left.v, l.eval(right, &inner))
		}
	}
	return l.eval(right, &left)
}

// behindGuards is j, which counts only where v is found: missing or null where v is.
func (l *lowering) behindGuards(v val, j jval) jval {
	if v.never {
		return jval{form: errorForm, hint: "missing"}
	}
	switch j.form {
	case valForm:
		j.v.guards = append(v.guards[:len(v.guards):len(v.guards)], j.v.guards...)
		j.v.opt = cel.Value{}
		return j
	case streamForm:
		return streamOf(guarded{stream: j.s, v: v})
	}
	return choice(v.found(), j, jval{form: errorForm, hint: "missing"})
}

// field is j.name.
func (l *lowering) field(j jval, name string) jval {
	switch j.form {
	case valForm:
		return valOf(j.v.field(name))
	case litForm:
		m, ok := j.lit.(map[string]any)
		if !ok {
			return litOf(nil)
		}
		v, ok := m[name]
		if !ok {
			return jval{form: errorForm, hint: name}
		}
		return litOf(v)
	case hashForm:
		for i, k := range j.keys {
			if k == name {
				return j.multi[i]
			}
		}
		return l.unknownKey(j, name)
	case imagesForm:
		return j.images.named(cel.String(name))
	case imageForm:
		return l.imagePart(j, name)
	case errorForm:
		return j
	}
	return litOf(nil)
}

// dynamicField is the value of a key that is only known at run time.
func (l *lowering) dynamicField(cur *jval, key jval) jval {
	k, ok := l.expr(key)
	if ok && cur != nil && cur.form == imagesForm {
		return cur.images.named(k)
	}
	if cur == nil || cur.form != valForm || !ok || cur.v.kind() != schema.Map {
		panic(l.unsupported("a field whose name is a variable"))
	}
	v := cur.v
	w := val{expr: v.expr.Index(k), typ: v.elem()}
	w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: k.In(v.expr)})
	if v.certain() {
		w.opt = v.expr.OptIndex(k)
	} else if !v.opt.IsZero() {
		w.opt = v.opt.OptIndex(k)
	}
	return valOf(w)
}

// index is j[n]; null beyond the ends.
func (l *lowering) index(j jval, n int) jval {
	switch j.form {
	case litForm:
		if list, ok := j.lit.([]any); ok {
			if n < 0 {
				n += len(list)
			}
			if n >= 0 && n < len(list) {
				return litOf(list[n])
			}
		}
		return litOf(nil)
	case errorForm:
		return j
	case valForm:
		if j.v.kind() == schema.List || j.v.dynamic() {
			return valOf(j.v.item(n))
		}
		return litOf(nil)
	case streamForm, multiForm:
		if item, ok := l.imageItem(j, n); ok {
			return item
		}
		s := l.elements2(j)
		list, ok := s.list(l, false)
		if !ok {
			panic(l.unsupported("an element of a nested projection, before Kubernetes 1.35"))
		}
		return valOf(at(list, &schema.Type{Kind: schema.List, Elem: s.elem()}).item(n)).softly()
	}
	return litOf(nil)
}

// item is the place of a list's element.
func (v val) item(n int) val {
	w := v
	w.guards = v.guards[:len(v.guards):len(v.guards)]
	if v.dynamic() {
		w.guards = append(w.guards, guard{cond: isList(v.expr), shape: true})
		w.opt = cel.Value{}
	}
	i, least := cel.Int(int64(n)), n+1
	if n < 0 {
		i, least = v.expr.Size().Binary("-", cel.Int(int64(-n))), -n
	}
	w.guards = append(w.guards, guard{cond: v.expr.Size().Compare(">=", cel.Int(int64(least))), shape: true})
	w.expr, w.typ = v.expr.Index(i), v.elem()
	switch {
	case n < 0 || v.dynamic():
		w.opt = cel.Value{}
	case v.certain():
		w.opt = v.expr.OptIndex(i)
	case !v.opt.IsZero():
		w.opt = v.opt.OptIndex(i)
	}
	return w
}

// elements2 is a value as the list that a projection goes through; nil where it
// is no list, which gives null.
func (l *lowering) elements2(j jval) stream {
	switch j.form {
	case streamForm:
		return j.s
	case multiForm:
		return l.multiStream(j)
	case litForm:
		list, ok := j.lit.([]any)
		if !ok {
			return nil
		}
		var out concat
		for _, item := range list {
			if item != nil {
				out = append(out, single{litOf(item)})
			}
		}
		return out
	case valForm:
		switch {
		case j.v.never:
			return nil
		case j.v.kind() == schema.List:
			return l.nonNullItems(listOf{v: j.v, hint: l.hint(j.v)})
		case j.v.dynamic():
			return l.nonNullItems(listOf{v: j.v.asList(), hint: l.hint(j.v)})
		}
	}
	return nil
}

// nonNullItems drops null elements, which only lists of unknown type can have.
func (l *lowering) nonNullItems(s listOf) stream {
	if kindOf(s.elem()) != schema.Any {
		return s
	}
	return filtered{of: s, keep: func(_ *lowering, x jval) cel.Bool { return cel.Not(isNull(x.v.expr)) }}
}

// asList is a val of unknown type as a list; where it is none it counts as null.
func (v val) asList() val {
	w := v
	w.guards = append(v.guards[:len(v.guards):len(v.guards)], guard{cond: isList(v.expr), shape: true})
	w.typ = &schema.Type{Kind: schema.List, Elem: anyType()}
	w.opt = cel.Value{}
	return w
}

// hint is the last field on the way to a value, to name its elements after.
func (l *lowering) hint(v val) string { return v.expr.LastField() }

func (l *lowering) values(j jval) stream {
	if j.form == valForm && !j.v.never && (j.v.kind() == schema.Map || j.v.kind() == schema.Object) {
		return entries{v: j.v, values: true}
	}
	if j.form == litForm {
		if m, ok := j.lit.(map[string]any); ok {
			var out concat
			for _, k := range sortedKeys(m) {
				out = append(out, single{litOf(m[k])})
			}
			return out
		}
		return nil
	}
	if j.form == hashForm {
		var out concat
		for _, x := range j.multi {
			out = append(out, single{x})
		}
		return out
	}
	if j.form == valForm && !j.v.dynamic() {
		return nil
	}
	panic(l.unsupported("the values of a map whose type is not known"))
}

func (l *lowering) filterBy(s stream, cond *jmespath.Expr) stream {
	if s == nil {
		return nil
	}
	return inParts(s, func(s stream) stream {
		return filtered{of: s, keep: func(l *lowering, x jval) cel.Bool { return l.truthy(l.perElement(cond, x)) }}
	})
}

// perElement is e of an element, errors of a missing key swallowed. What must be
// there is asked for where the element is in scope, not before.
func (l *lowering) perElement(e *jmespath.Expr, x jval) jval {
	saved := l.found
	l.found = nil
	defer func() { l.found = saved }()
	return l.eval(e, &x).softly()
}

// project is right of each element, nulls dropped.
func (l *lowering) project(s stream, right *jmespath.Expr) jval {
	if s == nil {
		return litOf(nil)
	}
	if right.Op == jmespath.Current {
		return streamOf(s)
	}
	return streamOf(inParts(s, func(s stream) stream {
		return mapped{l: l, of: s, f: func(l *lowering, x jval) jval { return l.perElement(right, x) }}
	}))
}

// flatten is j[]: elements that are lists give their elements, others themselves.
func (l *lowering) flatten(j jval) jval {
	return j.over(func(j jval) jval {
		if j.form == multiForm {
			var out concat
			for _, part := range j.multi {
				out = append(out, l.flatPart(part.softly()))
			}
			return streamOf(out)
		}
		s := l.elements2(j)
		if s == nil {
			return litOf(nil)
		}
		return streamOf(inParts(s, l.flattened))
	})
}

// flattened is the elements of a stream's elements.
func (l *lowering) flattened(s stream) stream {
	switch s := s.(type) {
	case single:
		return l.flatPart(s.j)
	case mapped: // what is missing or null gives no elements anyway
		return flat{l: l, of: s.of, f: func(l *lowering, x jval) stream { return l.flatPart(s.f(l, x)) }}
	}
	switch kindOf(s.elem()) {
	case schema.List, schema.Any:
		return flat{l: l, of: s, f: func(l *lowering, x jval) stream { return l.flatPart(x) }}
	}
	return s
}

// flatPart is one element of a flattened list: a list's elements, or itself.
func (l *lowering) flatPart(j jval) stream {
	switch j.form {
	case imagesForm, imageForm:
		return filtered{of: single{j}, keep: func(l *lowering, _ jval) cel.Bool { return l.present(j) }}
	case streamForm, multiForm:
		return l.elements2(j)
	case litForm:
		if list := l.elements2(j); list != nil {
			return list
		}
		if j.lit == nil {
			return concat{}
		}
		return single{j}
	case errorForm:
		return concat{}
	case choiceForm:
		return branch{j.c, l.flatPart(*j.then), l.flatPart(*j.els)}
	}
	if j.v.never {
		return concat{}
	}
	switch j.v.kind() {
	case schema.List:
		return l.elements2(j)
	case schema.Any:
		list := l.elements2(j)
		one := filtered{of: single{j}, keep: func(_ *lowering, x jval) cel.Bool {
			return cel.And(x.v.found(), cel.Not(isNull(x.v.expr)), cel.Not(isList(x.v.expr)))
		}}
		return concat{list, one}
	}
	return filtered{of: single{j.settled()}, keep: func(*lowering, jval) cel.Bool { return l.present(j) }}
}

func (l *lowering) multi(e *jmespath.Expr, cur *jval) jval {
	if cur != nil {
		if cur.form == litForm && cur.lit == nil {
			return litOf(nil)
		}
		if cur.form == errorForm {
			return *cur
		}
	}
	out := jval{form: multiForm, keys: e.Keys}
	if e.Op == jmespath.MultiHash {
		out.form = hashForm
	}
	for _, arg := range e.Args {
		j := l.eval(arg, cur).softly()
		if j.form == errorForm {
			return j
		}
		out.multi = append(out.multi, j)
	}
	return out
}

// multiStream is a multi-select list as a stream; its nulls count as elements
// only until the first projection, and no reader of streams sees them.
func (l *lowering) multiStream(j jval) stream {
	var out concat
	for _, part := range j.multi {
		p := l.present(part)
		switch {
		case p.IsTrue():
			out = append(out, single{part})
		case p.IsFalse():
		default:
			part := part
			out = append(out, filtered{of: single{part.settled()}, keep: func(l *lowering, _ jval) cel.Bool { return l.present(part) }})
		}
	}
	return out
}

// or is a || b: b where a is null or falsy.
func (l *lowering) or(a, b jval) jval {
	if a.form == errorForm {
		return a
	}
	if a.form == litForm {
		if truth(a.lit) {
			return a
		}
		return b
	}
	if b.form == litForm {
		switch b := b.lit.(type) {
		case []any: // a list or [] is the list, empty where it is missing
			if len(b) == 0 {
				if s := l.elements2(a); s != nil && (a.form == streamForm || a.v.kind() == schema.List) {
					return streamOf(orEmpty{s})
				}
			}
		}
	}
	if isPredicate(a) && isPredicate(b) {
		return boolOf(cel.Or(a.v.expr.AsBool(), b.v.expr.AsBool()))
	}
	return a.over(func(a jval) jval {
		if a.form == valForm && a.v.kind() == schema.Int {
			return choice(a.v.found(), a.settled(), b) // never falsy
		}
		return choice(l.truthy(a), a.settled(), b)
	})
}

// isPredicate tells that j is a boolean that an expression of ours gives.
func isPredicate(j jval) bool {
	return j.form == valForm && j.v.certain() && j.v.kind() == schema.Bool && j.v.typ.Format == predicate
}

// compare is a comparison. Orders are null, hence false, of anything but numbers.
func (l *lowering) compare(op string, a, b jval) jval {
	if b.form != litForm && a.form == litForm {
		a, b = b, a
		op = mirrored(op)
	}
	if op == "==" || op == "!=" {
		eq := l.equal(a, b)
		if op == "!=" {
			eq = cel.Not(eq)
		}
		return boolOf(eq)
	}
	return l.comparison(l.order(op, a, b), cel.And(l.isNumber(a), l.isNumber(b)))
}

// comparison is the order of two values, which is null unless both are numbers.
func (l *lowering) comparison(order, numbers cel.Bool) jval {
	if known, ok := numbers.Const(); ok && !known {
		return litOf(nil)
	} else if ok {
		return boolOf(order)
	}
	j := valOf(at(order.Value, &schema.Type{Kind: schema.Bool, Format: comparison}))
	j.v.guards = []guard{{cond: numbers, shape: true}}
	return j
}

// isNumber is: j is there and a number.
func (l *lowering) isNumber(j jval) cel.Bool {
	return l.holds(j, false, pred{
		lit: func(v any) cel.Bool { _, ok := floatOf(v); return cel.Lit(ok) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Int, schema.Number:
				return cel.True()
			case schema.IntOrString:
				return typeIs(x, "int")
			case schema.Any:
				return isNumber(x)
			}
			return cel.False()
		},
		stream: func(stream) cel.Bool { return cel.False() },
	})
}

func mirrored(op string) string {
	switch op {
	case "<":
		return ">"
	case "<=":
		return ">="
	case ">":
		return "<"
	case ">=":
		return "<="
	}
	return op
}

// equal is JMESPath's ==, type strict; numbers are numbers.
func (l *lowering) equal(a, b jval) cel.Bool {
	if b.form != litForm {
		return l.equalValues(a, b)
	}
	want := b.lit
	return l.holds(a, false, pred{
		lit: func(v any) cel.Bool { return cel.Lit(sameLiteral(v, want)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			if !couldEqual(t, want) {
				return cel.False()
			}
			if b, ok := want.(bool); ok && kindOf(t) == schema.Bool {
				return isBool(x, t, b)
			}
			w, ok := l.literalTree(want)
			if !ok {
				panic(l.unsupported("a comparison with this literal"))
			}
			return x.Eq(w)
		},
		stream:  func(s stream) cel.Bool { return l.streamEquals(s, want) },
		neutral: others(want),
	})
}

func (l *lowering) streamEquals(s stream, want any) cel.Bool {
	list, ok := want.([]any)
	if !ok {
		return cel.False()
	}
	if len(list) == 0 {
		return cel.Not(s.quantify(l, "exists", false, func(jval) cel.Bool { return cel.True() }))
	}
	for _, item := range list {
		if !couldEqual(s.elem(), item) {
			return cel.False()
		}
	}
	got, ok := s.list(l, false)
	w, ok2 := l.literalTree(want)
	if !ok || !ok2 {
		panic(l.unsupported("the comparison of a nested projection, before Kubernetes 1.35"))
	}
	return got.Eq(w)
}

// others are literals unlike v, to stand in for a missing value.
func others(v any) func(*schema.Type) []any {
	return func(*schema.Type) []any {
		switch x := v.(type) {
		case string:
			return []any{x, x + "-"}
		case float64:
			return []any{int64(x), int64(x) + 1}
		case bool:
			return []any{!x}
		}
		return nil
	}
}

func couldEqual(t *schema.Type, lit any) bool {
	switch lit.(type) {
	case nil:
		return kindOf(t) == schema.Any
	case bool:
		return kindOf(t) == schema.Bool || kindOf(t) == schema.Any
	case string:
		return kindOf(t) == schema.String || kindOf(t) == schema.Any || kindOf(t) == schema.IntOrString
	case float64, int64:
		k := kindOf(t)
		return k == schema.Int || k == schema.Number || k == schema.Any || k == schema.IntOrString
	case []any:
		return kindOf(t) == schema.List || kindOf(t) == schema.Any
	}
	return kindOf(t) == schema.Any || kindOf(t) == schema.Map || kindOf(t) == schema.Object
}

// equalValues compares two values that are both of the request.
func (l *lowering) equalValues(a, b jval) cel.Bool {
	if a.form == choiceForm {
		return cel.CondBool(a.c, l.equalValues(*a.then, b), l.equalValues(*a.els, b))
	}
	if b.form == choiceForm {
		return cel.CondBool(b.c, l.equalValues(a, *b.then), l.equalValues(a, *b.els))
	}
	if b.form == litForm {
		return l.equal(a, b)
	}
	if a.form == litForm {
		return l.equal(b, a)
	}
	x, ok := l.expr(a.settled())
	y, ok2 := l.expr(b.settled())
	if !ok || !ok2 {
		panic(l.unsupported("this comparison of two values"))
	}
	pa, pb := l.present(a), l.present(b)
	same := x.Eq(y)
	if a.typ().Kind != b.typ().Kind && a.typ().Kind != schema.Any && b.typ().Kind != schema.Any {
		same = cel.False()
		if numericKind(a.typ()) && numericKind(b.typ()) {
			same = dyn(x).Eq(dyn(y))
		}
	}
	if pa.IsTrue() && pb.IsTrue() {
		return same
	}
	return cel.Or(cel.And(pa, pb, same), cel.And(cel.Not(pa), cel.Not(pb)))
}

func numericKind(t *schema.Type) bool {
	return kindOf(t) == schema.Int || kindOf(t) == schema.Number
}

func (l *lowering) order(op string, a, b jval) cel.Bool {
	want, ok := b.lit.(float64)
	if b.form != litForm || !ok {
		if b.form == litForm {
			return cel.False()
		}
		return l.orderValues(op, a, b)
	}
	n, exact := cel.Double(want), want == float64(int64(want))
	if exact {
		n = cel.Int(int64(want))
	}
	return l.holds(a, false, pred{
		lit: func(v any) cel.Bool {
			f, ok := floatOf(v)
			return cel.Lit(ok && ordered(op, compareFloats(f, want)))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Int, schema.Number:
				return x.Compare(op, n)
			case schema.IntOrString:
				return cel.And(typeIs(x, "int"), x.Compare(op, n))
			case schema.Any:
				return cel.And(isNumber(x), x.Compare(op, n))
			}
			return cel.False()
		},
		stream: func(stream) cel.Bool { return cel.False() },
	})
}

func (l *lowering) orderValues(op string, a, b jval) cel.Bool {
	x, ok := l.expr(a.settled())
	y, ok2 := l.expr(b.settled())
	if !ok || !ok2 || a.form == choiceForm || b.form == choiceForm {
		panic(l.unsupported("this comparison of two values"))
	}
	conds := []cel.Bool{l.present(a), l.present(b)}
	for _, j := range []struct {
		t *schema.Type
		x cel.Value
	}{{a.typ(), x}, {b.typ(), y}} {
		switch {
		case numericKind(j.t):
		case kindOf(j.t) == schema.Any:
			conds = append(conds, isNumber(j.x))
		default:
			return cel.False()
		}
	}
	return cel.And(append(conds, x.Compare(op, y))...)
}

func floatOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func sameLiteral(a, b any) bool {
	if f, ok := floatOf(a); ok {
		g, ok := floatOf(b)
		return ok && f == g
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !sameLiteral(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if v, ok := y[k]; !ok || !sameLiteral(x[k], v) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, map[string]any:
		return false
	}
	return a == b
}

// rawString is a '...' that holds variables: a text, whatever they are.
func (l *lowering) rawString(t *jmespath.Template) jval {
	return l.template(t).over(func(j jval) jval {
		if j.form == litForm {
			return litOf(literalText(j.lit))
		}
		return stringOf(l.text(j))
	})
}
