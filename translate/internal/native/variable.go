package native

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// VariableNamed is the value of a composed variable.
func VariableNamed(name string) cel.Value { return cel.Ident("variables").Field(name) }

// FreshName is name, with a number where a variable has it.
func FreshName(name string, variables []vap.Variable) string {
	return NameByRule(name, "", variables)
}

// NameByRule is name, or with the name of its rule in front where another variable has it.
func NameByRule(name, rule string, variables []vap.Variable) string {
	return vap.FreshName(name, rule, func(name string) bool {
		return slices.ContainsFunc(variables, func(v vap.Variable) bool { return v.Name == name })
	})
}
