package translate

import (
	"math"
	"strconv"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kvap/kvap/cel"
)

// decimalText matches the decimal numbers that Go's ParseFloat takes.
const decimalText = `^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$`

// durationText matches what Go's ParseDuration takes.
const durationText = `^[+-]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`

// integerText matches the texts that Go's ParseInt reads as n.
func integerText(n int64) string {
	switch {
	case n == 0:
		return `^[+-]?0+$`
	case n < 0:
		return `^-0*` + strconv.FormatInt(n, 10)[1:] + `$`
	}
	return `^[+]?0*` + strconv.FormatInt(n, 10) + `$`
}

func isDuration(v cel.Value) cel.Bool { return v.Matches(durationText) }

func isQuantity(v cel.Value) cel.Bool { return cel.Func("isQuantity", v).AsBool() }

func compareDuration(v cel.Value, op, operand string) cel.Bool {
	return cel.Func("duration", v).Compare(op, cel.Func("duration", cel.String(operand)))
}

func compareQuantity(v cel.Value, op, operand string) cel.Bool {
	q := cel.Func("quantity", v)
	w := cel.Func("quantity", cel.String(operand))
	switch op {
	case ">":
		return q.Call("isGreaterThan", w).AsBool()
	case "<":
		return q.Call("isLessThan", w).AsBool()
	}
	return q.Call("compareTo", w).Compare(op, cel.Int(0))
}

func parseDuration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil
}

func parseQuantity(s string) (resource.Quantity, bool) {
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}

// compareInt is v op q for an integer v, without fractions in the expression.
func compareInt(v cel.Value, op string, q resource.Quantity) cel.Bool {
	floor, exact := floorOf(q)
	switch op {
	case "==", "!=":
		if !exact {
			return cel.Lit(op == "!=")
		}
		return v.Compare(op, cel.Int(floor))
	case "<":
		if exact {
			return v.Compare("<", cel.Int(floor))
		}
		return v.Compare("<=", cel.Int(floor))
	case "<=":
		return v.Compare("<=", cel.Int(floor))
	case ">":
		return v.Compare(">", cel.Int(floor))
	default: // >=
		if exact {
			return v.Compare(">=", cel.Int(floor))
		}
		return v.Compare(">", cel.Int(floor))
	}
}

// floorOf is the greatest integer not above q, and whether it is q itself. Beyond
// 64 bits it is the nearest that an integer of the API can have.
func floorOf(q resource.Quantity) (int64, bool) {
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

// compareNumber is v op q for a number of either type. Kyverno rounds a double
// to six decimals first; a value that differs from the bound by less than that is
// not told apart from it there.
func compareNumber(v cel.Value, op string, q resource.Quantity) cel.Bool {
	if floor, exact := floorOf(q); exact {
		return v.Compare(op, cel.Int(floor))
	}
	f := q.AsApproximateFloat64()
	return v.Compare(op, cel.Double(f))
}
