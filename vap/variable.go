package vap

import (
	"strconv"
	"strings"
)

// FreshName is the name of a variable, with that of its rule in front where the name is taken,
// and a number where that is taken too.
//
//	badContainers of the rule "require-probes"    requireProbesBadContainers
func FreshName(name, rule string, taken func(name string) bool) string {
	if !taken(name) {
		return name
	}
	if words := strings.FieldsFunc(rule, isNoWord); len(words) > 0 && words[0][0] > '9' {
		byRule := strings.ToLower(words[0][:1]) + words[0][1:]
		for _, word := range append(words[1:], name) {
			byRule += strings.ToUpper(word[:1]) + word[1:]
		}
		name = byRule
	}
	fresh := name
	for i := 2; taken(fresh); i++ {
		fresh = name + strconv.Itoa(i)
	}
	return fresh
}

// isNoWord tells of what no name of a variable has.
func isNoWord(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
