package translate

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/kvap/kvap/cel"
)

// binders hands out the names of comprehension variables. A name is only taken
// while its body is built, so siblings share names and nested bodies cannot
// capture each other's.
type binders struct{ taken map[string]bool }

// over is list.macro(x, body(x)).
func (b *binders) over(macro string, list cel.Value, hint string, body func(cel.Value) cel.Value) cel.Value {
	name := b.take(hint)
	defer delete(b.taken, name)
	return list.Macro(macro, name, body(cel.Ident(name)))
}

func (b *binders) all(list cel.Value, hint string, body func(cel.Value) cel.Bool) cel.Bool {
	return b.quantify(forAll, list, hint, body)
}

func (b *binders) exists(list cel.Value, hint string, body func(cel.Value) cel.Bool) cel.Bool {
	return b.quantify(forSome, list, hint, body)
}

// quantify drops a quantifier whose body does not depend on the element where
// that is right for the empty list too: all(true) and exists(false). One that
// looks for a literal is a membership.
func (b *binders) quantify(macro quantifier, list cel.Value, hint string, body func(cel.Value) cel.Bool) cel.Bool {
	name := b.take(hint)
	defer delete(b.taken, name)
	p := body(cel.Ident(name))
	if v, ok := p.Const(); ok && v == (macro == forAll) {
		return p
	}
	if macro == forSome {
		if w, ok := p.EqualTo(name, "=="); ok {
			return w.In(list)
		}
	} else if w, ok := p.EqualTo(name, "!="); ok {
		return cel.Not(w.In(list))
	}
	return list.Macro(string(macro), name, p.Value).AsBool()
}

func (b *binders) filter(list cel.Value, hint string, body func(cel.Value) cel.Bool) cel.Value {
	return b.over("filter", list, hint, func(x cel.Value) cel.Value { return body(x).Value })
}

func (b *binders) mapped(list cel.Value, hint string, body func(cel.Value) cel.Value) cel.Value {
	return b.over("map", list, hint, body)
}

func (b *binders) take(hint string) string {
	if b.taken == nil {
		b.taken = map[string]bool{}
	}
	name := hint
	for i := 2; b.taken[name] || reserved(name); i++ {
		name = hint + strconv.Itoa(i)
	}
	b.taken[name] = true
	return name
}

func reserved(name string) bool {
	switch name {
	case "", "object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables",
		"in", "true", "false", "null", "as", "break", "const", "continue", "else", "for", "function", "if",
		"import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
		"int", "uint", "double", "bool", "string", "bytes", "list", "map", "type", "dyn", "size", "duration",
		"timestamp", "quantity", "url", "ip", "cidr", "sets", "optional", "format", "semver", "has", "all",
		"exists", "exists_one", "filter", "null_type", "self", "cel", "math", "lists", "strings":
		return true
	}
	return false
}

// singular is the name for an element of the list called field: container for
// initContainers.
func singular(field string) string {
	last := 0
	for i, r := range field {
		if unicode.IsUpper(r) {
			last = i
		}
		if r > unicode.MaxASCII || !unicode.IsLetter(r) {
			return "item"
		}
	}
	word := strings.ToLower(field[last:])
	switch {
	case strings.HasSuffix(word, "ies"):
		word = word[:len(word)-3] + "y"
	case strings.HasSuffix(word, "sses"):
		word = word[:len(word)-2]
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && len(word) > 3:
		word = word[:len(word)-1]
	}
	if len(word) < 2 {
		return "item"
	}
	return word
}
