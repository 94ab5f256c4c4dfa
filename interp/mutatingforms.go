package interp

import (
	"regexp"
	"strings"
	"sync"
)

// What Kyverno looks for in the text of an expression about pods.
var (
	podSpec = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b(object|oldObject|Object)\.spec`) })
	podMeta = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(object|oldObject|Object)\.metadata\.(labels|annotations)`)
	})
)

// objectInTemplate moves what an expression of a MutatingPolicy says of a pod to the
// template in a controller, and an Object that it makes too:
//
//	object.spec.hostPID                  object.spec.template.spec.hostPID
//	object.metadata.labels               object.spec.template.metadata.labels
//	object.metadata.name                 object.metadata.name
//	Object{spec: Object.spec{x: 1}}      Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{x: 1}}}}
//
// As upstream, it looks for text.
func objectInTemplate(expression, template string) string {
	expression = podSpec().ReplaceAllString(expression, "${1}."+template+".spec")
	expression = podMeta().ReplaceAllString(expression, "${1}."+template+".metadata.${2}")
	trimmed := strings.TrimSpace(expression)
	rest, made := strings.CutPrefix(trimmed, "Object")
	rest = strings.TrimSpace(rest)
	if !made || !strings.HasPrefix(rest, "{") {
		return expression
	}
	end := closing(rest)
	if end < 0 {
		return expression
	}
	front, back, at := "Object{", "}", "Object"
	for _, name := range strings.Split(template, ".") {
		at += "." + name
		front, back = front+name+": "+at+"{", back+"}"
	}
	return front + rest[1:end] + back + rest[end+1:]
}

// closing is where the brace is closed that a text begins with; -1 where it is not. Braces
// in strings count.
func closing(text string) int {
	open := 0
	for i, c := range text {
		switch c {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}
