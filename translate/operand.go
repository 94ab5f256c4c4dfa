package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/jmespath"
	"github.com/kvap/kvap/schema"
)

// An operand is what an expression of the source, or a value that may hold
// variables, gives: as far as it is known when compiling. Exactly one form is
// set: a literal, a place in the request, a sequence, a choice, a selection of
// several, or an error.
type operand struct {
	form form
	lit  any // nil, bool, float64, int64, string, []any, map[string]any
	v    place
	s    sequence
	// of a choice: then where c holds, otherwise els
	c         cel.Bool
	then, els *operand
	branches  int // of a choice, in all
	size      int // of a choice and a selection: how many operands it is made of, in all
	multi     []operand
	keys      []string // of a hash, one per multi
	hint      string
	images    *imageGroup // of images
	known     traits      // of a place
	// stops is what reading this ends the walk with, which then begins again
	// knowing more; nil for most.
	stops any
	hard  bool // of an error: it is not about a missing key, so nothing takes it for null
}

type form int

const (
	litForm      form = iota
	placeForm         // v
	sequenceForm      // s
	choiceForm        // c, then, els
	multiForm         // multi
	hashForm          // keys, multi
	imagesForm        // images: a map of the images of a group
	errorForm         // reading it strictly is an error; softly it is null
)

func litOf(v any) operand { return operand{form: litForm, lit: v} }

func operandAt(v place) operand { return operand{form: placeForm, v: v} }

func sequenceOf(s sequence) operand { return operand{form: sequenceForm, s: s} }

// typeError is an error that stays one where a missing key would be null.
func typeError(hint string) operand { return operand{form: errorForm, hint: hint, hard: true} }

func boolOf(b cel.Bool) operand {
	return fold(operandAt(placeOf(b.Value, &schema.Type{Kind: schema.Bool}).from(fromPredicate)))
}

func intOf(v cel.Value) operand { return valueOf(v, &schema.Type{Kind: schema.Int}) }

func stringOf(v cel.Value) operand { return valueOf(v, stringType()) }

// valueOf is an expression of a type, without guards.
func valueOf(expr cel.Value, typ *schema.Type) operand { return operandAt(placeOf(expr, typ)) }

func dynamicOf(v cel.Value) operand { return valueOf(v, anyType()) }

// fold makes a literal of a boolean that is known.
func fold(j operand) operand {
	if b, ok := j.v.expr.AsBool().Const(); ok && j.v.certain() {
		return litOf(b)
	}
	return j
}

func choice(c cel.Bool, then, els operand) operand {
	if v, ok := c.Const(); ok {
		if v {
			return then
		}
		return els
	}
	return operand{form: choiceForm, c: c, then: &then, els: &els, branches: then.cases() + els.cases(), size: then.parts() + els.parts()}
}

// selectionOf is a list of several, or a map where there are keys. What is there twice
// counts twice: whoever goes through it comes to it twice.
func selectionOf(form form, keys []string, of []operand) operand {
	out := operand{form: form, keys: keys, multi: of, size: 1}
	for _, j := range of {
		out.size += j.parts()
	}
	return out
}

// parts are how many operands j is made of.
func (j operand) parts() int { return max(1, j.size) }

// with is the choice j between other branches.
func (j operand) with(then, els operand) operand {
	return choice(j.c, then, els)
}

// over applies f to every branch of a choice.
func (j operand) over(f func(operand) operand) operand {
	if j.form != choiceForm {
		return f(j)
	}
	return j.with(j.then.over(f), j.els.over(f))
}

// settled is j inside a context where it is known to be found.
func (j operand) settled() operand {
	if j.form == placeForm {
		j.v = j.v.settled()
	}
	return j
}

// traits are what is known of a value where it is there, as it was asked before: that it
// is not null; that it is neither null nor falsy, by some condition; that it is one of
// both.
type traits struct {
	present, truthy, falsy bool
	by                     cel.Bool
}

// traits is what is known of j, which is there for certain.
func (j operand) traits() traits {
	if j.form != placeForm || !j.v.certain() {
		return traits{}
	}
	return j.known
}

// presentNow is j inside a context where it is known to be there, and not to be null.
func (j operand) presentNow() operand {
	j = j.settled()
	j.known.present = true
	return j
}

// truthyNow is j inside a context where a condition holds: it is there and not falsy.
func (j operand) truthyNow(by cel.Bool) operand {
	j = j.presentNow()
	j.known.truthy, j.known.by = true, by
	return j
}

// softly is j with a missing key read as null.
func (j operand) softly() operand {
	switch j.form {
	case errorForm:
		if j.hard {
			return j
		}
		return litOf(nil)
	case placeForm:
		if j.v.never {
			return litOf(nil)
		}
		if v, c := j.v.demanded(); !c.IsTrue() {
			j.v = v
			return choice(c, j.softly(), typeError("value"))
		}
		guards := make([]guard, len(j.v.guards))
		for i, g := range j.v.guards {
			g.shape = true
			guards[i] = g
		}
		j.v.guards = guards
	case sequenceForm:
		if g, ok := j.s.(guarded); ok {
			v, c := g.v.demanded()
			g.v, g.soft = v, true
			return choice(c, sequenceOf(g), typeError("value"))
		}
	case choiceForm:
		return j.with(j.then.softly(), j.els.softly())
	}
	return j
}

// errorless is e with what is an error for any reason read as null: so do flattening,
// filters and value projections.
func (l *lowering) errorless(e *jmespath.Expr, cur *operand) operand {
	var j operand
	n := l.collected(func() { j = l.eval(e, cur).softly() })
	if n.unsure {
		panic(l.unsupported("an expression that may be an error, which is null here,"))
	}
	l.needAll(needs{loads: n.loads, native: n.native})
	return choice(cel.And(n.conds...).Simplify(), j, litOf(nil)).over(func(j operand) operand {
		if j.form == errorForm {
			return litOf(nil)
		}
		if e, ok := j.s.(entries); ok && e.given {
			e.given = false
			return sequenceOf(e)
		}
		return j
	})
}

// typ is what is known of the type.
func (j operand) typ() *schema.Type {
	switch j.form {
	case placeForm:
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
	case sequenceForm:
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
func (l *lowering) expr(j operand) (cel.Value, bool) {
	switch j.form {
	case litForm:
		return l.literalTree(j.lit)
	case placeForm:
		l.need(j.v.keysFound())
		if shaped := j.v.shaped(); !shaped.IsTrue() {
			return cel.Cond(shaped, dyn(j.v.expr), dyn(cel.Null())), true
		}
		return j.v.expr, true
	case sequenceForm:
		return j.s.list(l, true)
	case multiForm:
		return l.selection(j).list(l, false)
	case choiceForm:
		var a, b cel.Value
		var ok, ok2 bool
		l.eitherWay(j.c,
			func() cel.Bool { a, ok = l.expr(*j.then); return cel.True() },
			func() cel.Bool { b, ok2 = l.expr(*j.els); return cel.True() })
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
