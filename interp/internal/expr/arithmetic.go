package expr

import (
	"fmt"
	"math"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/jmespath"
)

// arithmetic is add, subtract, multiply, divide and modulo, on numbers,
// quantities and durations. A text is a quantity where it can be, so 5m is five
// thousandths and no five minutes.
func arithmetic(operation jmespath.Func, a, b any) (any, error) {
	left, err := arithmeticOperand(operation, 1, a)
	if err != nil {
		return nil, err
	}
	right, err := arithmeticOperand(operation, 2, b)
	if err != nil {
		return nil, err
	}
	switch operation {
	case jmespath.FuncAdd, jmespath.FuncSubtract:
		return sum(operation, left, right)
	case jmespath.FuncMultiply:
		return product(left, right)
	case jmespath.FuncDivide:
		return quotient(left, right)
	}
	return remainder(left, right)
}

// arithmeticOperand is a float64, resource.Quantity or time.Duration.
func arithmeticOperand(operation jmespath.Func, position int, v any) (any, error) {
	switch v := v.(type) {
	case int64, float64:
		return datum.Float(v), nil
	case string:
		if q, err := datum.ParseQuantity(v); err == nil {
			return q, nil
		}
		if d, err := time.ParseDuration(v); err == nil {
			return d, nil
		}
		return nil, fmt.Errorf("argument %d of %s() is neither a quantity nor a duration: %q", position, operation, v)
	}
	return nil, fmt.Errorf("argument %d of %s() must be a number, a quantity or a duration, not %s", position, operation, datum.TypeName(v))
}

func typesMismatch(operation jmespath.Func) error {
	return fmt.Errorf("types mismatch: the arguments of %s() do not go together", operation)
}

func zeroDivisor(operation jmespath.Func) error {
	return fmt.Errorf("zero divisor passed to %s()", operation)
}

func sum(operation jmespath.Func, a, b any) (any, error) {
	sign := 1
	if operation == jmespath.FuncSubtract {
		sign = -1
	}
	switch a := a.(type) {
	case float64:
		if b, ok := b.(float64); ok {
			return a + float64(sign)*b, nil
		}
	case resource.Quantity:
		if b, ok := b.(resource.Quantity); ok {
			if sign < 0 {
				a.Sub(b)
			} else {
				a.Add(b)
			}
			return a.String(), nil
		}
	case time.Duration:
		if b, ok := b.(time.Duration); ok {
			return (a + time.Duration(sign)*b).String(), nil
		}
	}
	return nil, typesMismatch(operation)
}

func product(a, b any) (any, error) {
	if f, ok := a.(float64); ok {
		if g, ok := b.(float64); ok {
			return f * g, nil
		}
		a, b = b, any(f)
	}
	f, ok := b.(float64)
	if !ok {
		return nil, typesMismatch(jmespath.FuncMultiply)
	}
	switch a := a.(type) {
	case resource.Quantity:
		q, err := scalarQuantity(f)
		if err != nil {
			return nil, err
		}
		var out inf.Dec
		out.Mul(a.AsDec(), q.AsDec())
		return resource.NewDecimalQuantity(out, a.Format).String(), nil
	case time.Duration:
		return durationOf(a.Seconds() * f)
	}
	return nil, typesMismatch(jmespath.FuncMultiply)
}

func scalarQuantity(f float64) (resource.Quantity, error) {
	return datum.ParseQuantity(fmt.Sprint(f))
}

func durationOf(seconds float64) (any, error) {
	nanos := seconds * float64(time.Second)
	if !(math.Abs(nanos) < math.MaxInt64) {
		return nil, fmt.Errorf("a duration of %g seconds is too long", seconds)
	}
	return time.Duration(nanos).String(), nil
}

func quotient(a, b any) (any, error) {
	switch b := b.(type) {
	case float64:
		return quotientByNumber(a, b)
	case resource.Quantity:
		if a, ok := a.(resource.Quantity); ok {
			divisor := b.AsApproximateFloat64()
			if divisor == 0 {
				return nil, zeroDivisor(jmespath.FuncDivide)
			}
			return a.AsApproximateFloat64() / divisor, nil
		}
	case time.Duration:
		if a, ok := a.(time.Duration); ok {
			if b == 0 {
				return nil, zeroDivisor(jmespath.FuncDivide)
			}
			return a.Seconds() / b.Seconds(), nil
		}
	}
	return nil, typesMismatch(jmespath.FuncDivide)
}

// quotientByNumber divides. A quantity is rounded down at the finer of both
// scales.
func quotientByNumber(a any, f float64) (any, error) {
	if f == 0 {
		return nil, zeroDivisor(jmespath.FuncDivide)
	}
	switch a := a.(type) {
	case float64:
		return a / f, nil
	case time.Duration:
		return durationOf(a.Seconds() / f)
	case resource.Quantity:
		q, err := scalarQuantity(f)
		if err != nil {
			return nil, err
		}
		x, y := a.AsDec(), q.AsDec()
		if y.Sign() == 0 {
			return nil, zeroDivisor(jmespath.FuncDivide)
		}
		var out inf.Dec
		out.QuoRound(x, y, max(x.Scale(), y.Scale()), inf.RoundDown)
		return resource.NewDecimalQuantity(out, a.Format).String(), nil
	}
	return nil, typesMismatch(jmespath.FuncDivide)
}

func remainder(a, b any) (any, error) {
	switch a := a.(type) {
	case float64:
		if b, ok := b.(float64); ok {
			n, err := wholeRemainder(a, b)
			return float64(n), err
		}
	case resource.Quantity:
		if b, ok := b.(resource.Quantity); ok {
			n, err := wholeRemainder(a.AsApproximateFloat64(), b.AsApproximateFloat64())
			if err != nil {
				return nil, err
			}
			return resource.NewQuantity(n, a.Format).String(), nil
		}
	case time.Duration:
		if b, ok := b.(time.Duration); ok {
			if b == 0 {
				return nil, zeroDivisor(jmespath.FuncModulo)
			}
			return (a % b).String(), nil
		}
	}
	return nil, typesMismatch(jmespath.FuncModulo)
}

func wholeRemainder(a, b float64) (int64, error) {
	i, ok := datum.Whole(a)
	j, whole := datum.Whole(b)
	switch {
	case !ok || !whole:
		return 0, fmt.Errorf("non-integer argument passed to modulo()")
	case j == 0:
		return 0, zeroDivisor(jmespath.FuncModulo)
	}
	return i % j, nil
}
