package scalar

import (
	"math"

	"github.com/blang/semver/v4"
)

// EqualNumber is the number that a numeric key must be to equal v.
func EqualNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		return Number(v)
	}
	return 0, false
}

// Equal is Equals of two literals.
func Equal(key, value any) bool {
	switch k := key.(type) {
	case bool:
		return key == value
	case float64:
		f, ok := EqualNumber(value)
		return ok && f == k
	case int64:
		f, ok := EqualNumber(value)
		return ok && f == float64(k)
	case string:
		switch v := value.(type) {
		case float64:
			if d, ok := Duration(k); ok && k != "0" {
				return d.Seconds() == float64(int64(v))
			}
		case string:
			if IsNonzeroDuration(k) && IsNonzeroDuration(v) {
				c, _ := CompareTexts(k, v)
				return c == 0
			}
			if q, ok := Quantity(k); ok {
				r, ok := Quantity(v)
				return ok && q.Cmp(r) == 0
			}
			return WildMatch(v, k)
		}
		return false
	case nil:
		return false
	}
	return Same(key, value) && value != nil
}

// Bound is the number that a number key is compared with.
func Bound(want any) (float64, bool) {
	switch w := want.(type) {
	case float64:
		return w, true
	case string:
		if d, ok := Duration(w); ok && w != "0" {
			return d.Seconds(), true
		}
		f, ok := Number(w)
		return f, ok && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

// Ordered tells whether two literals are in a relation of order.
func Ordered(op Relation, key, want any) bool {
	switch k := key.(type) {
	case int64:
		return Ordered(op, float64(k), want)
	case float64:
		f, ok := Bound(want)
		return ok && op.Holds(CompareFloats(k, f))
	case string:
		return textOrder(op, k, want)
	}
	return false
}

func textOrder(op Relation, k string, want any) bool {
	if f, ok := want.(float64); ok {
		if d, ok := Duration(k); ok && k != "0" {
			return op.Holds(CompareFloats(d.Seconds(), float64(int64(f))))
		}
	}
	if w, ok := want.(string); ok {
		if IsNonzeroDuration(k) && IsNonzeroDuration(w) {
			c, _ := CompareTexts(k, w)
			return op.Holds(c)
		}
		if q, ok := Quantity(k); ok {
			if r, ok := Quantity(w); ok {
				return op.Holds(q.Cmp(r))
			}
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
