package translate

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// A number with a fraction reads as 1.5E+00 to a pattern of texts: one digit, the
// others behind a point, and an exponent. CEL writes it so only where the exponent is
// smaller than -4 or greater than 5, and with a small letter.

// doubleText compares the text of a number, which may have a fraction.
func (l *lowering) doubleText(v cel.Value, a scalar.Atom) cel.Bool {
	scientific := scalar.IsWild(a.Operand) && !scalar.IsAnything(a.Operand) && strings.Trim(a.Operand, "*?-+.E0123456789") == ""
	if !scientific || a.Op != scalar.Equals && a.Op != scalar.Differs {
		return intText(v, a)
	}
	same := native.Matches(l.numberText(v), a.Operand)
	if a.Op == scalar.Differs {
		return cel.Not(same)
	}
	return same
}

// numberText is the text of a number of either type.
func (l *lowering) numberText(v cel.Value) cel.Value {
	v = l.once("number", v)
	text := l.once("numberText", cel.Func(cel.FuncString, v))
	whole := cel.And(v.Compare(cel.Less, cel.Double(1e18)), v.Compare(cel.Greater, cel.Double(-1e18)),
		cel.Func(cel.FuncDouble, cel.Func(cel.FuncInt, v)).Eq(v))
	return l.once("patternText", cel.Cond(text.Contains(cel.String("e")),
		cel.Cond(whole, cel.Func(cel.FuncString, cel.Func(cel.FuncInt, v)), text.Call(cel.FuncUpperASCII)),
		cel.Cond(text.Contains(cel.String(".")), l.scientific(v, text), text)))
}

// scientific is the text of v with one digit in front of the point, given the text
// that CEL writes, which has no exponent.
func (l *lowering) scientific(v, text cel.Value) cel.Value {
	none := cel.String("")
	plain := text.Call(cel.FuncReplace, cel.String("-"), none).Call(cel.FuncReplace, cel.String("."), none)
	digits := l.once("digits", cel.Func(cel.FuncString, cel.Func(cel.FuncInt, plain))) // without zeros in front
	sign := cel.Cond(v.Compare(cel.Less, cel.Int(0)), cel.String("-"), none)
	more := cel.Cond(digits.Size().Compare(cel.Greater, cel.Int(1)), cel.String(".").Plus(digits.Call(cel.FuncSubstring, cel.Int(1))), none)
	exponents := cel.Strings("E-04", "E-03", "E-02", "E-01", "E+00", "E+01", "E+02", "E+03", "E+04", "E+05")
	point := text.Call(cel.FuncIndexOf, cel.String("."))
	exponent := digits.Size().Binary(cel.Minus, text.Size()).Plus(point)
	return sign.Plus(digits.Call(cel.FuncCharAt, cel.Int(0))).Plus(more).Plus(exponents.Index(exponent.Plus(cel.Int(4))))
}
