package expr

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// numberFunction is the functions of numbers, and the arithmetic that quantities
// and durations share with them.
func numberFunction(f jmespath.Func) function {
	switch f {
	case jmespath.FuncAbs:
		return onNumber(math.Abs)
	case jmespath.FuncCeil:
		return onNumber(math.Ceil)
	case jmespath.FuncFloor:
		return onNumber(math.Floor)
	case jmespath.FuncAdd, jmespath.FuncSubtract, jmespath.FuncMultiply, jmespath.FuncDivide, jmespath.FuncModulo:
		return func(_ *evaluator, args []any) (any, error) { return arithmetic(f, args[0], args[1]) }
	case jmespath.FuncAvg:
		return average
	case jmespath.FuncRound:
		return round
	case jmespath.FuncToNumber:
		return toNumber
	}
	return nil
}

func onNumber(f func(float64) float64) function {
	return func(_ *evaluator, args []any) (any, error) { return f(datum.Float(args[0])), nil }
}

// average of no numbers is NaN, which no other value equals and no text shows.
func average(_ *evaluator, args []any) (any, error) {
	list := args[0].([]any)
	total := 0.0
	for _, item := range list {
		total += datum.Float(item)
	}
	return total / float64(len(list)), nil
}

func round(_ *evaluator, args []any) (any, error) {
	places, ok := datum.Whole(args[1])
	if !ok || places < 0 {
		return nil, errors.New("the number of places must be whole and not negative")
	}
	shift := math.Pow(10, float64(places))
	return math.Round(datum.Float(args[0])*shift) / shift, nil
}

// toNumber is null for what is neither a number nor the text of one.
func toNumber(_ *evaluator, args []any) (any, error) {
	switch v := args[0].(type) {
	case int64, float64:
		return v, nil
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f, nil
		}
	}
	return nil, nil
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
		if i, ok := datum.Whole(v); ok {
			return strconv.FormatInt(i, 10), nil
		}
		return strconv.FormatFloat(datum.Float(v), 'f', -1, 32), nil
	}
	return "", fmt.Errorf("%s has no text", datum.TypeName(v))
}
