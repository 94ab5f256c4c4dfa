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

// Reads are the places below a variable that v reads as if they were there, and those that
// it asks for: by has(), by an optional selection, or by in. The elements of a list or map
// that is gone through are asked for. composed are the expressions of variables.NAME: what
// these read is not among what v reads, what they ask for is. So
//
//	has(object.spec.a.b) && object.spec.c == 1
//
// reads spec, spec.a and spec.c, and asks for spec.a.b.
func (v Value) Reads(variable string, composed map[string]Value) (read, asked [][]string) {
	f := &pathFinder{bound: map[string][]string{variable: {}}, composed: composed, reads: &readings{}}
	f.at(v.n)
	return f.reads.read, f.reads.asked
}

// readings are places that are read as if they were there, and places that are asked for.
type readings struct {
	read, asked [][]string
	composed    int // variables whose expressions are being gone through
}

// note notes how n comes to a place.
func (r *readings) note(n *node, path []string) {
	switch {
	case r == nil || path == nil:
	case n.isReadOptionally() || n.op == opHas || n.op == opMacro || n.op == opBinary || path[len(path)-1] == EachElement:
		r.asked = append(r.asked, path)
	case r.composed == 0:
		r.read = append(r.read, path)
	}
}

// isReadOptionally tells that n, or what it is a part of, is an optional selection.
func (n *node) isReadOptionally() bool {
	for n.op == opSelect || n.op == opIndex {
		n = n.args[0]
	}
	return n.op == opOpt || n.op == opOptIdx
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
	reads   *readings // nil where nobody asks
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
		f.reads.note(n, path)
		if n.op == opHas && f.decides {
			f.note(path)
			return nil
		}
		return path
	case opIndex, opOptIdx:
		path := f.at(n.args[0])
		if key := n.args[1]; key.op == opString {
			path = f.step(path, key.lit.(string))
			f.reads.note(n, path)
			return path
		}
		f.use(n.args[1])
		return f.each(path)
	case opBinary:
		if f.asksOf(n) {
			return nil
		}
	case opMacro:
		return f.macro(n)
	case opMember:
		switch called := n.function(); {
		case called == FuncOrValue, called == FuncValue, called == FuncOr && !f.decides:
			path := f.at(n.args[0])
			for _, a := range n.args[1:] {
				f.use(a)
				if f.reads != nil && len(a.args) > 0 { // it may have what is read of it
					path = nil
				}
			}
			return path
		}
	}
	for _, a := range n.args {
		f.use(a)
	}
	return nil
}

// asksOf reports whether n only asks whether something is there: a key, or more than null.
func (f *pathFinder) asksOf(n *node) bool {
	key, of := n.args[0], n.args[1]
	switch o := n.operator(); {
	case o == In && f.reads != nil:
		path := f.at(of)
		if key.op == opString {
			f.reads.note(n, f.step(path, key.lit.(string)))
		} else {
			f.use(key)
			f.reads.note(n, f.each(path))
		}
		return true
	case o != Equals && o != Differs:
		return false
	case key.op == opNull:
		key, of = of, key
	}
	if of.op != opNull {
		return false
	}
	// whether a variable is there is decided by none of its places
	if path := f.at(key); len(path) > 0 && f.decides {
		f.note(path)
	}
	return true
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
	if f.reads != nil {
		f.reads.composed++
		defer func() { f.reads.composed-- }()
	}
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
		f.reads.note(n, element)
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
