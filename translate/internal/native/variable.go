package native

import (
	"slices"
	"strconv"

	"github.com/kvap/kvap/cel"
)

// VariableNamed is the value of a composed variable.
func VariableNamed(name string) cel.Value { return cel.Ident("variables").Field(name) }

// FreshName is name, with a number where it is taken.
func FreshName(name string, taken []string) string {
	fresh := name
	for i := 2; slices.Contains(taken, fresh); i++ {
		fresh = name + strconv.Itoa(i)
	}
	return fresh
}
