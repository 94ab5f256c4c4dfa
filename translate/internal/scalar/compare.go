package scalar

import (
	"cmp"
	"math"

	"github.com/blang/semver/v4"
)

// Equal is Equals of two literals.
func Equal(key, value any) bool {
	if k, isNumber := Float(key); isNumber {
		f, ok := Number(value)
		return ok && f == k
	}
	switch k := key.(type) {
	case bool:
		return key == value
	case string:
		switch v := value.(type) {
		case float64:
			d, ok := nonzeroDuration(k)
			return ok && d.Seconds() == float64(int64(v))
		case string:
			if order, ok := compareTexts(k, v); ok {
				return order == 0
			}
			_, isQuantity := Quantity(k)
			return !isQuantity && WildMatch(v, k)
		}
		return false
	case nil:
		return false
	}
	return Same(key, value) && value != nil
}

// compareTexts compares two texts as durations or as quantities, where both are.
func compareTexts(a, b string) (order int, ok bool) {
	d, ok := nonzeroDuration(a)
	e, ok2 := nonzeroDuration(b)
	if ok && ok2 {
		return cmp.Compare(d, e), true
	}
	return AsQuantity.compare(a, b)
}

// Bound is the number that a number key is compared with.
func Bound(want any) (float64, bool) {
	switch w := want.(type) {
	case float64:
		return w, true
	case string:
		if d, ok := nonzeroDuration(w); ok {
			return d.Seconds(), true
		}
		f, ok := Number(w)
		return f, ok && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

// Ordered tells whether two literals are in a relation of order.
func Ordered(op Relation, key, want any) bool {
	if k, isNumber := Float(key); isNumber {
		f, ok := Bound(want)
		return ok && op.Holds(CompareFloats(k, f))
	}
	k, isText := key.(string)
	return isText && textOrder(op, k, want)
}

func textOrder(op Relation, k string, want any) bool {
	if f, ok := want.(float64); ok {
		if d, ok := nonzeroDuration(k); ok {
			return op.Holds(CompareFloats(d.Seconds(), float64(int64(f))))
		}
	}
	if w, ok := want.(string); ok {
		if order, ok := compareTexts(k, w); ok {
			return op.Holds(order)
		}
	}
	if f, ok := Number(k); ok {
		return Ordered(op, f, want)
	}
	a, err := semver.Parse(k)
	w, ok := want.(string)
	if err != nil || !ok {
		return false
	}
	b, err := semver.Parse(w)
	return err == nil && op.Holds(a.Compare(b))
}
