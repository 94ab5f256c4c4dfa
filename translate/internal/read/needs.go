package read

import (
	"cmp"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/partial"
)

// Needs are what must hold for what was built to be no error, in the order in which Kyverno
// looks at it. What is built is total where they hold.
type Needs struct {
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

// All is: everything that is needed holds.
func (n Needs) All() cel.Bool { return cel.And(slices.Concat(n.Loads, n.Conds)...) }

// None tells that nothing can be an error.
func (n Needs) None() bool { return n.All().IsTrue() && !n.Unsure && !n.Native }

// Need notes that what is built is an error unless c holds.
func (l *Lowering) Need(c cel.Bool) { l.NeedFor("", c) }

// NeedFor is need, where an error names a key.
func (l *Lowering) NeedFor(hint string, c cel.Bool) {
	l.Needs.add(&l.Needs.Conds, hint, c)
}

// Load notes that the query at hand is not evaluated unless c holds.
func (l *Lowering) Load(hint string, c cel.Bool) {
	l.Needs.add(&l.Needs.Loads, hint, c)
}

func (n *Needs) add(to *[]cel.Bool, hint string, c cel.Bool) {
	if n.Hint == "" {
		n.Hint = hint
	}
	if !c.IsTrue() && !listed(c, *to) {
		*to = append(*to, c)
	}
}

// NeedAll notes what was collected.
func (l *Lowering) NeedAll(n Needs) { *l.Needs = l.Needs.and(n) }

// Collected is what build needs. It is not told to whoever collects around it.
func (l *Lowering) Collected(build func()) Needs {
	around, n := l.Needs, &Needs{}
	l.Needs = n
	defer func() { l.Needs = around }()
	build()
	return *n
}

// Silently is collected of what was told of already, or will be.
func (l *Lowering) Silently(build func(l *Lowering)) Needs {
	l = l.Inside()
	l.Notes = nil
	return l.Collected(func() { build(l) })
}

// Told is what build says, and when that is an error.
func (l *Lowering) Told(build func() cel.Bool) partial.Bool {
	var b cel.Bool
	n := l.Collected(func() { b = build() })
	if n.Hint == "" {
		n.Hint = "missing"
	}
	out := partial.Where(n.All(), b, n.Hint, func(name string) (cel.Value, bool) { return Defined(l, name) })
	switch {
	case n.Unsure:
		return partial.MayErr(out.Expr)
	case n.Native:
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

// Failing is the error j.
func (l *Lowering) Failing(j Operand) cel.Bool {
	l.NeedFor(j.Hint, cel.False())
	return cel.False()
}

// EitherWay builds what counts where c holds and what counts where it does not. What
// each needs, it needs only then.
func EitherWay[T any](l *Lowering, c cel.Bool, then, els func() T) (t, e T) {
	a := l.Collected(func() { t = then() })
	b := l.Collected(func() { e = els() })
	l.NeedAll(eitherNeed(c, a, b))
	return t, e
}

// eitherNeed is what is needed where c holds, or where it does not.
func eitherNeed(c cel.Bool, then, els Needs) Needs {
	out := Needs{Loads: slices.Concat(then.Loads, els.Loads), Hint: cmp.Or(then.Hint, els.Hint), Unsure: then.Unsure || els.Unsure, Native: then.Native || els.Native}
	var x, y []cel.Bool
	for _, n := range then.Conds {
		if listed(n, els.Conds) { // it is needed either way
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
		return out.and(needing("", cel.Or(c, y)))
	case y.IsTrue():
		return out.and(needing("", cel.Implies(c, x)))
	default:
		return out.and(needing("", cel.CondBool(c, x, y)))
	}
}

// listed tells that a condition is one of some.
func listed(c cel.Bool, conds []cel.Bool) bool {
	return slices.ContainsFunc(conds, func(o cel.Bool) bool { return cel.Equal(o.Value, c.Value) })
}

// needing is: c must hold.
func needing(hint string, c cel.Bool) (n Needs) {
	n.add(&n.Conds, hint, c)
	return n
}

// and is what both need, n first.
func (n Needs) and(m Needs) Needs {
	n.Conds, n.Loads = slices.Clip(n.Conds), slices.Clip(n.Loads)
	for _, c := range m.Loads {
		n.add(&n.Loads, m.Hint, c)
	}
	for _, c := range m.Conds {
		n.add(&n.Conds, m.Hint, c)
	}
	n.Unsure, n.Native = n.Unsure || m.Unsure, n.Native || m.Native
	return n
}

// Reading is what reading j needs. It is false where j has no expression. A list that is
// missing under a projection is null, and no error.
func Reading(l *Lowering, j Operand) (n Needs, ok bool) {
	l.Opts.Budget.Spend(1)
	switch j.Form {
	case PlaceForm:
		return needing("", j.V.KeysFound()), true
	case SequenceForm:
		return ReadingElements(l, j.S, false), true
	case MultiForm, HashForm:
		ok = true
		for _, part := range j.Multi {
			of, has := Reading(l, part)
			n, ok = n.and(of), ok && has
		}
		return n, ok
	case ChoiceForm:
		then, ok := Reading(l, *j.Then)
		els, ok2 := Reading(l, *j.Els)
		return eitherNeed(j.C, then, els), ok && ok2
	case ErrorForm:
		return needing(j.Hint, cel.False()), true
	}
	_, ok = Expr(l, j)
	return n, ok
}

// ReadingElements is what going through a sequence needs.
func ReadingElements(l *Lowering, s Sequence, strict bool) Needs {
	switch s := s.(type) {
	case ListOf:
		if strict {
			return needing("", s.V.Found())
		}
	case StrictList:
		return needing("", s.V.KeysFound())
	case Entries:
		if strict || s.Given { // of nothing else than a map
			return needing("", s.V.Found())
		}
	case Guarded:
		needs := s.V.KeysFound()
		switch {
		case s.soft && !strict:
			needs = cel.True()
		case strict || s.Called:
			needs = s.V.Found()
		}
		return needing("", needs).and(ReadingElements(l, s.Sequence, strict))
	case Branch:
		return eitherNeed(s.C, ReadingElements(l, s.Then, strict), ReadingElements(l, s.Els, strict))
	case Concat:
		var n Needs
		for _, part := range s {
			n = n.and(ReadingElements(l, part, false))
		}
		return n
	case OrEmpty:
		return ReadingElements(l, s.Sequence, false)
	case PresentSequence:
		return ReadingElements(l, s.Sequence, strict)
	case SortedSequence:
		return ReadingElements(l, s.Sequence, strict)
	case FromMap:
		return ReadingElements(l, s.Sequence, strict)
	case WhereGroup:
		return ReadingElements(l, s.Sequence, strict)
	case Filtered:
		return ReadingElements(l, s.Of, strict)
	case Mapped:
		return ReadingElements(l, s.Of, strict)
	case Flat:
		return ReadingElements(l, s.Of, strict)
	}
	return Needs{}
}

// Ask needs what reading j needs.
func (l *Lowering) Ask(j Operand) bool {
	n, ok := Reading(l, j)
	l.NeedAll(n)
	return ok
}

// Strictly is Expr of j, and needs what reading it needs.
func (l *Lowering) Strictly(j Operand) (cel.Value, bool) {
	v, ok := Expr(l, j)
	if ok {
		l.Ask(j)
	}
	return v, ok
}

// Readable is: reading j is no error. It is false where j has no expression.
func (l *Lowering) Readable(j Operand) (c cel.Bool, ok bool) {
	n, ok := Reading(l, j)
	return n.All(), ok
}
