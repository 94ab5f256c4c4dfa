package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// isTrue is: the boolean x of type t is true. Where the type is known, x itself
// says so; the root of an expression is made boolean for CEL where it is emitted.
func isTrue(x cel.Value, t *schema.Type) cel.Bool {
	if kindOf(t) == schema.Bool {
		return x.AsBool()
	}
	return x.Eq(cel.Lit(true).Value)
}

// A pred is a predicate over JMESPath values, by form.
type pred struct {
	lit      func(any) cel.Bool                     // also nil, for null
	value    func(cel.Value, *schema.Type) cel.Bool // a value that is there; of unknown type it may be null
	sequence func(sequence) cel.Bool                // a list that is there
	traits   func(traits) (is, known bool)          // what follows from what is known; nil for nothing
	// single tells that value reads its argument once, so that a literal with the
	// same verdict as null may stand in for a missing value.
	neutral func(*schema.Type) []any
	// standIn, where set, is lit of such a literal, which is read as a value of the request.
	standIn func(any) cel.Bool
}

// holds is p of j. Where strict is set, a missing key is an error; else it is null.
func (l *lowering) holds(j operand, strict bool, p pred) cel.Bool {
	switch j.form {
	case litForm:
		return p.lit(j.lit)
	case errorForm:
		if strict || j.hard {
			return l.failing(j)
		}
		return p.lit(nil)
	case choiceForm:
		return l.choose(j, strict, p)
	case sequenceForm:
		if g, ok := j.s.(guarded); ok && !g.soft {
			if g.soft = !strict; strict {
				l.need(g.v.keysFound())
			}
			j.s = g
		}
		null := p.lit(nil)
		got := p.sequence(j.s)
		isNull := j.s.null()
		if isNull.IsFalse() || sameIfEmpty(j.s, null, p) {
			return got
		}
		if null.IsTrue() {
			return cel.Or(isNull, got)
		}
		return cel.And(cel.Not(isNull), got)
	case multiForm:
		return p.sequence(l.selection(j))
	case imagesForm:
		panic(l.unsupported("a map of images as a value"))
	case hashForm:
		panic(l.unsupported("a comparison of a multi-select hash"))
	}
	if p.traits != nil {
		if is, known := p.traits(j.traits()); known {
			return cel.Lit(is)
		}
	}
	return l.valueHolds(j.v, strict, p)
}

// sameIfEmpty tells that p says of a list without elements what it says of null.
// A sequence whose source is missing reads as empty, so it need not be asked for then.
func sameIfEmpty(s sequence, null cel.Bool, p pred) bool {
	if _, ok := s.(strictList); ok { // it does not read as empty where it is no list
		return false
	}
	of, ok := p.sequence(concat{}).Const()
	is, ok2 := null.Const()
	return ok && ok2 && of == is
}

// eachWay is the choice j between other branches, of which each is built as eitherWay does.
func (l *lowering) eachWay(j operand, then, els func() operand) operand {
	var t, e operand
	l.eitherWay(j.c,
		func() cel.Bool { t = then(); return cel.True() },
		func() cel.Bool { e = els(); return cel.True() })
	return j.with(t, e)
}

// inEach applies f to every branch of a choice. What it asks to be there must be there
// only where that branch is taken.
func (l *lowering) inEach(j operand, f func(operand) operand) operand {
	if j.form != choiceForm {
		return f(j)
	}
	return l.eachWay(j,
		func() operand { return l.inEach(*j.then, f) },
		func() operand { return l.inEach(*j.els, f) })
}

func (l *lowering) choose(j operand, strict bool, p pred) cel.Bool {
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

func (l *lowering) valueHolds(v place, strict bool, p pred) cel.Bool {
	null := p.lit(nil)
	value := func(x cel.Value) cel.Bool {
		defer l.restore(l.environment)
		l.judged = v.origin
		return p.value(x, v.typ)
	}
	isNull, known := null.Const()
	if !known {
		panic(l.unsupported("a comparison of a value that may be null with one that is not known"))
	}
	there := v.found()
	if strict {
		l.need(v.keysFound())
		there = v.shaped()
	}
	if v.never {
		return null
	}
	var got cel.Bool
	var neutral cel.Value
	l.collected(func() { neutral = l.neutralFor(v, isNull, p, value) })
	n := l.collected(func() {
		if v.origin == fromOrdering {
			got = value(v.expr)
			if !isNull && cel.Equal(got.Value, v.expr) || isNull && cel.Equal(got.Value, cel.Not(v.expr.AsBool()).Value) {
				return // reads as false where it is null
			}
		}
		if strict {
			got = v.strict(isNull, value)
		} else {
			got = v.soft(isNull, neutral, value)
		}
	})
	for i, c := range n.conds { // of what is there
		n.conds[i] = cel.Implies(there, c)
	}
	l.needAll(n)
	return got
}

// neutralFor looks for a literal of the value's type of which p says what it says
// of null.
func (l *lowering) neutralFor(v place, null bool, p pred, value func(cel.Value) cel.Bool) cel.Value {
	if v.opt.IsZero() || v.typ == nil || value(cel.Ident("?")).Count("?") != 1 {
		return cel.Value{}
	}
	cands := candidates(v.typ, &policy.Node{})
	if p.neutral != nil {
		cands = append(cands, p.neutral(v.typ)...)
	}
	judge := p.lit
	if p.standIn != nil {
		judge = p.standIn
	}
	for _, c := range cands {
		if got, ok := judge(c).Const(); ok && got == null {
			return literal(c)
		}
	}
	return cel.Value{}
}
