package compare

import (
	"cmp"

	"github.com/blang/semver/v4"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Order is GreaterThan and its kin.
func Order(l *read.Lowering, op scalar.Relation, key, value read.Operand) cel.Bool {
	if value.Form != read.LitForm {
		return orderVariable(l, op, key, value)
	}
	want := value.Lit
	if hasNoOrder(want) {
		panic(noOrder(l, key, value))
	}
	return read.Holds(l, key, true, read.Pred{
		Lit:     func(v any) cel.Bool { return cel.Lit(scalar.Ordered(op, v, want)) },
		Value:   func(x cel.Value, t *schema.Type) cel.Bool { return orderLiteral(l, op, x, t, want) },
		Neutral: NeutralsOf(value),
	})
}

// hasNoOrder tells of a literal that comes before and after nothing: which is false of the
// policy's own, and an error if the request gives it, as its operation.
func hasNoOrder(lit any) bool {
	text, isText := lit.(string)
	_, isBool := lit.(bool)
	_, err := semver.Parse(text)
	return isBool || isText && err != nil && scalar.ReadsOf(text, false) == scalar.AsText
}

func orderLiteral(l *read.Lowering, op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	ordered := cel.And(numberIn(x, t), orderNumber(op, x, want))
	if k := read.KindOf(t); k == schema.String || k == schema.Any {
		ordered = cel.Or(ordered, cel.And(textIn(x, t), orderString(l, op, x, t, want)))
	}
	return ordered
}

// orderNumber is a number key.
func orderNumber(op scalar.Relation, x cel.Value, want any) cel.Bool {
	f, ok := scalar.Bound(want)
	if !ok {
		return cel.False()
	}
	return x.Compare(cel.Operator(op), read.NumberOf(f))
}

// orderString is a text key, which is read as the literal is.
func orderString(l *read.Lowering, op scalar.Relation, x cel.Value, t *schema.Type, want any) cel.Bool {
	switch w := want.(type) {
	case float64:
		return cel.And(x.Matches(read.DecimalText), cel.Func(cel.FuncDouble, x).Compare(cel.Operator(op), cel.Double(w)))
	case string:
		if read.ReadsOf(w, t) != scalar.AsText {
			return read.Measured(x, t, op, w)
		}
		if !l.Release.Has("semver") {
			panic(l.Refuse(diag.NeedsNewer, "comparing versions needs Kubernetes 1.34"))
		}
		same := cel.Func(cel.FuncSemver, x).Call(cel.FuncCompareTo, cel.Func(cel.FuncSemver, cel.String(w))).Compare(cel.Operator(op), cel.Int(0))
		return cel.And(cel.Func(cel.FuncIsSemver, x).AsBool(), same)
	}
	return cel.False()
}

// DurationOrder is the deprecated Duration operators, of texts.
func DurationOrder(l *read.Lowering, op scalar.Relation, key, value read.Operand) cel.Bool {
	bound, _ := value.Lit.(string)
	d, ok := scalar.Duration(bound)
	if value.Form != read.LitForm || !ok {
		panic(l.Refuse(diag.NoOperator, "a Duration operator has a native form only with a duration as its value"))
	}
	return read.Holds(l, key, true, read.Pred{
		Lit: func(v any) cel.Bool {
			text, _ := v.(string)
			k, ok := scalar.Duration(text)
			if _, number := scalar.Float(v); number {
				panic(l.Refuse(diag.NoOperator, "a Duration operator has a native form only for texts"))
			}
			return cel.Lit(ok && op.Holds(cmp.Compare(k, d)))
		},
		Value: func(x cel.Value, t *schema.Type) cel.Bool {
			if read.KindOf(t) != schema.String {
				panic(l.Refuse(diag.NoOperator, "a Duration operator has a native form only for texts"))
			}
			return cel.And(read.IsDuration(x), read.CompareDuration(x, op, bound))
		},
	})
}
