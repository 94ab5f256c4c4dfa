package scalar

import "cmp"

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
