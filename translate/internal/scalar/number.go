package scalar

import (
	"cmp"
	"math"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// CompareTexts compares two texts as durations or as quantities, where both are.
func CompareTexts(a, b string) (int, bool) {
	if d, ok := Duration(a); ok {
		if e, ok := Duration(b); ok {
			return cmp.Compare(d, e), true
		}
	}
	if q, ok := Quantity(a); ok {
		if r, ok := Quantity(b); ok {
			return q.Cmp(r), true
		}
	}
	return 0, false
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

// IsNonzeroDuration tells that a text is a duration; "0", which is written without a unit, is none.
func IsNonzeroDuration(s string) bool {
	_, ok := Duration(s)
	return ok && s != "0"
}
