package read

import (
	"cmp"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/partial"
)

// Demands are what must hold for a value to be read without an error, in the order in which
// Kyverno looks at it:
//
//	request.object.spec.replicas           demands has(object.spec.replicas)
//	divide(x, y)                           demands y != 0, whatever is made of the result
//
// What says something of a value counts where its demands hold.
type Demands struct {
	Conds []cel.Bool
	// Loads must hold for the query to be evaluated at all, whatever it makes of errors.
	Loads []cel.Bool
	Hint  string // what is missing, for the error
	// Unsure tells of an error that no condition tells beforehand: what counts an error
	// as false has no native form then.
	Unsure bool
	// Native tells that what was built is an error of CEL's own for what Kyverno may read
	// otherwise, which stays one everywhere.
	Native bool
}

// Demand is: c must hold. The hint is the key that an error names, if any.
func Demand(hint string, c cel.Bool) (d Demands) {
	d.add(&d.Conds, hint, c)
	return d
}

// DemandToLoad is: the query at hand is not evaluated unless c holds.
func DemandToLoad(hint string, c cel.Bool) (d Demands) {
	d.add(&d.Loads, hint, c)
	return d
}

func (d *Demands) add(to *[]cel.Bool, hint string, c cel.Bool) {
	if d.Hint == "" {
		d.Hint = hint
	}
	if !c.IsTrue() && !listed(c, *to) {
		*to = append(*to, c)
	}
}

// All is: everything that is demanded holds.
func (d Demands) All() cel.Bool { return cel.And(slices.Concat(d.Loads, d.Conds)...) }

// None tells that nothing can be an error.
func (d Demands) None() bool { return d.All().IsTrue() && !d.Unsure && !d.Native }

// And is what d demands, and then what others do.
func (d Demands) And(others ...Demands) Demands {
	d.Conds, d.Loads = slices.Clip(d.Conds), slices.Clip(d.Loads)
	for _, o := range others {
		for _, c := range o.Loads {
			d.add(&d.Loads, o.Hint, c)
		}
		for _, c := range o.Conds {
			d.add(&d.Conds, o.Hint, c)
		}
		d.Unsure, d.Native = d.Unsure || o.Unsure, d.Native || o.Native
	}
	return d
}

// DemandsWhere is what is demanded where c holds, and where it does not.
func DemandsWhere(c cel.Bool, then, els Demands) Demands {
	out := Demands{Loads: slices.Concat(then.Loads, els.Loads), Hint: cmp.Or(then.Hint, els.Hint), Unsure: then.Unsure || els.Unsure, Native: then.Native || els.Native}
	var x, y []cel.Bool
	for _, n := range then.Conds {
		if listed(n, els.Conds) { // it is demanded either way
			out.Conds = append(out.Conds, n)
		} else {
			x = append(x, n)
		}
	}
	for _, n := range els.Conds {
		if !listed(n, out.Conds) {
			y = append(y, n)
		}
	}
	switch x, y := cel.And(x...), cel.And(y...); {
	case x.IsTrue():
		return out.And(Demand("", cel.Or(c, y)))
	case y.IsTrue():
		return out.And(Demand("", cel.Implies(c, x)))
	default:
		return out.And(Demand("", cel.CondBool(c, x, y)))
	}
}

// listed tells that a condition is one of some.
func listed(c cel.Bool, conds []cel.Bool) bool {
	return slices.ContainsFunc(conds, func(o cel.Bool) bool { return cel.Equal(o.Value, c.Value) })
}

// Demanding is j, to work out which is an error unless all of d holds, which comes before what
// it demands already.
func (j Operand) Demanding(d ...Demands) Operand {
	j.own = Demands{}.And(d...).And(j.own)
	return j
}

// Undemanding is j where working it out is no error.
func (j Operand) Undemanding() Operand {
	j.own = Demands{}
	switch j.Form {
	case ChoiceForm:
		then, els := j.Then.Undemanding(), j.Els.Undemanding()
		j.Then, j.Els = &then, &els
	case MultiForm, HashForm:
		j.Multi = slices.Clone(j.Multi)
		for i, part := range j.Multi {
			j.Multi[i] = part.Undemanding()
		}
	}
	return j
}

// Freed is j without what working it out demands, its branches aside, which is d.
func (j Operand) Freed() (of Operand, d Demands) {
	if d = j.own; j.Form != ChoiceForm {
		d = j.Anyway()
	}
	j.own = Demands{}
	return j, d
}

// Anyway is what working out j demands, whatever of it is read.
func (j Operand) Anyway() Demands {
	switch j.Form {
	case ChoiceForm:
		return j.own.And(DemandsWhere(j.C, j.Then.Anyway(), j.Els.Anyway()))
	case MultiForm, HashForm:
		d := j.own
		for _, part := range j.Multi {
			d = d.And(part.Anyway())
		}
		return d
	}
	return j.own
}

// DemandsOf is what reading j demands. It is false where j has no expression. A list that is
// missing under a projection is null, and no error.
func DemandsOf(l *Lowering, j Operand) (d Demands, ok bool) {
	l.Opts.Budget.Spend(1)
	switch j.Form {
	case PlaceForm:
		return j.own.And(Demand("", j.V.KeysFound())), true
	case SequenceForm:
		return j.own.And(j.S.Demands(false)), true
	case MultiForm, HashForm:
		d, ok = j.own, true
		for _, part := range j.Multi {
			of, has := DemandsOf(l, part)
			d, ok = d.And(of), ok && has
		}
		return d, ok
	case ChoiceForm:
		then, ok := DemandsOf(l, *j.Then)
		els, ok2 := DemandsOf(l, *j.Els)
		return j.own.And(DemandsWhere(j.C, then, els)), ok && ok2
	case ErrorForm:
		return j.own.And(Demand(j.Hint, cel.False())), true
	}
	_, ok = Expr(l, j)
	return j.own, ok
}

// Strictly is Expr of j, and what reading it demands.
func Strictly(l *Lowering, j Operand) (v cel.Value, d Demands, ok bool) {
	if v, ok = Expr(l, j); ok {
		d, _ = DemandsOf(l, j)
	}
	return v, d, ok
}

// Told is b, an error where d does not hold.
func (l *Lowering) Told(d Demands, b cel.Bool) partial.Bool {
	out := partial.Where(d.All(), b, cmp.Or(d.Hint, "missing"), func(name string) (cel.Value, bool) { return Defined(l, name) })
	switch {
	case d.Unsure:
		return partial.MayErr(out.Expr)
	case d.Native:
		return out.ErrsInCEL()
	}
	return out
}

// Apart is how b comes out, for whoever counts an error as something else. A refusal where no
// condition tells the error beforehand.
func (l *Lowering) Apart(b partial.Bool) partial.Apart {
	apart, ok := b.Apart()
	if !ok {
		panic(l.Unsupported("a condition that may be an error, where an error counts as false,"))
	}
	return apart
}
