package read

import (
	"cmp"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
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

// A choice has a branch for each way in which it may come out. Choices that meet
// in one expression would multiply, so what is built of them keeps to a bound.
const (
	// fewCases is how many branches are told apart where choices meet.
	fewCases = 8
	// manyCases is how many branches an operand may have in all.
	manyCases = 128
	// manySteps is how many patterns and expressions a walk goes through. What is
	// nested is gone through again for each case of what is around it, and what comes
	// of that may be small.
	manySteps = 10_000
	// manyParts is how many operands one may be made of. Parts are shared, so that a
	// short text makes one of billions, and whoever goes through it never ends.
	manyParts = 5_000
	// ManyNodes is how large an expression may be on the way. One that prints as the
	// 100,000 characters that the API server takes has about as many; what doubles with
	// each step of the source is stopped before it costs as much as all else.
	ManyNodes = 15_000
)

// Step counts one of the steps of the walk.
func Step(l *Lowering) {
	l.Opts.Budget.Spend(1)
	l.steps++
	if l.steps > manySteps {
		panic(l.Refuse(diag.TooLarge, "what is nested here comes out in too many ways to tell apart in CEL"))
	}
}

// cases is in how many ways j may come out.
func (j Operand) cases() int { return max(1, j.branches) }

// Bounded is j, unless it may come out in more ways than anybody would write down, or
// has more parts: what is built of it has a branch for each, wherever it is used.
func Bounded(l *Lowering, j Operand) Operand {
	l.Opts.Budget.Spend(j.cost())
	if j.cost() > ManyNodes {
		panic(TooLarge(l.Pos))
	}
	if j.parts() > manyParts {
		panic(l.Refuse(diag.TooLarge, "this expression puts together more than %d values", manyParts))
	}
	if j.cases() > manyCases {
		panic(l.Refuse(diag.TooLarge, "this expression may come out in more than %d ways, too many to tell apart in CEL", manyCases))
	}
	return j
}

// cost is what it takes to look at all of j once.
func (j Operand) cost() int {
	if j.Form == PlaceForm {
		return j.V.Expr.Nodes()
	}
	return j.parts()
}

// Some tells whether f is true of a branch of a choice.
func (j Operand) Some(f func(Operand) bool) bool {
	if j.Form != ChoiceForm {
		return f(j)
	}
	return j.Then.Some(f) || j.Els.Some(f)
}

// repeatable tells that j may be written more than once: each branch is a literal
// or a place in the request.
func (j Operand) repeatable() bool {
	return !j.Some(func(branch Operand) bool {
		if branch.Form != PlaceForm {
			return branch.Form != LitForm && branch.Form != ErrorForm
		}
		_, _, path := branch.V.Expr.OptionalPath()
		return !path
	})
}

// Multiply tells that texts joined branch by branch would be too many, or would
// repeat more than a name.
func Multiply(a, b Operand) bool {
	repeatsA, repeatsB := b.cases() > 1, a.cases() > 1
	return a.cases()*b.cases() > fewCases || repeatsA && !a.repeatable() || repeatsB && !b.repeatable()
}

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
