package native

import (
	"slices"
	"strconv"
	"strings"

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

// NameByRule is name, or with the name of its rule in front where another variable has it.
//
//	badContainers of the rule "require-probes"    requireProbesBadContainers
func NameByRule(name, rule string, variables []vap.Variable) string {
	taken := func(v vap.Variable) bool { return v.Name == name }
	if words := strings.FieldsFunc(rule, isNoWord); len(words) > 0 && words[0][0] > '9' && slices.ContainsFunc(variables, taken) {
		byRule := strings.ToLower(words[0])
		for _, word := range append(words[1:], name) {
			byRule += strings.ToUpper(word[:1]) + word[1:]
		}
		name = byRule
	}
	return FreshName(name, variables)
}

// isNoWord tells of what no name of a variable has.
func isNoWord(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
