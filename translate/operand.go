package translate

import (
	"github.com/kvap/kvap/cel"
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

func litOf(v any) jval { return jval{form: litForm, lit: v} }

func valOf(v val) jval { return jval{form: valForm, v: v} }

func streamOf(s stream) jval { return jval{form: streamForm, s: s} }

// typeError is an error that stays one where a missing key would be null.
func typeError(hint string) jval { return jval{form: errorForm, hint: hint, hard: true} }

func boolOf(b cel.Bool) jval {
	return fold(valOf(at(b.Value, &schema.Type{Kind: schema.Bool, Format: predicate})))
}

func intOf(v cel.Value) jval { return valOf(at(v, &schema.Type{Kind: schema.Int})) }

func stringOf(v cel.Value) jval { return valOf(at(v, stringType())) }

func dynamicOf(v cel.Value) jval { return valOf(at(v, anyType())) }

// predicate is the format of a boolean that is an expression of ours, not a value
// of the request: it needs no == true to be one for CEL.
const predicate = "predicate"

// comparison is the format of a predicate that may be null, and where it is null
// reads as false without its guards.
const comparison = "comparison"

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
