package native

import (
	"slices"
	"strconv"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// VariableNamed is the value of a composed variable.
func VariableNamed(name string) cel.Value { return cel.Ident("variables").Field(name) }

// FreshName is name, with a number where a variable has it.
func FreshName(name string, variables []vap.Variable) string {
	fresh := name
	for i := 2; slices.ContainsFunc(variables, func(v vap.Variable) bool { return v.Name == fresh }); i++ {
		fresh = name + strconv.Itoa(i)
	}
	return fresh
}
