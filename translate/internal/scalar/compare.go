package scalar

import (
	"cmp"
	"math"
	"time"

	"github.com/blang/semver/v4"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
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

// A Relation compares two values, written as CEL and Kyverno's patterns do.
type Relation string

// The relations.
const (
	Equals       Relation = "=="
	Differs      Relation = "!="
	Less         Relation = "<"
	LessEqual    Relation = "<="
	Greater      Relation = ">"
	GreaterEqual Relation = ">="
)

// Holds tells whether the sign of a comparison satisfies the relation.
func (r Relation) Holds(sign int) bool {
	switch r {
	case Equals:
		return sign == 0
	case Differs:
		return sign != 0
	case Less:
		return sign < 0
	case LessEqual:
		return sign <= 0
	case Greater:
		return sign > 0
	case GreaterEqual:
		return sign >= 0
	}
	return false
}

// Mirrored is the relation of b to a, where r is that of a to b.
func (r Relation) Mirrored() Relation {
	switch r {
	case Less:
		return Greater
	case LessEqual:
		return GreaterEqual
	case Greater:
		return Less
	case GreaterEqual:
		return LessEqual
	}
	return r
}

// Duration reads a text as a duration.
func Duration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// Quantity reads a text as a quantity.
func Quantity(s string) (resource.Quantity, bool) {
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

// Floor is the greatest integer not above q, and whether it is q itself. Beyond
// 64 bits it is the nearest that an integer of the API can have.
func Floor(q resource.Quantity) (int64, bool) {
	d := q.AsDec()
	floor := new(inf.Dec).Round(d, 0, inf.RoundFloor)
	exact := floor.Cmp(d) == 0
	if !floor.UnscaledBig().IsInt64() {
		if floor.Sign() < 0 {
			return math.MinInt64, false
		}
		return math.MaxInt64, false
	}
	return floor.UnscaledBig().Int64(), exact
}

// nonzeroDuration reads a text as a duration; "0", which is written without a unit, is none.
func nonzeroDuration(s string) (time.Duration, bool) {
	d, ok := Duration(s)
	return d, ok && s != "0"
}
