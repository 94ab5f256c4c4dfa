package read

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// Let is a composed variable of the unit at hand with the value. An expression
// has one variable, however often it is asked for; a name that stands for another
// expression gets a number.
func Let(l *Lowering, name string, expr cel.Value) cel.Value {
	for _, v := range l.Variables {
		if cel.Equal(v.Expr, expr) {
			return native.VariableNamed(v.Name)
		}
	}
	v := vap.Variable{Pos: l.Pos, Name: native.FreshName(name, l.Variables), Expr: expr}
	l.Variables = append(l.Variables, v)
	return native.VariableNamed(v.Name)
}

// Defined is what a variable that the walk has made stands for.
func Defined(l *Lowering, name string) (cel.Value, bool) {
	i := slices.IndexFunc(l.Variables, func(v vap.Variable) bool { return v.Name == name })
	if i < 0 {
		return cel.Value{}, false
	}
	return l.Variables[i].Expr, true
}
