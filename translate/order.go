package translate

import (
	"math"

	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
)

// conditionOrder is GreaterThan and its kin.
func (l *lowering) conditionOrder(op string, key, value operand) cel.Bool {
	if value.form != litForm {
		return l.orderVariable(op, key, value)
	}
	want := value.lit
	return l.holds(key, true, pred{
		lit:   func(v any) cel.Bool { return cel.Lit(literalOrder(op, v, want)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool { return l.orderLiteral(op, x, t, want) },
		sequence: func(sequence) cel.Bool {
			return cel.False()
		},
		neutral: neutralsOf(value),
	})
}

func (l *lowering) orderLiteral(op string, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch kindOf(t) {
	case schema.Int, schema.Number:
		return l.orderNumber(op, x, want)
	case schema.String:
		return l.orderString(op, x, want)
	case schema.IntOrString:
		return byType(x, typed{"int", l.orderNumber(op, x, want)}, typed{"string", l.orderString(op, x, want)})
	case schema.Any:
		n := l.orderNumber(op, x, want)
		if !n.IsFalse() {
			n = cel.And(isNumber(x), n)
		}
		s := l.orderString(op, x, want)
		if !s.IsFalse() {
			s = cel.And(isString(x), s)
		}
		return cel.Or(n, s)
	}
	return cel.False()
}

// orderNumber is a number key.
func (l *lowering) orderNumber(op string, x cel.Value, want any) cel.Bool {
	f, ok := boundOf(want)
	if !ok {
		return cel.False()
	}
	if f == float64(int64(f)) {
		return x.Compare(op, cel.Int(int64(f)))
	}
	return x.Compare(op, cel.Double(f))
}

// boundOf is the number that a number key is compared with.
func boundOf(want any) (float64, bool) {
	switch w := want.(type) {
	case float64:
		return w, true
	case string:
		if d, ok := parseDuration(w); ok && w != "0" {
			return d.Seconds(), true
		}
		f, ok := parseNumber(w)
		return f, ok && !math.IsNaN(f) && !math.IsInf(f, 0)
	}
	return 0, false
}

// orderString is a text key, tried as a duration, a quantity, a number and a
// version, in this order.
func (l *lowering) orderString(op string, x cel.Value, want any) cel.Bool {
	switch w := want.(type) {
	case float64:
		dur := cel.And(isDuration(x), cel.Not(isZeroText(x)))
		byDuration := cel.Func("duration", x).Compare(op, cel.Func("duration", cel.String(seconds(w))))
		byNumber := cel.And(x.Matches(decimalText), cel.Func("double", x).Compare(op, cel.Double(w)))
		return cel.Or(cel.And(dur, byDuration), byNumber)
	case string:
		return l.orderText(op, x, w)
	}
	return cel.False()
}

func (l *lowering) orderText(op string, x cel.Value, want string) cel.Bool {
	dur := isNonzeroDuration(want)
	_, qty := parseQuantity(want)
	var alts []cel.Bool
	xIsDur := cel.And(isDuration(x), cel.Not(isZeroText(x)))
	if dur {
		alts = append(alts, cel.And(xIsDur, compareDuration(x, op, want)))
	}
	if qty {
		q := cel.And(isQuantity(x), compareQuantity(x, op, want))
		if dur {
			q = cel.And(cel.Not(xIsDur), q)
		}
		alts = append(alts, q)
	}
	if _, err := semver.Parse(want); err == nil && !qty && !dur {
		if !l.release.Has("semver") {
			panic(l.refuse(diag.NeedsNewer, "comparing versions needs Kubernetes 1.34"))
		}
		same := cel.Func("semver", x).Call("compareTo", cel.Func("semver", cel.String(want))).Compare(op, cel.Int(0))
		alts = append(alts, cel.And(cel.Func("isSemver", x).AsBool(), same))
	}
	if !qty && dur { // a number of seconds as text: neither both durations nor both quantities
		if f, ok := boundOf(want); ok {
			alts = append(alts, cel.And(x.Matches(decimalText), cel.Func("double", x).Compare(op, cel.Double(f))))
		}
	}
	return cel.Or(alts...)
}

// literalOrder is the order of two literals.
func literalOrder(op string, key, want any) bool {
	switch k := key.(type) {
	case int64:
		return literalOrder(op, float64(k), want)
	case float64:
		f, ok := boundOf(want)
		return ok && ordered(op, compareFloats(k, f))
	case string:
		return textOrder(op, k, want)
	}
	return false
}

func textOrder(op, k string, want any) bool {
	if f, ok := want.(float64); ok {
		if d, ok := parseDuration(k); ok && k != "0" {
			return ordered(op, compareFloats(d.Seconds(), float64(int64(f))))
		}
	}
	if w, ok := want.(string); ok {
		if isNonzeroDuration(k) && isNonzeroDuration(w) {
			c, _ := compareTexts(k, w)
			return ordered(op, c)
		}
		if q, ok := parseQuantity(k); ok {
			if r, ok := parseQuantity(w); ok {
				return ordered(op, q.Cmp(r))
			}
		}
	}
	if f, ok := parseNumber(k); ok {
		return literalOrder(op, f, want)
	}
	a, err := semver.Parse(k)
	w, ok := want.(string)
	if err != nil || !ok {
		return false
	}
	b, err := semver.Parse(w)
	return err == nil && ordered(op, a.Compare(b))
}

// orderVariable compares two values of the request, where both are numbers.
func (l *lowering) orderVariable(op string, key, value operand) cel.Bool {
	k, ok := l.expr(key)
	v, ok2 := l.expr(value)
	if ok && ok2 && numericKind(key.typ()) && numericKind(value.typ()) {
		return k.Compare(op, v)
	}
	panic(l.unsupported("the order of two values of the request"))
}

// durationOrder is the deprecated Duration operators: numbers are seconds.
func (l *lowering) durationOrder(op string, key, value operand) cel.Bool {
	if value.form != litForm {
		panic(l.refuse(diag.NoOperator, "a Duration operator with a variable as its value has no native form"))
	}
	var bound string
	switch w := value.lit.(type) {
	case float64:
		bound = seconds(w)
	case string:
		bound = w
	}
	d, ok := parseDuration(bound)
	if !ok {
		return l.never(key)
	}
	text := func(x cel.Value) cel.Bool { return cel.And(isDuration(x), compareDuration(x, op, bound)) }
	num := func(x cel.Value) cel.Bool {
		return cel.Func("duration", cel.Func("string", cel.Func("int", x)).Plus(cel.String("s"))).Compare(op, cel.Func("duration", cel.String(bound)))
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			switch v := v.(type) {
			case float64:
				return cel.Lit(ordered(op, compareFloats(float64(int64(v)), d.Seconds())))
			case string:
				k, ok := parseDuration(v)
				return cel.Lit(ok && ordered(op, sign(int64(k), int64(d))))
			}
			return cel.False()
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			switch kindOf(t) {
			case schema.Int, schema.Number:
				return num(x)
			case schema.String:
				return text(x)
			case schema.IntOrString:
				return byType(x, typed{"int", num(x)}, typed{"string", text(x)})
			case schema.Any:
				return cel.Or(cel.And(isNumber(x), num(x)), cel.And(isString(x), text(x)))
			}
			return cel.False()
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}
