package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
)

// let is a composed variable of the unit at hand with the value. An expression
// has one variable, however often it is asked for; a name that stands for another
// expression gets a number.
func (l *lowering) let(name string, expr cel.Value) cel.Value {
	var names []string
	for _, v := range l.variables {
		if cel.Equal(v.Expr, expr) {
			return native.VariableNamed(v.Name)
		}
		names = append(names, v.Name)
	}
	v := native.Variable{Pos: l.pos, Name: native.FreshName(name, names), Expr: expr}
	l.variables = append(l.variables, v)
	return native.VariableNamed(v.Name)
}

// defined is what a variable that the walk has made stands for.
func (l *lowering) defined(name string) (cel.Value, bool) {
	i := slices.IndexFunc(l.variables, func(v native.Variable) bool { return v.Name == name })
	if i < 0 {
		return cel.Value{}, false
	}
	return l.variables[i].Expr, true
}
