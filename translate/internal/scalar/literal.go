package scalar

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Text is a literal inside a longer text.
func Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return NumberText(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// NumberText is a number in decimal, integers without a fraction.
func NumberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Number is what a text reads as, as Go reads numbers; a number is itself.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// Sorted is a list in order: numbers by value, others by their text.
func Sorted(list []any) []any {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b any) int {
		if f, ok := Float(a); ok {
			if g, ok := Float(b); ok {
				return CompareFloats(f, g)
			}
		}
		return strings.Compare(Text(a), Text(b))
	})
	return out
}

// Float is a literal as a number, where it is one.
func Float(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// CompareFloats is the sign of a - b.
func CompareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Same tells that two literals are equal as JMESPath compares: by type and value.
func Same(a, b any) bool {
	if f, ok := Float(a); ok {
		g, ok := Float(b)
		return ok && f == g
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Same)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Same)
	}
	return a == b
}

// A Reads is what a literal of the policy has a text beside it read as.
type Reads int

// What a text is read as. Where it cannot be, it does not satisfy a comparison.
const (
	AsText Reads = iota
	AsQuantity
	AsDuration
)

// ReadsOf is what a literal has a text read as: 5m is a quantity, but where the text is a
// duration by its schema.
func ReadsOf(literal string, duration bool) Reads {
	_, isDuration := Duration(literal)
	_, isQuantity := Quantity(literal)
	switch {
	case isDuration && (duration || !isQuantity):
		return AsDuration
	case isQuantity:
		return AsQuantity
	}
	return AsText
}

// compare orders two texts as r reads them; ok is false where one of them is no such text.
func (r Reads) compare(a, b string) (order int, ok bool) {
	switch r {
	case AsQuantity:
		q, ok := Quantity(a)
		w, ok2 := Quantity(b)
		return q.Cmp(w), ok && ok2
	case AsDuration:
		d, ok := Duration(a)
		e, ok2 := Duration(b)
		return cmp.Compare(d, e), ok && ok2
	}
	return 0, false
}

// EqualText tells whether a text of the request equals a literal.
func EqualText(text, literal string) bool {
	if as := ReadsOf(literal, false); as != AsText {
		order, ok := as.compare(text, literal)
		return ok && order == 0
	}
	return WildMatch(literal, text)
}
