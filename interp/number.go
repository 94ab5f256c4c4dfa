package interp

import (
	"fmt"
	"math"
	"strconv"
)

// There is one type of number (deviation 7): a value is an int64 or a float64
// after its origin, and which of them it is must never show. Functions give
// float64s.

func isNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// wholeNumber is the integer that a number is.
func wholeNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return int64(v), true
		}
	}
	return 0, false
}

// clampedInt is a number without its fraction, kept in the range of int.
func clampedInt(v any) int {
	if i, ok := v.(int64); ok {
		return int(i)
	}
	f := toFloat(v)
	switch {
	case math.IsNaN(f):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt
	case f <= math.MinInt64:
		return math.MinInt
	}
	return int(f)
}

// scalarText is a string, number or boolean as text, for functions that take
// either. Fractions are printed as Kyverno prints them, with the precision of 32
// bits; integers as they are (deviation 7).
func scalarText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64, float64:
		if i, ok := wholeNumber(v); ok {
			return strconv.FormatInt(i, 10), nil
		}
		return strconv.FormatFloat(toFloat(v), 'f', -1, 32), nil
	}
	return "", fmt.Errorf("%s has no text", typeName(v))
}
