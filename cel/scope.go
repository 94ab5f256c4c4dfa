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

// Child is a scope within s: it avoids the names in use in s now, and leaves s as it is.
func (s *Scope) Child() *Scope { return &Scope{used: append([]string(nil), s.used...)} }

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
	for i := 2; taken(name) || slices.Contains(s.used, name); i++ {
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

// bind calls body with a name that is in use until body returns.
func bind[T any](s *Scope, hint string, body func(Value) T) (string, T) {
	n := len(s.used)
	x := s.Fresh(hint)
	b := body(Ident(x))
	s.used = s.used[:n]
	return x, b
}

func (s *Scope) test(macro string, list Value, hint string, body func(Value) Bool) Value {
	x, b := bind(s, hint, body)
	return list.Macro(macro, x, b.Value)
}

// All is list.all(x, body(x)): every element, or key of a map, passes.
func (s *Scope) All(list Value, hint string, body func(Value) Bool) Bool {
	return s.test("all", list, hint, body).AsBool()
}

// Exists is list.exists(x, body(x)): some element passes.
func (s *Scope) Exists(list Value, hint string, body func(Value) Bool) Bool {
	return s.test("exists", list, hint, body).AsBool()
}

// ExistsOne is list.exists_one(x, body(x)): exactly one element passes. Unlike
// the others, it is strict: an error for one element is an error of the whole.
func (s *Scope) ExistsOne(list Value, hint string, body func(Value) Bool) Bool {
	return s.test("exists_one", list, hint, body).AsBool()
}

// Filter is list.filter(x, body(x)): the list of the elements that pass.
func (s *Scope) Filter(list Value, hint string, body func(Value) Bool) Value {
	return s.test("filter", list, hint, body)
}

// Map is list.map(x, body(x)): the list of what body makes of each element.
func (s *Scope) Map(list Value, hint string, body func(Value) Value) Value {
	x, b := bind(s, hint, body)
	return list.Macro("map", x, b)
}

// MapIf is list.map(x, cond(x), body(x)): Map of the elements that pass cond.
func (s *Scope) MapIf(list Value, hint string, body func(Value) (Bool, Value)) Value {
	type both struct {
		c Bool
		v Value
	}
	x, b := bind(s, hint, func(x Value) both { c, v := body(x); return both{c, v} })
	return list.Macro2("map", []string{x}, b.c.Value, b.v)
}

// Let is body(x) with v for x, evaluated once. CEL has no binding of its own in
// the API server; a list of one element serves.
func (s *Scope) Let(v Value, hint string, body func(Value) Value) Value {
	return s.Map(List(v), hint, body).Index(Int(0))
}

// LetBool is Let for a condition.
func (s *Scope) LetBool(v Value, hint string, body func(Value) Bool) Bool {
	return s.Exists(List(v), hint, body)
}
