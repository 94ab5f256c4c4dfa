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
		return j.S.Origin()
	case ChoiceForm:
		if j.Els.Form == ErrorForm || j.Then.Typ().Kind == j.Els.Typ().Kind {
			return j.Then.Origin()
		}
	}
	return FromRequest
}

// ElementOf is an element of a sequence, as CEL calls it.
func ElementOf(s Sequence, x cel.Value) Operand {
	return OperandAt(PlaceOf(x, s.Elem()).From(s.Origin()))
}
