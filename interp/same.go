package interp

import (
	"fmt"
	"strconv"
	"time"

	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// What follows compares values as what their fields are (deviation 15). The policy's own
// literals keep all their readings, and a value of the request has one. A text of the
// cluster, such as a ConfigMap's, was written for the policy: it is a pattern beside a
// text, and what a literal would be where it is ordered.

// A reads is what a literal of the policy has a text read as.
type reads int

const (
	asText reads = iota
	asQuantity
	asDuration
)

// readsOf is what a literal has the texts of a field read as: 5m is a quantity, but where
// the field is a duration.
func readsOf(literal string, field Format) reads {
	_, err := time.ParseDuration(literal)
	isDuration := err == nil
	_, err = datum.ParseQuantity(literal)
	switch {
	case isDuration && (field == Duration || err != nil):
		return asDuration
	case err == nil:
		return asQuantity
	}
	return asText
}

// compare orders two texts that are read as a measure; ok is false where one cannot be.
func (r reads) compare(a, b string) (order int, ok bool) {
	switch r {
	case asQuantity:
		q, err := datum.ParseQuantity(a)
		w, err2 := datum.ParseQuantity(b)
		return q.Cmp(w), err == nil && err2 == nil
	case asDuration:
		d, err := time.ParseDuration(a)
		e, err2 := time.ParseDuration(b)
		return datum.CompareInts(int64(d), int64(e)), err == nil && err2 == nil
	}
	return 0, false
}

// readsOfBoth is what the texts of two fields are both read as.
func readsOfBoth(a, b Format) reads {
	switch {
	case a == Quantity && b == Quantity:
		return asQuantity
	case a == Duration && b == Duration:
		return asDuration
	}
	return asText
}

// sameData tells whether two values, neither of which is the policy's, are the same.
func sameData(a any, aField Format, b any, bField Format) bool {
	x, ok := a.(string)
	y, ok2 := b.(string)
	if ok && ok2 {
		if order, ok := readsOfBoth(aField, bField).compare(x, y); ok {
			return order == 0
		}
	}
	return datum.Equal(a, b)
}

// sameOperands is Equals.
func sameOperands(key, value operand) bool {
	if key.from.Origin == expr.OfPolicy && value.from.Origin == expr.OfPolicy || key.value == nil {
		return equals(key.value, value.value)
	}
	k, keyIsText := key.value.(string)
	v, valueIsText := value.value.(string)
	switch {
	case value.from.Origin == expr.OfCluster && keyIsText && valueIsText:
		if order, ok := readsOfBoth(key.field, key.field).compare(k, v); ok {
			return order == 0
		}
		return value.word().matches(k)
	case key.from.Origin != expr.OfPolicy && value.from.Origin != expr.OfPolicy:
		if keyIsText && valueIsText && len(value.words) == 1 {
			return value.words[0].matches(k)
		}
		return sameData(key.value, key.field, value.value, value.field)
	case !keyIsText && (!valueIsText || value.from.Origin == expr.OfPolicy):
		return equals(key.value, value.value)
	case !keyIsText:
		return value.field != IntOrString && equals(key.value, v)
	case !valueIsText:
		return false
	case value.from.Origin == expr.OfPolicy:
		if order, ok := literalOrder(k, key.field, v); ok {
			return order == 0
		}
		return readsOf(v, key.field) == asText && wildcard.Match(v, k) || key.field == IntOrString && k == v
	}
	if order, ok := literalOrder(v, value.field, k); ok {
		return order == 0
	}
	return k == v
}

// literalOrder orders a text of a field and a literal that is a quantity or a duration; ok
// is false where it is neither, or the text is not.
func literalOrder(text string, field Format, literal string) (order int, ok bool) {
	if field == IntOrString {
		return 0, false
	}
	return readsOf(literal, field).compare(text, literal)
}

// orderedOperands is GreaterThan and its relatives.
func orderedOperands(key operand, operator string, value operand) (bool, error) {
	op, ok := orderOperator(operator)
	if !ok || key.value == nil || value.value == nil {
		return false, nil
	}
	if key.from.Origin != expr.OfRequest && value.from.Origin != expr.OfRequest {
		return ordered(key.value, operator, value.value), nil
	}
	k, keyIsText := key.value.(string)
	v, valueIsText := value.value.(string)
	switch {
	case key.from.Origin == expr.OfRequest && value.from.Origin == expr.OfRequest:
		if datum.IsNumber(key.value) && datum.IsNumber(value.value) {
			return orderedNumber(key.value, op, value.value), nil
		}
		if order, ok := readsOfBoth(key.field, value.field).compare(k, v); ok && keyIsText && valueIsText {
			return satisfies(op, order), nil
		}
		return false, fmt.Errorf("there is no order between %s and %s, both of which are the request's", datum.TypeName(key.value), datum.TypeName(value.value))
	case keyIsText && key.from.Origin == expr.OfRequest:
		order, ok := orderByLiteral(k, key.field, value.value)
		return ok && satisfies(op, order), nil
	case valueIsText && value.from.Origin == expr.OfRequest:
		order, ok := orderByLiteral(v, value.field, key.value)
		return ok && satisfies(op, -order), nil
	}
	return ordered(key.value, operator, value.value), nil
}

// orderByLiteral orders a text of a field and a literal.
func orderByLiteral(text string, field Format, literal any) (order int, ok bool) {
	if field == IntOrString {
		return 0, false
	}
	switch l := literal.(type) {
	case int64, float64:
		f, err := strconv.ParseFloat(text, 64)
		order := datum.Compare(f, l)
		return order, err == nil && order != 2
	case string:
		if as := readsOf(l, field); as != asText {
			return as.compare(text, l)
		}
		a, err := semver.Parse(text)
		b, err2 := semver.Parse(l)
		if err == nil && err2 == nil {
			return a.Compare(b), true
		}
	}
	return 0, false
}

// compareField compares a value of the object with the operand of a pattern's atom.
func compareField(field Format) compareAtom {
	return func(value any, operand string, op textOperator) bool {
		as := readsOf(operand, field)
		_, isText := value.(string)
		if as == asText || isText && field == IntOrString || as == asDuration && datum.IsNumber(value) {
			return matchWords(value, operand, op)
		}
		if text, ok := measure(value); ok {
			if order, ok := as.compare(text, operand); ok {
				return satisfies(op, order)
			}
		}
		return matchWords(value, operand, op)
	}
}

// A given is a leaf of a pattern that a variable gives.
type given struct {
	value any
	field Format
	word  *word // of a text with words of the policy in it
}

// matches tells whether a value of the object is what is given.
func (g given) matches(value any, field Format) bool {
	switch {
	case value == nil || g.value == nil:
		return matchesNothing(value, g.value)
	case g.word == nil:
		return sameData(value, field, g.value, g.field)
	}
	text, ok := wordsOf(value)
	return ok && g.word.matches(text)
}

func matchesNothing(value, pattern any) bool { return pattern == nil && isZero(value) }
