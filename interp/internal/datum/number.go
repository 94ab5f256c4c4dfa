package datum

import "math"

// IsNumber tells whether a value is a number.
func IsNumber(v any) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

// Whole is the integer that a number is.
func Whole(v any) (int64, bool) {
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

// Clamped is a number without its fraction, kept in the range of int.
func Clamped(v any) int {
	if i, ok := v.(int64); ok {
		return int(i)
	}
	f := Float(v)
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

// Compare orders two numbers, each an int64 or float64: -1, 0 or 1, and 2 where
// one of them is not a number.
func Compare(a, b any) int {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			return CompareInts(x, y)
		}
	}
	x, y := Float(a), Float(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return 2
}

// Float is a number as a float64; what is none is NaN.
func Float(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return math.NaN()
}

// CompareInts orders two integers: -1, 0 or 1.
func CompareInts(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
