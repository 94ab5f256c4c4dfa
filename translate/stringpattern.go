package translate

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// combine is the pattern, given how one atom reads. Several alternatives that are
// equalities of the same value become one membership.
func combine(p string, one func(scalar.Atom) cel.Bool) cel.Bool {
	var alts []cel.Bool
	for _, alt := range scalar.ParsePattern(p) {
		var conds []cel.Bool
		for _, t := range alt {
			conds = append(conds, buildTerm(t, one))
		}
		alts = append(alts, cel.And(conds...))
	}
	return cel.Or(alts...)
}

func buildTerm(t scalar.Term, one func(scalar.Atom) cel.Bool) cel.Bool {
	var parts []cel.Bool
	for _, a := range t.Atoms {
		parts = append(parts, one(a))
	}
	if t.Either {
		return cel.Or(parts...)
	}
	return cel.And(parts...)
}

// patternString is: the string v satisfies p.
func (l *lowering) patternString(v cel.Value, p string, format schema.Format) cel.Bool {
	if words, ok := wordList(p); ok && format != schema.Quantity {
		return native.OneOfWords(v, words)
	}
	return combine(p, func(a scalar.Atom) cel.Bool {
		if format == schema.Quantity {
			return atomQuantity(v, a)
		}
		return atomString(v, a)
	})
}

// wordList reads a pattern that is nothing but alternatives of plain words.
func wordList(p string) ([]string, bool) {
	var words []string
	for _, alt := range scalar.ParsePattern(p) {
		if len(alt) != 1 || len(alt[0].Atoms) != 1 {
			return nil, false
		}
		a := alt[0].Atoms[0]
		if a.Op != scalar.Equals || scalar.IsWild(a.Operand) || scalar.IsNumeric(a.Operand) {
			return nil, false
		}
		words = append(words, a.Operand)
	}
	return words, true
}

func atomString(v cel.Value, a scalar.Atom) cel.Bool {
	_, isDur := scalar.Duration(a.Operand)
	_, isQty := scalar.Quantity(a.Operand)
	if !isDur && !isQty {
		switch a.Op {
		case scalar.Equals:
			return native.Matches(v, a.Operand)
		case scalar.Differs:
			return cel.Not(native.Matches(v, a.Operand))
		case scalar.Less, scalar.LessEqual, scalar.Greater, scalar.GreaterEqual: // of texts there is no order
		}
		return cel.False()
	}
	op := a.Op
	if op == scalar.Differs { // where neither applies, a text differs from an operand that is a number
		return cel.Not(atomString(v, scalar.Atom{Op: scalar.Equals, Operand: a.Operand}))
	}
	var alts []cel.Bool
	asDur := cel.And(isDuration(v), compareDurationIf(isDur, v, op, a.Operand))
	if isDur {
		alts = append(alts, asDur)
	}
	if isQty {
		q := cel.And(isQuantity(v), compareQuantity(v, op, a.Operand))
		if isDur {
			q = cel.And(cel.Not(isDuration(v)), q)
		}
		alts = append(alts, q)
	}
	return cel.Or(alts...)
}

func compareDurationIf(ok bool, v cel.Value, op scalar.Relation, operand string) cel.Bool {
	if !ok {
		return cel.False()
	}
	return compareDuration(v, op, operand)
}

// atomQuantity is for a value that is a canonical quantity. Durations and
// quantities that share a suffix are in the same order.
func atomQuantity(v cel.Value, a scalar.Atom) cel.Bool {
	if _, ok := scalar.Quantity(a.Operand); !ok {
		if a.Op == scalar.Equals && scalar.IsAnything(a.Operand) { // no quantity is empty
			return cel.True()
		}
		return atomString(v, a)
	}
	return compareQuantity(v, a.Op, a.Operand)
}

// patternInt is: the integer v satisfies p.
func (l *lowering) patternInt(v cel.Value, p string) cel.Bool {
	return combine(p, func(a scalar.Atom) cel.Bool {
		if q, ok := scalar.Quantity(a.Operand); ok {
			return compareInt(v, a.Op, q)
		}
		if d, ok := scalar.Duration(a.Operand); ok {
			return numberAsDuration(v, a.Op, d)
		}
		return intText(v, a)
	})
}

// intText compares the decimal text of an integer.
func intText(v cel.Value, a scalar.Atom) cel.Bool {
	var same cel.Bool
	switch {
	case a.Op != scalar.Equals && a.Op != scalar.Differs:
		return cel.False()
	case scalar.IsAnything(a.Operand):
		same = cel.True()
	case !scalar.IsWild(a.Operand) || strings.Trim(a.Operand, "*?-0123456789") != "":
		same = cel.False() // no integer reads like this
	default:
		same = native.Matches(cel.Func(cel.FuncString, v), a.Operand)
	}
	if a.Op == scalar.Differs {
		return cel.Not(same)
	}
	return same
}

// patternDouble is: the number v, which may be a fraction, satisfies p.
func (l *lowering) patternDouble(v cel.Value, p string) cel.Bool {
	return combine(p, func(a scalar.Atom) cel.Bool {
		if q, ok := scalar.Quantity(a.Operand); ok {
			return compareNumber(v, a.Op, q)
		}
		if d, ok := scalar.Duration(a.Operand); ok {
			return numberAsDuration(v, a.Op, d)
		}
		return l.doubleText(v, a)
	})
}

// numberAsDuration compares a number with a duration. Only 0 is one; the text of any
// other number differs from the duration's.
func numberAsDuration(v cel.Value, op scalar.Relation, d time.Duration) cel.Bool {
	zero, other := op.Holds(cmp.Compare(0, d)), op == scalar.Differs
	switch {
	case zero == other:
		return cel.Lit(zero)
	case zero:
		return v.Eq(cel.Int(0))
	}
	return v.Ne(cel.Int(0))
}

// patternAny is: v, whose type is not known, satisfies p. Lists and maps do not.
func (l *lowering) patternAny(v cel.Value, p string) cel.Bool {
	str := l.patternString(v, p, schema.AnyText)
	num := l.patternDouble(v, p)
	t, f := scalar.Satisfies(true, p), scalar.Satisfies(false, p)
	null := scalar.Satisfies(nil, p)
	if t && f && num.IsTrue() && !null { // ?* and the like: any scalar, but not every string
		return cel.And(isScalar(v), cel.Or(cel.Not(isString(v)), str))
	}
	if words, ok := wordList(p); ok { // comparing with == needs no guard
		str = native.OneOfWords(v, words)
	} else {
		str = cel.And(isString(v), str)
	}
	if null {
		str = cel.Or(isNull(v), str)
	}
	if !num.IsFalse() {
		num = cel.And(isNumber(v), num)
	}
	return cel.Or(str, num, boolAny(v, t, f))
}

func boolAny(v cel.Value, t, f bool) cel.Bool {
	var alts []cel.Bool
	if t {
		alts = append(alts, v.Eq(cel.Lit(true).Value))
	}
	if f {
		alts = append(alts, v.Eq(cel.Lit(false).Value))
	}
	return cel.Or(alts...)
}

// What follows judges values that are known when compiling: literals for orValue,
// null, and the two booleans.

// nullSatisfies tells whether a missing value satisfies p.
func (l *lowering) nullSatisfies(p *policy.Node) bool {
	return l.isRuntime(p) || literalSatisfies(nil, p)
}

// literalSatisfies tells whether v (nil, bool, int64, float64 or string) satisfies p.
func literalSatisfies(v any, p *policy.Node) bool {
	switch p.Kind {
	case policy.Null:
		return v == nil || v == false || v == int64(0) || v == 0.0 || v == ""
	case policy.Bool:
		return v == p.Bool
	case policy.Int, policy.Float:
		switch v := v.(type) {
		case int64:
			return float64(v) == number(p)
		case float64:
			return v == number(p)
		case string:
			if p.Kind == policy.Int {
				n, err := strconv.ParseInt(v, 10, 64)
				return err == nil && n == p.Int
			}
			f, err := strconv.ParseFloat(v, 64)
			return err == nil && f == p.Float
		}
	case policy.String:
		return scalar.Satisfies(v, p.Str)
	}
	return false
}

// wholeNumber is the value of a numeric node that has no fraction.
func wholeNumber(p *policy.Node) (int64, bool) {
	if p.Kind == policy.Int {
		return p.Int, true
	}
	whole := int64(p.Float)
	return whole, p.Float == float64(whole)
}

// number is the value of a numeric node.
func number(p *policy.Node) float64 {
	if p.Kind == policy.Int {
		return float64(p.Int)
	}
	return p.Float
}
