package scalar

import (
	"math"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

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
