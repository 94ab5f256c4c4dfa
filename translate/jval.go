package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A jval is what a JMESPath expression gives, as far as it is known when
// compiling. Exactly one form is set: a literal, a value of the request, a list,
// a choice, a selection of several, or an error.
type jval struct {
	form form
	lit  any // nil, bool, float64, int64, string, []any, map[string]any
	v    val
	s    stream
	// of a choice: then where c holds, otherwise els
	c         cel.Bool
	then, els *jval
	multi     []jval
	keys      []string // of a hash, one per multi
	hint      string
	// of images: a group, or the image of the container called key, or of v where
	// key is zero
	images *imageGroup
	key    cel.Value
	hard   bool // of an error: it is not about a missing key, so nothing takes it for null
}

type form int

const (
	litForm    form = iota
	valForm         // v
	streamForm      // s
	choiceForm      // c, then, els
	multiForm       // multi
	hashForm        // keys, multi
	imagesForm      // images: a map of the images of a group
	imageForm       // images, key, v
	errorForm       // reading it strictly is an error; softly it is null
)

func litOf(v any) jval       { return jval{form: litForm, lit: v} }
func valOf(v val) jval       { return jval{form: valForm, v: v} }
func streamOf(s stream) jval { return jval{form: streamForm, s: s} }

// typeError is an error that stays one where a missing key would be null.
func typeError(hint string) jval { return jval{form: errorForm, hint: hint, hard: true} }

func boolOf(b cel.Bool) jval {
	return fold(valOf(at(b.Value, &schema.Type{Kind: schema.Bool, Format: predicate})))
}
func intOf(v cel.Value) jval     { return valOf(at(v, &schema.Type{Kind: schema.Int})) }
func stringOf(v cel.Value) jval  { return valOf(at(v, stringType())) }
func dynamicOf(v cel.Value) jval { return valOf(at(v, anyType())) }

// predicate is the format of a boolean that is an expression of ours, not a value
// of the request: it needs no == true to be one for CEL.
const predicate = "predicate"

// comparison is the format of a predicate that may be null, and where it is null
// reads as false without its guards.
const comparison = "comparison"

// isTrue is: the boolean x of type t is true. Where the type is known, x itself
// says so; the root of an expression is made boolean for CEL where it is emitted.
func isTrue(x cel.Value, t *schema.Type) cel.Bool {
	if kindOf(t) == schema.Bool {
		return x.AsBool()
	}
	return x.Eq(cel.Lit(true).Value)
}

// fold makes a literal of a boolean that is known.
func fold(j jval) jval {
	if b, ok := j.v.expr.AsBool().Const(); ok && j.v.certain() {
		return litOf(b)
	}
	return j
}

func choice(c cel.Bool, then, els jval) jval {
	if v, ok := c.Const(); ok {
		if v {
			return then
		}
		return els
	}
	return jval{form: choiceForm, c: c, then: &then, els: &els}
}

// over applies f to every branch of a choice.
func (j jval) over(f func(jval) jval) jval {
	if j.form != choiceForm {
		return f(j)
	}
	return choice(j.c, j.then.over(f), j.els.over(f))
}

// settled is j inside a context where it is known to be found.
func (j jval) settled() jval {
	if j.form == valForm {
		j.v = j.v.settled()
	}
	return j
}

// softly is j with a missing key read as null.
func (j jval) softly() jval {
	switch j.form {
	case errorForm:
		if j.hard {
			return j
		}
		return litOf(nil)
	case valForm:
		if j.v.never {
			return litOf(nil)
		}
		guards := make([]guard, len(j.v.guards))
		for i, g := range j.v.guards {
			g.shape = true
			guards[i] = g
		}
		j.v.guards = guards
	case streamForm:
		if g, ok := j.s.(guarded); ok {
			g.soft = true
			return streamOf(g)
		}
	case choiceForm:
		return choice(j.c, j.then.softly(), j.els.softly())
	}
	return j
}

// typ is what is known of the type.
func (j jval) typ() *schema.Type {
	switch j.form {
	case valForm:
		if j.v.typ != nil {
			return j.v.typ
		}
	case litForm:
		switch j.lit.(type) {
		case bool:
			return &schema.Type{Kind: schema.Bool}
		case string:
			return stringType()
		case int64:
			return &schema.Type{Kind: schema.Int}
		case float64:
			return &schema.Type{Kind: schema.Number}
		}
	case streamForm:
		return &schema.Type{Kind: schema.List, Elem: j.s.elem()}
	case choiceForm:
		t, u := j.then.typ(), j.els.typ()
		if t.Kind == u.Kind {
			return t
		}
	}
	return anyType()
}

// A pred is a predicate over JMESPath values, by form.
type pred struct {
	lit    func(any) cel.Bool                     // also nil, for null
	value  func(cel.Value, *schema.Type) cel.Bool // a value that is there; of unknown type it may be null
	stream func(stream) cel.Bool                  // a list that is there
	// single tells that value reads its argument once, so that a literal with the
	// same verdict as null may stand in for a missing value.
	neutral func(*schema.Type) []any
}

// holds is p of j. Where strict is set, a missing key is an error; else it is null.
func (l *lowering) holds(j jval, strict bool, p pred) cel.Bool {
	switch j.form {
	case litForm:
		return p.lit(j.lit)
	case errorForm:
		if strict || j.hard {
			return l.error(j)
		}
		return p.lit(nil)
	case choiceForm:
		return l.choose(j, strict, p)
	case streamForm:
		if g, ok := j.s.(guarded); ok && !g.soft {
			g.soft = !strict || !l.reads(g.v, true)
			j.s = g
		}
		null := p.lit(nil)
		got := p.stream(j.s)
		isNull := j.s.null()
		if isNull.IsFalse() || sameIfEmpty(j.s, null, p) {
			return got
		}
		if null.IsTrue() {
			return cel.Or(isNull, got)
		}
		return cel.And(cel.Not(isNull), got)
	case multiForm:
		return p.stream(l.multiStream(j))
	case imagesForm, imageForm:
		panic(l.unsupported("an image, or a map of images, as a value"))
	case hashForm:
		panic(l.unsupported("a comparison of a multi-select hash"))
	}
	return l.valueHolds(j.v, strict, p)
}

// sameIfEmpty tells that p says of a list without elements what it says of null.
// A stream whose source is missing reads as empty, so it need not be asked for then.
func sameIfEmpty(s stream, null cel.Bool, p pred) bool {
	if _, ok := s.(strictList); ok { // it does not read as empty where it is no list
		return false
	}
	of, ok := p.stream(concat{}).Const()
	is, ok2 := null.Const()
	return ok && ok2 && of == is
}

// eitherWay builds what counts where c holds and what counts where it does not. What
// each asks to be there must be there only then.
func (l *lowering) eitherWay(c cel.Bool, then, els func() cel.Bool) (cel.Bool, cel.Bool) {
	if l.found == nil {
		return then(), els()
	}
	outer := l.found
	defer func() { l.found = outer }()
	var needs, otherwise []cel.Bool
	l.found = &needs
	t := then()
	l.found = &otherwise
	e := els()
	switch a, b := cel.And(needs...), cel.And(otherwise...); {
	case cel.Equal(a.Value, b.Value):
		*outer = append(*outer, a)
	default:
		*outer = append(*outer, cel.CondBool(c, a, b))
	}
	return t, e
}

// error is the error j, or, where what must be there is asked for, that nothing is.
func (l *lowering) error(j jval) cel.Bool {
	if l.found == nil {
		return l.failing(j)
	}
	*l.found = append(*l.found, cel.False())
	return cel.False()
}

func (l *lowering) choose(j jval, strict bool, p pred) cel.Bool {
	then, els := l.eitherWay(j.c,
		func() cel.Bool { return l.holds(*j.then, strict, p) },
		func() cel.Bool { return l.holds(*j.els, strict, p) })
	t, tok := then.Const()
	e, eok := els.Const()
	switch {
	case tok && eok && t == e:
		return then
	case tok && eok && t:
		return j.c
	case tok && eok:
		return cel.Not(j.c)
	case eok && !e:
		return cel.And(j.c, then)
	case eok && e:
		return cel.Implies(j.c, then)
	case tok && !t:
		return cel.And(cel.Not(j.c), els)
	case tok && t:
		return cel.Or(j.c, els)
	}
	return cel.CondBool(j.c, then, els)
}

func (l *lowering) valueHolds(v val, strict bool, p pred) cel.Bool {
	null := p.lit(nil)
	value := func(x cel.Value) cel.Bool { return p.value(x, v.typ) }
	isNull, known := null.Const()
	if !known {
		panic(l.unsupported("a comparison of a value that may be null with one that is not known"))
	}
	if strict && l.found != nil {
		*l.found = append(*l.found, v.keysFound())
		strict = false
	}
	if v.typ != nil && v.typ.Format == comparison {
		if got := value(v.expr); !isNull && cel.Equal(got.Value, v.expr) || isNull && cel.Equal(got.Value, cel.Not(v.expr.AsBool()).Value) {
			return got // reads as false where it is null
		}
	}
	if strict {
		l.errs = l.errs || v.mayMiss()
		return v.strict(isNull, value)
	}
	return v.soft(isNull, l.neutralFor(v, isNull, p), value)
}

// neutralFor looks for a literal of the value's type of which p says what it says
// of null.
func (l *lowering) neutralFor(v val, null bool, p pred) cel.Value {
	if v.opt.IsZero() || v.typ == nil || p.value(cel.Ident("?"), v.typ).Count("?") != 1 {
		return cel.Value{}
	}
	cands := candidates(v.typ, &policy.Node{})
	if p.neutral != nil {
		cands = append(cands, p.neutral(v.typ)...)
	}
	for _, c := range cands {
		if got, ok := p.lit(c).Const(); ok && got == null {
			return literal(c)
		}
	}
	return cel.Value{}
}

// present is: j is found and not null.
func (l *lowering) present(j jval) cel.Bool {
	switch j.form {
	case litForm:
		return cel.Lit(j.lit != nil)
	case errorForm:
		if j.hard {
			return l.error(j)
		}
		return cel.False()
	case streamForm:
		return cel.Not(j.s.null())
	case imagesForm, imageForm:
		return l.imagePresent(j)
	case choiceForm:
		return cel.CondBool(j.c, l.present(*j.then), l.present(*j.els))
	case valForm:
		if j.v.never {
			return cel.False()
		}
		if j.v.dynamic() {
			return cel.And(j.v.found(), cel.Not(isNull(j.v.expr)))
		}
		return j.v.found()
	}
	return cel.True()
}

// truthy is JMESPath's truth: not false, null, "", [] or {}.
func (l *lowering) truthy(j jval) cel.Bool {
	if j.form == imagesForm || j.form == imageForm {
		return l.imagePresent(j)
	}
	if b, ok := l.truthOfParts(j); ok {
		return b
	}
	return l.holds(j, false, pred{
		lit: func(v any) cel.Bool { return cel.Lit(truth(v)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Bool:
				return isTrue(x, t)
			case schema.String:
				return x.Ne(cel.String(""))
			case schema.List, schema.Map:
				return x.Size().Compare(">", cel.Int(0))
			case schema.Int, schema.Number:
				return cel.True()
			case schema.Object: // {} is false; the type checker knows no == of an object type
				return dyn(x).Ne(cel.Map())
			case schema.IntOrString:
				return x.Ne(cel.String(""))
			}
			return cel.Not(amongst(x, cel.Null(), cel.Lit(false).Value, cel.String(""), cel.List(), cel.Map()))
		},
		stream: func(s stream) cel.Bool {
			if list, ok := s.list(l, false); ok {
				if _, plain := s.(listOf); plain {
					return list.Size().Compare(">", cel.Int(0))
				}
			}
			return s.quantify(l, "exists", false, func(jval) cel.Bool { return cel.True() })
		},
	})
}

// truthOfParts is the truth of a comparison, which is false where it is null, and
// of && and ||, of which the side that is taken need not be looked at again.
func (l *lowering) truthOfParts(j jval) (cel.Bool, bool) {
	switch {
	case j.form == valForm && j.v.typ != nil && j.v.typ.Format == comparison:
		return j.v.expr.AsBool(), true
	case j.form == choiceForm:
		then, els := l.truthy(*j.then), l.truthy(*j.els)
		switch {
		case cel.Equal(els.Value, j.c.Value):
			return cel.And(j.c, then), true
		case cel.Equal(then.Value, j.c.Value):
			return cel.Or(j.c, els), true
		}
	}
	return cel.Bool{}, false
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

func kindOf(t *schema.Type) schema.Kind {
	if t == nil {
		return schema.Any
	}
	return t.Kind
}

// expr is j as one CEL expression, an error where a key is missing; false where
// there is none.
func (l *lowering) expr(j jval) (cel.Value, bool) {
	switch j.form {
	case litForm:
		return l.literalTree(j.lit)
	case valForm:
		if l.found != nil && j.v.mayMiss() {
			*l.found = append(*l.found, j.v.keysFound())
		} else {
			l.errs = l.errs || j.v.mayMiss()
		}
		if shaped := j.v.shaped(); !shaped.IsTrue() {
			return cel.Cond(shaped, dyn(j.v.expr), dyn(cel.Null())), true
		}
		return j.v.expr, true
	case streamForm:
		return j.s.list(l, true)
	case multiForm:
		return l.multiStream(j).list(l, false)
	case choiceForm:
		a, ok := l.expr(*j.then)
		b, ok2 := l.expr(*j.els)
		if !ok || !ok2 {
			return cel.Value{}, false
		}
		if j.then.typ().Kind != j.els.typ().Kind {
			a, b = dyn(a), dyn(b)
		}
		return cel.Cond(j.c, a, b), true
	}
	return cel.Value{}, false
}

// literalTree is a literal of the policy as a CEL literal.
func (l *lowering) literalTree(v any) (cel.Value, bool) {
	switch v := v.(type) {
	case []any:
		out := make([]cel.Value, len(v))
		for i, item := range v {
			x, ok := l.literalTree(item)
			if !ok {
				return x, false
			}
			out[i] = x
		}
		return cel.List(homogeneous(v, out)...), true
	case map[string]any:
		var out []cel.Entry
		for _, k := range sortedKeys(v) {
			x, ok := l.literalTree(v[k])
			if !ok {
				return x, false
			}
			out = append(out, cel.Entry{Key: cel.String(k), Value: dyn(x)})
		}
		return cel.Map(out...), true
	case float64:
		if v == float64(int64(v)) {
			return cel.Int(int64(v)), true
		}
		return cel.Double(v), true
	}
	return literal(v), true
}

// homogeneous wraps literals of mixed types in dyn, which CEL's lists want.
func homogeneous(vs []any, out []cel.Value) []cel.Value {
	same := true
	kind := func(v any) schema.Kind {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			return schema.Int // as which it is written
		}
		return litOf(v).typ().Kind
	}
	for i := 1; i < len(vs); i++ {
		same = same && kind(vs[i]) == kind(vs[0]) && kind(vs[i]) != schema.Any
	}
	if same {
		return out
	}
	for i := range out {
		out[i] = dyn(out[i])
	}
	return out
}
