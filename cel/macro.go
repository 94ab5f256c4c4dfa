package cel

// A MacroName is a macro that binds variables for the elements of a list.
type MacroName string

// The macros that are built; what is parsed may have others.
const (
	MacroAll           MacroName = "all"
	MacroExists        MacroName = "exists"
	MacroFilter        MacroName = "filter"
	MacroMap           MacroName = "map"
	MacroSortBy        MacroName = "sortBy"
	MacroTransformList MacroName = "transformList"
)

// Macro is list.name(x, body), or list.name(x, condition, body). x must not be
// bound around the bodies already; a Scope hands out such variables.
func (v Value) Macro(name MacroName, x Value, bodies ...Value) Value {
	return v.macro(name, []string{x.n.name}, bodies)
}

// IndexedMacro is the form with a variable for the index too: list.name(i, x, bodies).
func (v Value) IndexedMacro(name MacroName, i, x Value, bodies ...Value) Value {
	return v.macro(name, []string{i.n.name, x.n.name}, bodies)
}

func (v Value) macro(name MacroName, vars []string, bodies []Value) Value {
	args := []*node{v.n}
	for _, b := range bodies {
		args = append(args, b.n)
	}
	return Value{newNode(node{op: opMacro, name: string(name), vars: vars, args: args})}
}

// Loop is the parts of list.all(x, body), if b is that.
func (b Bool) Loop() (list, x Value, body Bool, ok bool) {
	n := b.n
	if n.op != opMacro || MacroName(n.name) != MacroAll || len(n.vars) != 1 || len(n.args) != 2 {
		return Value{}, Value{}, Bool{}, false
	}
	return Value{n.args[0]}, Ident(n.vars[0]), Bool{Value{n.args[1]}}, true
}
