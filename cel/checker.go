package cel

import "slices"

// A Checker is what the API server's type checker makes of some variables. It
// looks at the validations of stored policies and writes what it finds into their
// status, where there should be nothing to find. In some places it is wrong: there
// an expression goes through dyn, of which it knows nothing.
type Checker struct {
	Roots []Root
	// Hidden tells of a shape that the server's schemas cannot say, so that fields
	// of it do not exist for the checker.
	Hidden func(Shape) bool
	// Struct tells of objects and of what holds them. Two of them at two places
	// are of two types for the checker, whatever the schemas call them.
	Struct func(Shape) bool
}

// Settle is v so that the checker has nothing to say of it. The value is the same.
func (c Checker) Settle(v Value) Value {
	if v.IsZero() || c.Hidden == nil {
		return v
	}
	return Value{checked{c, c.bound()}.node(v.n)}
}

func (c Checker) bound() (out scoped[typed]) {
	for _, r := range c.Roots {
		out = append(out, binding[typed]{r.Name, typed{r.Shape, "."}})
	}
	return out
}

// typed is a value of known type. Objects before and after a request are at one
// place; one without a shape is of unknown type.
type typed struct {
	shape Shape
	place string
}

func (t typed) field(name string) typed {
	return typed{fieldOf(t.shape, name), t.place + "." + name}
}

func (t typed) elem() typed { return typed{elemOf(t.shape), t.place + "[]"} }

type checked struct {
	Checker
	bound scoped[typed]
}

func (c checked) node(n *node) *node {
	name, selects := n.field()
	dyn := selects && c.hidden(c.typeOf(n.args[0]).field(name)) || c.comparesTypes(n)
	return n.each(func(i int, a *node) *node {
		at := c
		if n.binds(i) {
			at.bound = c.bound.in(n, typed{}, c.typeOf(n.args[0]).elem())
		}
		if a = at.node(a); i == 0 && dyn {
			return Func(FuncDyn, Value{a}).n
		}
		return a
	})
}

// hidden tells of a field that the checker does not see.
func (c checked) hidden(t typed) bool { return t.shape != nil && c.Hidden != nil && c.Hidden(t.shape) }

// comparesTypes tells that n compares objects of two places.
func (c checked) comparesTypes(n *node) bool {
	if n.operator() != Equals && n.operator() != Differs {
		return false
	}
	x, y := c.typeOf(n.args[0]), c.typeOf(n.args[1])
	return x.shape != nil && y.shape != nil && x.place != y.place && c.Struct(x.shape) && c.Struct(y.shape)
}

// typeOf is the type that the checker sees of a value, or of what an optional
// value holds.
func (c checked) typeOf(n *node) typed {
	switch n.op {
	case opIdent:
		t, _ := c.bound.of(n.name)
		return t
	case opSelect, opOpt, opIndex, opOptIdx:
		name, ok := n.field()
		if !ok {
			return c.typeOf(n.args[0]).elem()
		}
		if t := c.typeOf(n.args[0]).field(name); !c.hidden(t) {
			return t
		}
	case opCond:
		return c.either(n.args[1], n.args[2])
	case opBinary:
		if n.operator() == Plus {
			return c.either(n.args[0], n.args[1])
		}
	case opMember:
		if n.function() == FuncOrValue || n.function() == FuncValue {
			return c.typeOf(n.args[0])
		}
	case opMacro:
		if n.macro() == MacroFilter {
			return c.typeOf(n.args[0])
		}
	}
	return typed{}
}

// either is the type of one of two values, of which the other one fits.
func (c checked) either(x, y *node) typed {
	if t := c.typeOf(x); t.shape != nil {
		return t
	}
	return c.typeOf(y)
}

// WithoutDyn is v without dyn() around values that no type checker knows the type of: those
// of these variables, of what is in them, and of the elements of lists of them.
//
//	dyn(pod.spec.?initContainers.orValue([]))    pod.spec.?initContainers.orValue([])
func (v Value) WithoutDyn(variables ...string) Value {
	if v.IsZero() || len(variables) == 0 {
		return v
	}
	return Value{v.n.withoutDyn(variables)}
}

func (n *node) withoutDyn(untyped []string) *node {
	if n.op == opCall && n.function() == FuncDyn && n.args[0].isUntyped(untyped) {
		return n.args[0].withoutDyn(untyped)
	}
	return n.each(func(i int, a *node) *node {
		if n.binds(i) {
			return a.withoutDyn(n.untypedInside(untyped))
		}
		return a.withoutDyn(untyped)
	})
}

// untypedInside are the variables without a type in a macro: its own are, where it goes
// through what has none.
func (n *node) untypedInside(untyped []string) []string {
	out := slices.DeleteFunc(slices.Clone(untyped), func(name string) bool { return slices.Contains(n.vars, name) })
	if n.args[0].isUntyped(untyped) {
		out = append(out, n.vars[len(n.vars)-1])
	}
	return out
}

// isUntyped tells of a place in a variable without a type, and of lists put together of such.
func (n *node) isUntyped(untyped []string) bool {
	switch n.op {
	case opIdent:
		return slices.Contains(untyped, n.name)
	case opSelect, opOpt, opIndex, opOptIdx:
		return n.args[0].isUntyped(untyped)
	case opMacro:
		return n.macro() == MacroFilter && n.args[0].isUntyped(untyped)
	case opBinary:
		return n.operator() == Plus && n.args[0].isUntyped(untyped) && n.args[1].isUntyped(untyped)
	case opCall:
		return n.function() == FuncDyn && n.args[0].isUntyped(untyped)
	}
	return n.emptyIfMissing() != nil && n.args[0].isUntyped(untyped)
}
