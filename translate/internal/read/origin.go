package read

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// An origin says where a value comes from, where that makes a difference.
type origin int

// The origins of values.
const (
	FromRequest origin = iota
	// FromConfiguration is for texts of the cluster's configuration. Unlike the request's
	// they may be patterns, or lists in the form of JSON.
	FromConfiguration
	// FromPatterns is for regular expressions that stand for such texts.
	FromPatterns
	// FromPredicate is for a boolean that is an expression of ours, which needs no == true
	// to be one for CEL.
	FromPredicate
	// FromOrdering is for a predicate that may be null, and where it is null reads as
	// false without its guards.
	FromOrdering
)

// From is v with another origin.
func (v Place) From(o origin) Place {
	v.Origin = o
	return v
}

// ConfiguredText is a text of the cluster's configuration.
func ConfiguredText(v cel.Value) Operand {
	return OperandAt(PlaceOf(v, StringType()).From(FromConfiguration))
}

// IsConfigured tells that a value is a text of the cluster's configuration.
func IsConfigured(j Operand) bool {
	return j.Form == PlaceForm && KindOf(j.Typ()) == schema.String && j.V.Origin == FromConfiguration
}

// Origin is where a value comes from, or the elements of a list.
func (j Operand) Origin() origin {
	switch j.Form {
	case PlaceForm:
		return j.V.Origin
	case SequenceForm:
		return OriginOf(j.S)
	case ChoiceForm:
		if j.Els.Form == ErrorForm || j.Then.Typ().Kind == j.Els.Typ().Kind {
			return j.Then.Origin()
		}
	}
	return FromRequest
}

// OriginOf is where the elements of a sequence come from.
func OriginOf(s Sequence) origin {
	switch s := s.(type) {
	case ListOf:
		return s.V.Origin
	case StrictList:
		return s.V.Origin
	case Entries:
		if s.Values {
			return s.V.Origin
		}
	case Single:
		return s.J.Origin()
	case Filtered:
		return OriginOf(s.Of)
	case NonNull:
		return OriginOf(s.Of)
	case Mapped:
		return s.probe().Origin()
	case Flat:
		return OriginOf(s.probe())
	case Concat:
		if len(s) > 0 && !differ(s) {
			return OriginOf(s[0])
		}
	case Branch:
		return OriginOf(Concat{s.Then, s.Els})
	case OrEmpty:
		return OriginOf(s.Sequence)
	case Guarded:
		return OriginOf(s.Sequence)
	case WhereGroup:
		return OriginOf(s.Sequence)
	case FromMap:
		return OriginOf(s.Sequence)
	case PresentSequence:
		return OriginOf(s.Sequence)
	case SortedSequence:
		return OriginOf(s.Sequence)
	}
	return FromRequest
}

func differ(parts []Sequence) bool {
	for _, part := range parts[1:] {
		if OriginOf(part) != OriginOf(parts[0]) {
			return true
		}
	}
	return false
}

// ElementOf is an element of a sequence, as CEL calls it.
func ElementOf(s Sequence, x cel.Value) Operand {
	return OperandAt(PlaceOf(x, s.Elem()).From(OriginOf(s)))
}
