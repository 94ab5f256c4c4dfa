package cel

import (
	"maps"
	"slices"
)

// Idents are the names of the variables that v reads and does not bind itself,
// sorted. Names of types, as in type(x) == string, are among them.
func (v Value) Idents() []string {
	free := map[string]bool{}
	walkFree(v.n, nil, func(n *node, bound []string) bool {
		if n.op == opIdent && !slices.Contains(bound, n.name) {
			free[n.name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(free))
}

// walkFree calls visit for n and its parts, from the outside in, with the names
// that macros of n bind there. Below a node for which visit is false it does not go.
func walkFree(n *node, bound []string, visit func(n *node, bound []string) bool) {
	if n == nil || !visit(n, bound) {
		return
	}
	for i, a := range n.args {
		if n.op == opMacro && i == 1 {
			bound = append(slices.Clip(bound), n.vars...)
		}
		walkFree(a, bound, visit)
	}
}

// Walk calls visit for v and its parts, from the outside in and from left to
// right. Below a part for which visit is false it does not go.
func (v Value) Walk(visit func(Value) bool) {
	if v.IsZero() || !visit(v) {
		return
	}
	for _, a := range v.n.args {
		Value{a}.Walk(visit)
	}
}

// Calls calls visit for each function, method and macro that v calls, with the
// number of its arguments as written: a method's receiver does not count.
// Operators are not calls.
func (v Value) Calls(visit func(name string, args int)) {
	v.Walk(func(v Value) bool {
		switch n := v.n; n.op {
		case opHas:
			visit("has", 1)
		case opCall:
			visit(n.name, len(n.args))
		case opMember:
			visit(n.name, len(n.args)-1)
		case opMacro:
			visit(n.name, len(n.vars)+len(n.args)-1)
		}
		return true
	})
}

// Uses are the fields that v selects from the variable prefix[0], or from the
// path prefix, sorted: of variables.a && has(variables.b), Uses("variables") is
// a and b.
func (v Value) Uses(prefix ...string) []string {
	fields := map[string]bool{}
	walkFree(v.n, nil, func(n *node, bound []string) bool {
		if name, ok := n.field(); ok && n.args[0].isFreePath(prefix, bound) {
			fields[name] = true
		}
		return true
	})
	return slices.Sorted(maps.Keys(fields))
}

// UsesAll tells that v reads path as a whole, and not only fields of it: then
// Uses does not tell all that v depends on.
func (v Value) UsesAll(path ...string) bool {
	found := false
	walkFree(v.n, nil, func(n *node, bound []string) bool {
		if _, ok := n.field(); ok && n.args[0].isFreePath(path, bound) {
			return false
		}
		found = found || n.isFreePath(path, bound)
		return true
	})
	return found
}

// field is the field that n selects from args[0], in whatever form.
func (n *node) field() (string, bool) {
	switch n.op {
	case opSelect, opHas, opOpt:
		return n.name, true
	case opIndex, opOptIdx:
		if n.args[1].op == opString {
			return n.args[1].lit.(string), true
		}
	}
	return "", false
}

// isPath tells that n is path[0].path[1]... Each part of a tree is asked, so no path is made.
func (n *node) isPath(path []string) bool {
	if last := len(path) - 1; last > 0 {
		name, ok := n.field()
		return ok && n.op != opHas && name == path[last] && n.args[0].isPath(path[:last])
	}
	return len(path) == 1 && n.op == opIdent && n.name == path[0]
}

func (n *node) isFreePath(path, bound []string) bool {
	return n.isPath(path) && !slices.Contains(bound, path[0])
}

// Path is the field path that v is, if it is one: object.spec['a'] gives object,
// spec, a.
func (v Value) Path() ([]string, bool) {
	if v.IsZero() {
		return nil, false
	}
	if v.n.op == opIdent {
		return []string{v.n.name}, true
	}
	name, ok := v.n.field()
	if !ok || v.n.op == opHas {
		return nil, false
	}
	path, ok := Value{v.n.args[0]}.Path()
	return append(path, name), ok
}

// with is n with other parts, or n itself when they are the same.
func (n *node) with(args []*node) *node {
	if slices.Equal(n.args, args) {
		return n
	}
	m := *n
	m.args = args
	return newNode(m)
}

// Rewrite replaces parts of v from the inside out: f gets each part, rebuilt
// from its rewritten parts, and gives what shall stand there.
func (v Value) Rewrite(f func(Value) Value) Value {
	if v.IsZero() {
		return v
	}
	return f(Value{v.n.each(func(_ int, a *node) *node { return Value{a}.Rewrite(f).n })})
}

// each is n with what f gives for each of its parts, by their places.
func (n *node) each(f func(i int, a *node) *node) *node {
	if len(n.args) == 0 {
		return n
	}
	args := make([]*node, len(n.args))
	for i, a := range n.args {
		args[i] = f(i, a)
	}
	return n.with(args)
}

// binds tells that n is a macro, with its variables bound in the part i.
func (n *node) binds(i int) bool { return n.op == opMacro && i > 0 }

// some tells that something is so of n or of a part of it.
func (n *node) some(is func(*node) bool) bool {
	return n != nil && (is(n) || slices.ContainsFunc(n.args, func(a *node) bool { return a.some(is) }))
}

// always are the parts that whoever evaluates n evaluates: an error of one of them is an error
// of n.
func (n *node) always() []*node {
	switch n.op {
	case opMacro, opCond:
		return n.args[:1]
	case opMember:
		if n.function() == FuncOr || n.function() == FuncOrValue { // evaluate their argument when they must
			return n.args[:1]
		}
	case opIndex, opOptIdx:
		if n.args[0].optionallySelected() { // of what is not there, nobody evaluates a key
			return n.args[:1]
		}
	case opAnd, opOr, opMaybe: // one term may decide without the others
		return nil
	}
	return n.args
}

// optionallySelected tells of a chain of selections of which one is optional.
func (n *node) optionallySelected() bool {
	for ; n.op == opSelect || n.op == opIndex || n.op == opOpt || n.op == opOptIdx; n = n.args[0] {
		if n.op == opOpt || n.op == opOptIdx {
			return true
		}
	}
	return false
}

// LastField is the name of the last selection of v, looked for through optional
// values and calls; "" where there is none.
func (v Value) LastField() string {
	for n := v.n; n != nil; {
		switch n.op {
		case opSelect, opOpt:
			return n.name
		case opMember, opIndex, opOptIdx, opMacro:
			n = n.args[0]
		case opCond:
			n = n.args[1]
		default:
			return ""
		}
	}
	return ""
}

// ReadsField tells whether an expression, as text, reads a field of a variable, or the
// variable as a whole; what cannot be read, reads nothing.
func ReadsField(expression, variable, field string) bool {
	v, err := Parse(expression)
	return err == nil && (v.UsesAll(variable) || slices.Contains(v.Uses(variable), field))
}

// Receiver is the variable that a method of v is called on, as in resource.Get(...).
func (v Value) Receiver(method string) (variable string, ok bool) {
	v.Walk(func(w Value) bool {
		if n := w.n; !ok && n.op == opMember && n.name == method && n.args[0].op == opIdent {
			variable, ok = n.args[0].name, true
		}
		return !ok
	})
	return variable, ok
}

// Called is the name of the function that v calls, and its arguments: of a member call the
// receiver first. The name is empty where v is not a call.
func (v Value) Called() (name string, args []Value) {
	if v.n.op != opCall && v.n.op != opMember {
		return "", nil
	}
	for _, a := range v.n.args {
		args = append(args, Value{a})
	}
	return v.n.name, args
}

// Selected is x and name where v is x.name.
func (v Value) Selected() (of Value, name string, ok bool) {
	if v.n.op != opSelect {
		return Value{}, "", false
	}
	return Value{v.n.args[0]}, v.n.name, true
}

// Choice is c, x and y where v is c ? x : y.
func (v Value) Choice() (c Bool, x, y Value, ok bool) {
	if v.n.op != opCond {
		return Bool{}, Value{}, Value{}, false
	}
	return Bool{Value{v.n.args[0]}}, Value{v.n.args[1]}, Value{v.n.args[2]}, true
}

// Picked is v with x in the place of {'a': x}.a.
func (v Value) Picked() Value {
	return v.Rewrite(func(v Value) Value {
		of, name, ok := v.Selected()
		if !ok || of.n.op != opMap {
			return v
		}
		for i := 0; i+1 < len(of.n.args); i += 2 {
			if key := of.n.args[i]; key.op == opString && key.lit == name {
				return Value{of.n.args[i+1]}
			}
		}
		return v
	})
}

// Count is how often the free identifier occurs in v.
func (v Value) Count(name string) int {
	n := 0
	walkFree(v.n, nil, func(m *node, bound []string) bool {
		if m.op == opIdent && m.name == name && !slices.Contains(bound, name) {
			n++
		}
		return true
	})
	return n
}

// HoistLoops replaces the loops inside of a loop's body that do not depend on its
// variable by what name gives for them: they say the same of every element.
func (v Value) HoistLoops(name func(Value) Value) Value {
	return Value{hoist(v.n, nil, name)}
}

func hoist(n *node, bound []string, name func(Value) Value) *node {
	if len(bound) > 0 && n.op == opMacro && !n.readsAny(bound) {
		return name(Value{n}).n
	}
	return n.each(func(i int, a *node) *node {
		if n.binds(i) {
			return hoist(a, append(slices.Clip(bound), n.vars...), name)
		}
		return hoist(a, bound, name)
	})
}

// readsAny tells that n reads one of some variables, and does not bind it itself.
func (n *node) readsAny(names []string) bool {
	return slices.ContainsFunc(names, func(x string) bool { return Value{n}.Count(x) > 0 })
}

// composed is the expression of the composed variable that n selects, if it is variables.name.
func (n *node) composed(variables func(name string) (Value, bool)) (*node, bool) {
	if variables == nil || n.op != opSelect || n.args[0].op != opIdent || n.args[0].name != "variables" {
		return nil, false
	}
	v, ok := variables(n.name)
	return v.n, ok
}

// scoped is what is known of the variables that macros bind, the inner ones last.
type scoped[T any] []binding[T]

type binding[T any] struct {
	name string
	is   T
}

// of is what is known of a variable, if it is bound.
func (s scoped[T]) of(name string) (is T, ok bool) {
	for _, b := range slices.Backward(s) {
		if b.name == name {
			return b.is, true
		}
	}
	return is, false
}

// in is s in the bodies of the macro n, whose last variable goes through elements; the
// first of two goes through the indexes or keys.
func (s scoped[T]) in(n *node, index, elem T) scoped[T] {
	s = slices.Clip(s)
	for i, x := range n.vars {
		if len(n.vars) == 2 && i == 0 {
			s = append(s, binding[T]{x, index})
		} else {
			s = append(s, binding[T]{x, elem})
		}
	}
	return s
}
