package translate

import (
	"cmp"
	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// conditionOrder is GreaterThan and its kin.
func (l *lowering) conditionOrder(op scalar.Relation, key, value operand) cel.Bool {
	if isTruth(key) && value.form != litForm || isTruth(value) && key.form != litForm { // an error, if a query of the request gives it
		panic(l.noOrder(key, value))
	}
	if value.form != litForm {
		return l.orderVariable(op, key, value)
	}
	want := value.lit
	return l.holds(key, true, pred{
		lit:   func(v any) cel.Bool { return cel.Lit(scalar.Ordered(op, v, want)) },
		value: func(x cel.Value, t *schema.Type) cel.Bool { return l.orderLiteral(op, x, t, want) },
		sequence: func(sequence) cel.Bool {
			return cel.False()
		},
		neutral: neutralsOf(value),
	})
}

// isTruth tells of true and false.
func isTruth(j operand) bool {
	_, is := j.lit.(bool)
	return j.form == litForm && is
}

func (l *lowering) orderLiteral(op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch kindOf(t) {
	case schema.Int, schema.Number:
		return l.orderNumber(op, x, want)
	case schema.String:
		return l.orderString(op, x, t, want)
	case schema.IntOrString:
		return cel.And(typeIs(x, "int"), l.orderNumber(op, x, want))
	case schema.Any:
		n := l.orderNumber(op, x, want)
		if !n.IsFalse() {
			n = cel.And(isNumber(x), n)
		}
		s := l.orderString(op, x, t, want)
		if !s.IsFalse() {
			s = cel.And(isString(x), s)
		}
		return cel.Or(n, s)
	}
	return cel.False()
}

// orderNumber is a number key.
func (l *lowering) orderNumber(op scalar.Relation, x cel.Value, want any) cel.Bool {
	f, ok := scalar.Bound(want)
	if !ok {
		return cel.False()
	}
	if f == float64(int64(f)) {
		return x.Compare(cel.Operator(op), cel.Int(int64(f)))
	}
	return x.Compare(cel.Operator(op), cel.Double(f))
}

// orderString is a text key, which is read as the literal is.
func (l *lowering) orderString(op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch w := want.(type) {
	case float64:
		return cel.And(x.Matches(decimalText), cel.Func(cel.FuncDouble, x).Compare(cel.Operator(op), cel.Double(w)))
	case string:
		if readsOf(w, t) != scalar.AsText {
			return measured(x, t, op, w)
		}
		if _, err := semver.Parse(w); err != nil {
			return cel.False()
		}
		if !l.release.Has("semver") {
			panic(l.refuse(diag.NeedsNewer, "comparing versions needs Kubernetes 1.34"))
		}
		same := cel.Func(cel.FuncSemver, x).Call(cel.FuncCompareTo, cel.Func(cel.FuncSemver, cel.String(w))).Compare(cel.Operator(op), cel.Int(0))
		return cel.And(cel.Func(cel.FuncIsSemver, x).AsBool(), same)
	}
	return cel.False()
}

// durationOrder is the deprecated Duration operators, of texts.
func (l *lowering) durationOrder(op scalar.Relation, key, value operand) cel.Bool {
	bound, _ := value.lit.(string)
	d, ok := scalar.Duration(bound)
	if value.form != litForm || !ok {
		panic(l.refuse(diag.NoOperator, "a Duration operator has a native form only with a duration as its value"))
	}
	return l.holds(key, true, pred{
		lit: func(v any) cel.Bool {
			text, _ := v.(string)
			k, ok := scalar.Duration(text)
			if _, number := scalar.Float(v); number {
				panic(l.refuse(diag.NoOperator, "a Duration operator has a native form only for texts"))
			}
			return cel.Lit(ok && op.Holds(cmp.Compare(k, d)))
		},
		value: func(x cel.Value, t *schema.Type) cel.Bool {
			if kindOf(t) != schema.String {
				panic(l.refuse(diag.NoOperator, "a Duration operator has a native form only for texts"))
			}
			return cel.And(isDuration(x), compareDuration(x, op, bound))
		},
		sequence: func(sequence) cel.Bool { return cel.False() },
	})
}
