package compare

import (
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
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
func patternString(v cel.Value, p string, t *schema.Type) cel.Bool {
	if words, ok := wordList(p, t); ok {
		return native.OneOfWords(v, words)
	}
	return combine(p, func(a scalar.Atom) cel.Bool { return atomString(v, t, a) })
}

// wordList reads a pattern that is nothing but alternatives of plain words.
func wordList(p string, t *schema.Type) ([]string, bool) {
	var words []string
	for _, alt := range scalar.ParsePattern(p) {
		if len(alt) != 1 || len(alt[0].Atoms) != 1 {
			return nil, false
		}
		a := alt[0].Atoms[0]
		if a.Op != scalar.Equals || scalar.IsWild(a.Operand) || read.ReadsOf(a.Operand, t) != scalar.AsText {
			return nil, false
		}
		words = append(words, a.Operand)
	}
	return words, true
}

// atomString is: a text satisfies an atom of a pattern, which it is read as the operand of.
func atomString(v cel.Value, t *schema.Type, a scalar.Atom) cel.Bool {
	switch {
	case a.Op == scalar.Differs:
		return cel.Not(atomString(v, t, scalar.Atom{Op: scalar.Equals, Operand: a.Operand}))
	case read.ReadsOf(a.Operand, t) != scalar.AsText:
		return read.Measured(v, t, a.Op, a.Operand)
	case a.Op != scalar.Equals: // of texts there is no order
		return cel.False()
	case read.IsQuantityType(t) && scalar.IsAnything(a.Operand): // no quantity is empty
		return cel.True()
	}
	return native.Matches(v, a.Operand)
}

// patternInt is: the integer v satisfies p.
func patternInt(v cel.Value, p string) cel.Bool {
	return combine(p, func(a scalar.Atom) cel.Bool {
		if q, ok := scalar.Quantity(a.Operand); ok {
			return read.CompareInt(v, a.Op, q)
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
func patternDouble(l *read.Lowering, v cel.Value, t *schema.Type, p string) cel.Bool {
	return combine(p, func(a scalar.Atom) cel.Bool {
		if q, ok := scalar.Quantity(a.Operand); ok {
			return read.CompareNumber(v, t, a.Op, q)
		}
		if scalar.IsWild(a.Operand) && !scalar.IsAnything(a.Operand) && strings.Trim(a.Operand, "*?-+.E0123456789") == "" {
			panic(l.Unsupported("a wildcard that may be about the text of a number with a fraction"))
		}
		return intText(v, a)
	})
}

// patternAny is: v, whose type is not known, satisfies p. Lists and maps do not.
func patternAny(l *read.Lowering, v cel.Value, p string) cel.Bool {
	str := patternString(v, p, read.AnyType())
	num := patternDouble(l, v, read.AnyType(), p)
	t, f := scalar.Satisfies(true, p), scalar.Satisfies(false, p)
	null := scalar.Satisfies(nil, p)
	if t && f && num.IsTrue() && !null { // ?* and the like: any scalar, but not every string
		return cel.And(read.IsScalar(v), cel.Or(cel.Not(read.IsString(v)), str))
	}
	if words, ok := wordList(p, read.AnyType()); ok { // comparing with == needs no guard
		str = native.OneOfWords(v, words)
	} else {
		str = cel.And(read.IsString(v), str)
	}
	if null {
		str = cel.Or(read.IsNull(v), str)
	}
	if !num.IsFalse() {
		num = cel.And(read.IsNumber(v), num)
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

// NullSatisfies tells whether a missing value satisfies p.
func NullSatisfies(l *read.Lowering, p *policy.Node) bool {
	return !IsRuntime(l, p) && literalSatisfies(nil, p)
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

// UnknownPattern refuses a pattern that only a request tells.
func UnknownPattern(l *read.Lowering, p *policy.Node) read.Refusal {
	return l.Refuse(diag.PatternVariable, "a pattern that is only known at run time, %q", p.Str)
}

// IsPlainText tells of a text of the request.
func IsPlainText(j read.Operand) bool {
	return j.Form == read.PlaceForm && read.KindOf(j.Typ()) == schema.String && j.V.Shaped().IsTrue() && !read.IsConfigured(j)
}

// IsRuntime tells of a leaf that stands for a text of the request.
func IsRuntime(l *read.Lowering, p *policy.Node) bool {
	_, ok := l.RuntimeTexts[p]
	return ok
}

// RuntimeScalar is: the value satisfies the text that the leaf stands for, with the given
// verdict where it is missing.
func RuntimeScalar(l *read.Lowering, v read.Place, p *policy.Node, missing bool) cel.Bool {
	switch {
	case v.Never:
		return cel.Lit(missing)
	case v.Certain():
		return runtimeValue(l, v, p)
	}
	return whereFound(v.Found(), runtimeValue(l, v, p), cel.Lit(missing))
}

// runtimeValue is: a value that is there satisfies the text. Of a list, every element must.
func runtimeValue(l *read.Lowering, v read.Place, p *policy.Node) cel.Bool {
	each := func(elem *schema.Type) cel.Bool {
		return l.Binders.All(v.Expr, "item", func(x cel.Value) cel.Bool { return RuntimeElement(l, read.PlaceOf(x, elem), p) })
	}
	switch v.Kind() {
	case schema.List:
		return each(v.Elem())
	case schema.Any:
		return whereFound(cel.Not(read.IsList(v.Expr)), RuntimeElement(l, v, p), each(read.AnyType()))
	}
	return RuntimeElement(l, v, p)
}

// RuntimeElement is runtimeValue for an element of a list, of which no list satisfies a text.
func RuntimeElement(l *read.Lowering, x read.Place, p *policy.Node) cel.Bool {
	t := l.RuntimeTexts[p]
	switch {
	case x.Kind() == schema.String:
		return t.IsSame(x)
	case x.Dynamic() && t.Alone:
		return read.Dyn(x.Expr).Eq(t.Text)
	}
	l.SetPos(p.Pos)
	panic(l.Refuse(diag.PatternVariable, "a pattern that is only known at run time, for a value that is no text by its type"))
}

// whereFound is b where c holds, which is no error, and otherwise where it does not.
func whereFound(c, b, otherwise cel.Bool) cel.Bool {
	switch {
	case otherwise.IsTrue():
		return cel.Implies(c, b)
	case otherwise.IsFalse():
		return cel.And(c, b)
	}
	return cel.CondBool(c, b, otherwise)
}
