package read

import (
	"slices"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A Sequence is a JMESPath list, kept as a way to go through its elements. CEL
// cannot flatten nested lists before 1.35, but most readers of a list only ask
// whether some or all elements have a property, or how many there are, and that
// nested quantifiers can say.
//
// A sequence's source may be missing, which JMESPath projections turn to null. Read
// softly it is then empty; read strictly it is an error, and what is said of it here counts
// where it is none.
type Sequence interface {
	// quantify is: some (exists) or all elements satisfy body.
	Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool
	// count is the number of elements, an int.
	Count(l *Lowering, strict bool) cel.Value
	// list is the elements as one CEL list; false where CEL has no such expression.
	List(l *Lowering, strict bool) (cel.Value, bool)
	// demands are what must hold for the elements to be gone through without an error.
	Demands(strict bool) Demands
	// null is: the source is missing.
	Null() cel.Bool
	// elem is the type of the elements.
	Elem() *schema.Type
	// ordered tells that the order of the elements is not that of a map.
	Ordered() bool
	// origin is where the elements come from.
	Origin() origin
}

// ListOf is the sequence of a list value.
type ListOf struct {
	V    Place
	Hint string
}

// Source is the list itself; one that must be there is an error where it is not.
func (s ListOf) Source(strict bool) cel.Value { return s.V.source(strict, cel.List()) }

// Quantify implements Sequence.
func (s ListOf) Quantify(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	return s.through(l, q, strict, body)
}

func (s ListOf) through(l *Lowering, q cel.Quantifier, strict bool, body func(Operand) cel.Bool) cel.Bool {
	over := func(list cel.Value) cel.Bool {
		return l.Binders.Quantify(q, list, Singular(s.Hint), func(x cel.Value) cel.Bool { return body(ElementOf(s, x)) })
	}
	if _, short := s.V.OrElse(cel.List()); short || strict {
		return over(s.Source(strict))
	}
	return s.V.Soft(q == cel.ForAll, over)
}

// Count implements Sequence.
func (s ListOf) Count(_ *Lowering, strict bool) cel.Value {
	return s.Source(strict).Size()
}

// List implements Sequence.
func (s ListOf) List(_ *Lowering, strict bool) (cel.Value, bool) {
	return s.Source(strict), true
}

// Demands implements Sequence.
func (s ListOf) Demands(strict bool) Demands {
	if !strict {
		return Demands{}
	}
	return Demand("", s.V.Found())
}

// StrictList is a list that is read as a value, not through a projection: where
// it is missing, reading it is an error.
type StrictList struct{ ListOf }

// Quantify implements Sequence.
func (s StrictList) Quantify(l *Lowering, q cel.Quantifier, _ bool, body func(Operand) cel.Bool) cel.Bool {
	return s.through(l, q, true, body)
}

// Count implements Sequence.
func (s StrictList) Count(_ *Lowering, _ bool) cel.Value {
	return s.Source(true).Size()
}

// List implements Sequence.
func (s StrictList) List(_ *Lowering, _ bool) (cel.Value, bool) {
	return s.Source(true), true
}

// Demands implements Sequence.
func (s StrictList) Demands(bool) Demands { return Demand("", s.V.KeysFound()) }

// Null implements Sequence.
func (s StrictList) Null() cel.Bool { return cel.Not(s.V.Shaped()) }

// Null implements Sequence.
func (s ListOf) Null() cel.Bool { return cel.Not(s.V.Found()) }

// Elem implements Sequence.
func (s ListOf) Elem() *schema.Type { return s.V.Elem() }

// Ordered implements Sequence.
func (s ListOf) Ordered() bool { return true }

// Origin implements Sequence.
func (s ListOf) Origin() origin { return s.V.Origin }

// Concat is several sequences one after the other. It is never null.
type Concat []Sequence

// Quantify implements Sequence.
func (s Concat) Quantify(l *Lowering, q cel.Quantifier, _ bool, body func(Operand) cel.Bool) cel.Bool {
	conds := make([]cel.Bool, len(s))
	for i, part := range s {
		conds[i] = part.Quantify(l, q, false, body)
	}
	if q == cel.ForAll {
		return cel.And(conds...)
	}
	return cel.Or(conds...)
}

// Count implements Sequence.
func (s Concat) Count(l *Lowering, _ bool) cel.Value {
	if len(s) == 0 {
		return cel.Int(0)
	}
	sum := s[0].Count(l, false)
	for _, part := range s[1:] {
		sum = sum.Plus(part.Count(l, false))
	}
	return sum
}

// List implements Sequence.
func (s Concat) List(l *Lowering, _ bool) (cel.Value, bool) {
	sum := cel.List()
	for i, part := range s {
		list, ok := part.List(l, false)
		switch {
		case !ok:
			return cel.Value{}, false
		case i == 0:
			sum = list
		default:
			sum = sum.Plus(Dyn(list)) // to the type checker, elements of different fields are of different types
		}
	}
	return sum, true
}

// WholeList is a list as one value to compare. To the type checker, what is put together has
// elements of the first part's type.
func WholeList(l *Lowering, s Sequence) (cel.Value, bool) {
	list, ok := s.List(l, false)
	if ok && isJoined(s) && KindOf(s.Elem()) == schema.Any {
		list = Dyn(list)
	}
	return list, ok
}

func isJoined(s Sequence) bool {
	switch s := s.(type) {
	case Concat:
		return len(s) > 1
	case PresentSequence:
		return isJoined(s.Sequence)
	}
	return false
}

// Demands implements Sequence.
func (s Concat) Demands(bool) (d Demands) {
	for _, part := range s {
		d = d.And(part.Demands(false))
	}
	return d
}

// Null implements Sequence.
func (s Concat) Null() cel.Bool { return cel.False() }

// Elem implements Sequence.
func (s Concat) Elem() *schema.Type {
	if len(s) == 0 {
		return AnyType()
	}
	t := s[0].Elem()
	for _, part := range s[1:] {
		if part.Elem() != t {
			return AnyType()
		}
	}
	return t
}

// Ordered implements Sequence.
func (s Concat) Ordered() bool {
	return !slices.ContainsFunc(s, func(part Sequence) bool { return !part.Ordered() })
}

// Origin implements Sequence.
func (s Concat) Origin() origin {
	if len(s) == 0 || slices.ContainsFunc(s, func(part Sequence) bool { return part.Origin() != s[0].Origin() }) {
		return FromRequest
	}
	return s[0].Origin()
}

// InParts applies f to a sequence, or to each part of one that is put together: the
// parts keep the types of their elements.
func InParts(s Sequence, f func(Sequence) Sequence) Sequence {
	switch s := s.(type) {
	case Concat:
		out := make(Concat, len(s))
		for i, part := range s {
			out[i] = InParts(part, f)
		}
		return out
	case Branch:
		return Branch{s.C, InParts(s.Then, f), InParts(s.Els, f)}
	}
	return f(s)
}

// Single is one value as a list.
type Single struct{ J Operand }

// Quantify implements Sequence.
func (s Single) Quantify(_ *Lowering, _ cel.Quantifier, _ bool, body func(Operand) cel.Bool) cel.Bool {
	return body(s.J)
}

// Count implements Sequence.
func (s Single) Count(*Lowering, bool) cel.Value { return cel.Int(1) }

// List implements Sequence.
func (s Single) List(l *Lowering, _ bool) (cel.Value, bool) {
	v, ok := Expr(l, s.J)
	return cel.List(v), ok
}

// Demands implements Sequence.
func (s Single) Demands(bool) Demands { return s.J.Anyway() }

// Null implements Sequence.
func (s Single) Null() cel.Bool { return cel.False() }

// Elem implements Sequence.
func (s Single) Elem() *schema.Type { return s.J.Typ() }

// Ordered implements Sequence.
func (s Single) Ordered() bool { return s.J.ordered() }

// Origin implements Sequence.
func (s Single) Origin() origin { return s.J.Origin() }

// HintOf names the elements of a list, for variables.
func HintOf(s Sequence) string {
	switch s := s.(type) {
	case ListOf:
		return Singular(s.Hint)
	case Filtered:
		return HintOf(s.Of)
	case Mapped:
		return HintOf(s.Of)
	case Concat:
		if len(s) > 0 {
			return HintOf(s[0])
		}
	}
	return "item"
}

// AsSequence is a value as the list that a projection goes through; nil where it
// is no list, which gives null.
func AsSequence(l *Lowering, j Operand) Sequence {
	switch j.Form {
	case SequenceForm:
		return j.S
	case MultiForm:
		return selection(l, j)
	case LitForm:
		list, ok := j.Lit.([]any)
		if !ok {
			return nil
		}
		var out Concat
		for _, item := range list {
			if item != nil {
				out = append(out, Single{LitOf(item)})
			}
		}
		return out
	case PlaceForm:
		switch {
		case j.V.Never:
			return nil
		case j.V.Kind() == schema.List:
			return nonNullItems(ListOf{V: j.V, Hint: Hint(j.V)})
		case j.V.Dynamic():
			return nonNullItems(ListOf{V: j.V.asList(), Hint: Hint(j.V)})
		}
	}
	return nil
}

// nonNullItems drops null elements, which only lists of unknown type can have.
func nonNullItems(s ListOf) Sequence {
	if KindOf(s.Elem()) != schema.Any {
		return s
	}
	return Filtered{Of: s, Keep: func(_ *Lowering, x Operand) cel.Bool { return cel.Not(IsNull(x.V.Expr)) }, NonNull: true}
}

// Hint is the last field on the way to a value, to name its elements after.
func Hint(v Place) string { return v.Expr.LastField() }

// EveryPart is a multi-select list as a value, in which what is missing is null.
func EveryPart(j Operand) Sequence {
	out := make(Concat, len(j.Multi))
	for i, part := range j.Multi {
		out[i] = Single{part.Over(listOrNull)}
	}
	return out
}

// listOrNull is a list with null apart, which a projection of what is missing is.
func listOrNull(j Operand) Operand {
	if j.Form != SequenceForm {
		return j
	}
	return Choice(cel.Not(j.S.Null()), j.Settled(), LitOf(nil))
}

// selection is a multi-select list as a projection goes through it, which drops nulls.
func selection(l *Lowering, j Operand) Sequence {
	var out Concat
	for _, part := range j.Multi {
		p := Present(l, part)
		switch {
		case p.IsTrue():
			out = append(out, Single{part})
		case p.IsFalse():
		default:
			out = append(out, Filtered{Of: Single{part.Settled()}, Keep: func(l *Lowering, _ Operand) cel.Bool { return Present(l, part) }})
		}
	}
	return out
}

// Singular is the name for an element of the list called field: container for
// initContainers.
func Singular(field string) string {
	last := 0
	for i, r := range field {
		if unicode.IsUpper(r) {
			last = i
		}
		if r > unicode.MaxASCII || !unicode.IsLetter(r) {
			return "item"
		}
	}
	word := strings.ToLower(field[last:])
	switch {
	case strings.HasSuffix(word, "ies"):
		word = word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "sses"):
		word = word[:len(word)-2]
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && len(word) > 3:
		word = word[:len(word)-1]
	}
	if len(word) < 2 {
		return "item"
	}
	return word
}

// Capital is s with a capital first letter.
func Capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
