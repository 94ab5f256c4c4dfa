package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// IsTrue is: the boolean x of type t is true. Where the type is known, x itself
// says so; the root of an expression is made boolean for CEL where it is emitted.
func IsTrue(x cel.Value, t *schema.Type) cel.Bool {
	if KindOf(t) == schema.Bool {
		return x.AsBool()
	}
	return x.Eq(cel.Lit(true).Value)
}

// A Table is what an operator says of a value, by what that is:
//
//	Equals 'x'     Lit 'x': true     Value c.image, a text: c.image == 'x'     Lit null: false
//
// Holds asks it of each branch of an operand.
type Table struct {
	Lit      func(any) cel.Bool                     // also nil, for null
	Value    func(cel.Value, *schema.Type) cel.Bool // a value that is there; of unknown type it may be null
	Sequence func(Sequence) cel.Bool                // a list that is there; nil for false
	truth    bool                                   // it holds of what is known not to be falsy
}

func (p Table) ofSequence(s Sequence) cel.Bool {
	if p.Sequence == nil {
		return cel.False()
	}
	return p.Sequence(s)
}

// Holds is p of j, where reading j is no error (DemandsOf). Where strict is set, a missing key
// is one; else it is null.
func Holds(l *Lowering, j Operand, strict bool, p Table) cel.Bool {
	switch j.Form {
	case LitForm:
		return p.Lit(j.Lit)
	case ErrorForm:
		if strict || j.Hard {
			return cel.False()
		}
		return p.Lit(nil)
	case ChoiceForm:
		return choose(l, j, strict, p)
	case SequenceForm:
		if g, ok := j.S.(Guarded); ok && !strict {
			g.soft = true
			j.S = g
		}
		null := p.Lit(nil)
		got := p.ofSequence(j.S)
		isNull := j.S.Null()
		if isNull.IsFalse() || sameIfEmpty(j.S, null, p) {
			return got
		}
		if null.IsTrue() {
			return cel.Or(isNull, got)
		}
		return cel.And(cel.Not(isNull), got)
	case MultiForm:
		return p.ofSequence(EveryPart(j))
	case ImagesForm:
		panic(l.Unsupported("a map of images as a value"))
	case HashForm:
		panic(l.Unsupported("a comparison of a multi-select hash"))
	}
	if p.truth && j.Traits().truthy {
		return cel.True()
	}
	return valueHolds(l, j.V, strict, p)
}

// sameIfEmpty tells that p says of a list without elements what it says of null.
// A sequence whose source is missing reads as empty, so it need not be asked for then.
func sameIfEmpty(s Sequence, null cel.Bool, p Table) bool {
	if _, ok := s.(StrictList); ok { // it does not read as empty where it is no list
		return false
	}
	of, ok := p.ofSequence(Concat{}).Const()
	is, ok2 := null.Const()
	return ok && ok2 && of == is
}

// InEach applies f to every branch of a choice. What a branch demands is demanded of what f
// makes of it.
func InEach(j Operand, f func(Operand) Operand) Operand {
	if j.Form != ChoiceForm {
		return From(f, j)
	}
	return j.With(InEach(*j.Then, f), InEach(*j.Els, f))
}

// From is f of j, which demands what working out j does.
func From(f func(Operand) Operand, j Operand) Operand {
	of, d := j.Freed()
	return f(of).Demanding(d)
}

func choose(l *Lowering, j Operand, strict bool, p Table) cel.Bool {
	then, els := Holds(l, *j.Then, strict, p), Holds(l, *j.Els, strict, p)
	switch {
	case els.IsFalse():
		return cel.And(j.C, then)
	case els.IsTrue():
		return cel.Implies(j.C, then)
	case then.IsFalse():
		return cel.And(cel.Not(j.C), els)
	case then.IsTrue():
		return cel.Or(j.C, els)
	}
	return cel.CondBool(j.C, then, els)
}

func valueHolds(l *Lowering, v Place, strict bool, p Table) cel.Bool {
	null := p.Lit(nil)
	value := func(x cel.Value) cel.Bool { return p.Value(x, v.Typ) }
	isNull, known := null.Const()
	if !known {
		panic(l.Unsupported("a comparison of a value that may be null with one that is not known"))
	}
	there := v.Found()
	if strict {
		there = v.Shaped()
	}
	if v.Never {
		return null
	}
	if v.Origin == FromOrdering {
		got := value(v.Expr)
		if !isNull && cel.Equal(got.Value, v.Expr) || isNull && cel.Equal(got.Value, cel.Not(v.Expr.AsBool()).Value) {
			return got // reads as false where it is null
		}
	}
	switch {
	case !strict:
		return v.Soft(isNull, value)
	case isNull:
		return cel.Implies(there, value(v.Expr))
	}
	return cel.And(there, value(v.Expr))
}
