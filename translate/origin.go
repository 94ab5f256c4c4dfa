package translate

import (
	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// An origin says where a value comes from, where that makes a difference.
type origin int

const (
	fromRequest origin = iota
	// fromConfiguration: texts of the cluster's configuration. Unlike the request's
	// they may be patterns, or lists in the form of JSON.
	fromConfiguration
	// fromPatterns: regular expressions that stand for such texts.
	fromPatterns
	// fromServer: a text that has no wildcards, as a name that the API server gave
	// out, or a part of an image's reference.
	fromServer
	// fromPredicate: a boolean that is an expression of ours, which needs no == true
	// to be one for CEL.
	fromPredicate
	// fromOrdering: a predicate that may be null, and where it is null reads as
	// false without its guards.
	fromOrdering
)

// from is v with another origin.
func (v place) from(o origin) place {
	v.origin = o
	return v
}

// configuredText is a text of the cluster's configuration.
func configuredText(v cel.Value) operand {
	return operandAt(placeOf(v, stringType()).from(fromConfiguration))
}

// isConfigured tells that a value is a text of the cluster's configuration.
func isConfigured(j operand) bool {
	return j.form == placeForm && kindOf(j.typ()) == schema.String && j.v.origin == fromConfiguration
}

// origin is where a value comes from, or the elements of a list.
func (j operand) origin() origin {
	switch j.form {
	case placeForm:
		return j.v.origin
	case sequenceForm:
		return originOf(j.s)
	case choiceForm:
		if j.els.form == errorForm || j.then.typ().Kind == j.els.typ().Kind {
			return j.then.origin()
		}
	}
	return fromRequest
}

// originOf is where the elements of a sequence come from.
func originOf(s sequence) origin {
	switch s := s.(type) {
	case listOf:
		return s.v.origin
	case strictList:
		return s.v.origin
	case entries:
		if s.values {
			return s.v.origin
		}
	case single:
		return s.j.origin()
	case filtered:
		return originOf(s.of)
	case nonNull:
		return originOf(s.of)
	case mapped:
		return s.probe().origin()
	case flat:
		return originOf(s.probe())
	case concat:
		if len(s) > 0 && !differ(s) {
			return originOf(s[0])
		}
	case branch:
		return originOf(concat{s.then, s.els})
	case orEmpty:
		return originOf(s.sequence)
	case guarded:
		return originOf(s.sequence)
	case whereGroup:
		return originOf(s.sequence)
	case fromMap:
		return originOf(s.sequence)
	case presentSequence:
		return originOf(s.sequence)
	case sortedSequence:
		return originOf(s.sequence)
	}
	return fromRequest
}

func differ(parts []sequence) bool {
	for _, part := range parts[1:] {
		if originOf(part) != originOf(parts[0]) {
			return true
		}
	}
	return false
}

// elementOf is an element of a sequence, as CEL calls it.
func elementOf(s sequence, x cel.Value) operand {
	return operandAt(placeOf(x, s.elem()).from(originOf(s)))
}
