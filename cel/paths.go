package cel

import (
	"maps"
	"slices"
)

// EachElement is the step of a path that stands for every element of a list, and for every
// value of a map.
const EachElement = "[]"

// Order is the last step of a path that stands for which elements a list has, and in which
// order.
const Order = "#"

// Paths are the places below a variable that v reads, by the names of fields and
// EachElement, in their order, each place before what is below it; composed are the
// expressions of variables.NAME. What a call makes of a value is not followed. So
//
//	object.spec.containers.all(c, c.image != "x")
//
// reads spec, spec.containers, spec.containers.[] and spec.containers.[].image.
func (v Value) Paths(variable string, composed map[string]Value) (out [][]string) {
	f := &pathFinder{bound: map[string][]string{variable: {}}, composed: composed}
	f.at(v.n)
	return f.found
}

// Decides are the places whose values decide what v is: of the expression above,
// spec.containers.# and spec.containers.[].image. Of a list whose elements are gone through
// it is the Order, and of the elements what is used of these. bound are the places of
// variables, and composed the expressions of variables.NAME.
func (v Value) Decides(bound map[string][]string, composed map[string]Value) [][]string {
	f := &pathFinder{bound: bound, composed: composed, decides: true}
	f.use(v.n)
	return f.found
}

// Constants are the texts and numbers that v has, as string, int64, uint64 and float64.
func (v Value) Constants() (out []any) {
	v.Walk(func(w Value) bool {
		switch n := w.n; n.op {
		case opString, opInt, opUint, opDouble:
			out = append(out, n.lit)
		}
		return true
	})
	return out
}

type pathFinder struct {
	found    [][]string
	bound    map[string][]string // by the names of variables
	composed map[string]Value    // those that are not being read
	// decides tells to find the places whose whole value is used, and not all on the way.
	decides bool
}

func (f *pathFinder) note(path []string) {
	if path != nil && !slices.ContainsFunc(f.found, func(have []string) bool { return slices.Equal(have, path) }) {
		f.found = append(f.found, path)
	}
}

// step is the place one step below another; nil where that is not known.
func (f *pathFinder) step(path []string, name string) []string {
	if path == nil {
		return nil
	}
	path = append(slices.Clone(path), name)
	if !f.decides || name == Order {
		f.note(path)
	}
	return path
}

// use is for a node all of whose value counts.
func (f *pathFinder) use(n *node) {
	if path := f.at(n); f.decides {
		f.note(path)
	}
}

// at looks at all that n reads, and is the place of its value, of which not all need count;
// nil where it is none.
func (f *pathFinder) at(n *node) []string {
	switch n.op {
	case opIdent:
		return f.bound[n.name]
	case opSelect, opHas, opOpt:
		if n.args[0].op == opIdent && n.args[0].name == "variables" {
			return f.variable(n.name)
		}
		path := f.step(f.at(n.args[0]), n.name)
		if n.op == opHas && f.decides {
			f.note(path)
			return nil
		}
		return path
	case opIndex, opOptIdx:
		path := f.at(n.args[0])
		if key := n.args[1]; key.op == opString {
			return f.step(path, key.lit.(string))
		}
		f.use(n.args[1])
		return f.each(path)
	case opMacro:
		return f.macro(n)
	case opBinary:
		// whether a variable is there is decided by none of its places
		for i, other := range n.args {
			if other.op == opNull && (n.operator() == Equals || n.operator() == Differs) {
				if path := f.at(n.args[1-i]); len(path) > 0 && f.decides {
					f.note(path)
				}
				return nil
			}
		}
	case opMember:
		switch called := n.function(); {
		case called == FuncOrValue, called == FuncValue, called == FuncOr && !f.decides:
			path := f.at(n.args[0])
			for _, a := range n.args[1:] {
				f.use(a)
			}
			return path
		}
	}
	for _, a := range n.args {
		f.use(a)
	}
	return nil
}

// each is the place of the elements of a list.
func (f *pathFinder) each(path []string) []string {
	if f.decides {
		f.step(path, Order)
	}
	return f.step(path, EachElement)
}

// variable is the place of a composed variable.
func (f *pathFinder) variable(name string) []string {
	v, ok := f.composed[name]
	if !ok {
		return nil
	}
	all := f.composed
	f.composed = maps.Clone(all)
	delete(f.composed, name) // one that reads itself would have no end
	path := f.at(v.n)
	f.composed = all
	return path
}

// macro binds the elements, or what an optional value holds.
func (f *pathFinder) macro(n *node) []string {
	path := f.at(n.args[0])
	element := path
	if m := n.macro(); m != MacroOptMap && m != MacroOptFlatMap {
		element = f.each(path)
	} else if f.decides {
		f.note(path)
	}
	saved := f.bound
	f.bound = maps.Clone(saved)
	for i, name := range n.vars {
		delete(f.bound, name)
		if i == len(n.vars)-1 {
			f.bound[name] = element
		}
	}
	for _, a := range n.args[1:] {
		f.use(a)
	}
	f.bound = saved
	if n.macro() == MacroFilter {
		return path
	}
	return nil
}
