package cel

import (
	"slices"
	"strconv"
	"strings"
)

// A Scope hands out names for the variables that macros bind. A name is in use
// while the body it is bound around is being built: a quantifier within gets
// another name, and one beside it may have the same. So names stay short, and
// no body captures a variable from further out.
//
// The zero Scope is ready to use. Values that stand for a bound variable must
// not leave the function they were passed to.
type Scope struct {
	used []string
}

// Empty tells that no name is in use.
func (s *Scope) Empty() bool { return len(s.used) == 0 }

// Binds tells that v reads a variable of s.
func (s *Scope) Binds(v Value) bool {
	return v.n.readsAny(s.used)
}

// Reserve keeps names from being handed out.
func (s *Scope) Reserve(names ...string) { s.used = append(s.used, names...) }

// reserveAll reserves the variables that ns read or bind.
func (s *Scope) reserveAll(ns []*node) {
	for _, n := range ns {
		Value{n}.Walk(func(v Value) bool {
			switch v.n.op {
			case opIdent:
				s.Reserve(v.n.name)
			case opMacro:
				s.Reserve(v.n.vars...)
			}
			return true
		})
	}
}

// Fresh is a name not in use in s, and takes it into use: hint, or hint with a
// number. It never is a name that the API server's environment knows.
func (s *Scope) Fresh(hint string) string {
	name := identFrom(hint)
	stem := strings.TrimRight(name, "0123456789")
	for i := 2; Taken(name) || slices.Contains(s.used, name); i++ {
		name = stem + strconv.Itoa(i)
	}
	s.used = append(s.used, name)
	return name
}

// identFrom makes an identifier from the letters and digits of hint.
func identFrom(hint string) string {
	var b []byte
	for i := range len(hint) {
		if isIdent("_" + hint[i:i+1]) {
			b = append(b, hint[i])
		}
	}
	if !isIdent(string(b)) {
		return "x" + string(b)
	}
	return string(b)
}

// Bind takes a name into use for a variable of a macro, until release is called.
func (s *Scope) Bind(hint string) (x Value, release func()) {
	n := len(s.used)
	x = Ident(s.Fresh(hint))
	return x, func() { s.used = s.used[:n] }
}

// A Quantifier asks whether some or all elements of a list have a property.
type Quantifier int

// The quantifiers.
const (
	ForSome Quantifier = iota
	ForAll
)

func (q Quantifier) macro() MacroName {
	if q == ForAll {
		return MacroAll
	}
	return MacroExists
}

// Of is the quantifier over list, where x stands for the element in body.
func (q Quantifier) Of(list, x Value, body Bool) Bool {
	return list.Macro(q.macro(), x, body.Value).AsBool()
}

// All is list.all(x, body(x)): every element, or key of a map, passes.
func (s *Scope) All(list Value, hint string, body func(Value) Bool) Bool {
	return s.Quantify(ForAll, list, hint, body)
}

// Exists is list.exists(x, body(x)): some element passes.
func (s *Scope) Exists(list Value, hint string, body func(Value) Bool) Bool {
	return s.Quantify(ForSome, list, hint, body)
}

// Quantify is All or Exists. A quantifier whose body does not depend on the
// element goes where that is right for the empty list too: all(true) and
// exists(false). One that looks for a literal is a membership.
func (s *Scope) Quantify(q Quantifier, list Value, hint string, body func(Value) Bool) Bool {
	x, release := s.Bind(hint)
	defer release()
	p := body(x)
	if v, ok := p.Const(); ok && v == (q == ForAll) {
		return p
	}
	if q == ForSome {
		if w, ok := p.equalTo(x, Equals); ok {
			return w.In(list)
		}
	} else if w, ok := p.equalTo(x, Differs); ok {
		return Not(w.In(list))
	}
	return q.Of(list, x, p)
}

// AsksKeys is b with has(name) for each question whether a name is among the keys of m.
func (b Bool) AsksKeys(m Value, has func(name string) Bool) Bool {
	return b.Rewrite(func(v Value) Value {
		if v.n.operator() == In && v.n.args[0].op == opString && equal(v.n.args[1], m.n) {
			return has(v.n.args[0].lit.(string)).Value
		}
		return v
	}).AsBool()
}

// equalTo is the literal that b compares the identifier x with, if b is nothing but
// that comparison, with the operator.
func (b Bool) equalTo(x Value, operator Operator) (Value, bool) {
	n := b.n
	if n.operator() != operator || !equal(n.args[0], x.n) {
		return Value{}, false
	}
	switch right := n.args[1]; right.op {
	case opString, opInt, opBool:
		return Value{right}, true
	}
	return Value{}, false
}

// Filter is list.filter(x, body(x)): the list of the elements that pass.
func (s *Scope) Filter(list Value, hint string, body func(Value) Bool) Value {
	x, release := s.Bind(hint)
	defer release()
	return list.Macro(MacroFilter, x, body(x).Value)
}

// Map is list.map(x, body(x)): the list of what body makes of each element.
func (s *Scope) Map(list Value, hint string, body func(Value) Value) Value {
	x, release := s.Bind(hint)
	defer release()
	return list.Macro(MacroMap, x, body(x))
}

// MapIf is list.map(x, cond(x), body(x)): Map of the elements that pass cond.
func (s *Scope) MapIf(list Value, hint string, cond func(Value) Bool, body func(Value) Value) Value {
	x, release := s.Bind(hint)
	defer release()
	return list.Macro(MacroMap, x, cond(x).Value, body(x))
}

// isIdent tells that s has the form of a CEL identifier.
func isIdent(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return s != ""
}

// selectable tells that v.name can be written. CEL's reserved words can, since
// they are reserved as variables only; what the lexer takes for a literal or an
// operator cannot.
func selectable(name string) bool {
	switch name {
	case "in", "true", "false", "null":
		return false
	}
	return isIdent(name)
}

// reserved tells that name is a word that no variable may have: CEL's keywords.
func reserved(name string) bool {
	switch name {
	case "as", "break", "const", "continue", "else", "false", "for", "function", "if",
		"import", "in", "let", "loop", "namespace", "null", "package", "return", "true",
		"var", "void", "while":
		return true
	}
	return false
}

// Taken tells that a variable called name would hide something: a variable of the
// API server's environment, a type, the namespace of a library, or a macro.
func Taken(name string) bool {
	switch name {
	case "object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables",
		"Object", "JSONPatch":
		return true
	case "bool", "bytes", "double", "duration", "dyn", "int", "list", "map", "null_type",
		"optional_type", "string", "timestamp", "type", "uint", "google":
		return true
	case "base64", "cel", "cidr", "format", "ip", "jsonpatch", "lists", "math", "optional",
		"proto", "quantity", "regex", "semver", "sets", "strings", "url":
		return true
	case "has", "all", "exists", "exists_one", "existsOne", "filter", "size", "sortBy",
		"optMap", "optFlatMap", "transformList", "transformMap", "transformMapEntry":
		return true
	}
	return reserved(name)
}
