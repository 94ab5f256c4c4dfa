package cel

import "slices"

// EachElement is the step of a path that stands for every element of a list, and for every
// value of a map.
const EachElement = "[]"

// Paths are the places below a variable that v reads, by the names of fields and
// EachElement, in their order, each place before what is below it; composed are the
// expressions of variables.NAME. What a call makes of a value is not followed.
func (v Value) Paths(variable string, composed map[string]Value) (out [][]string) {
	f := &pathFinder{bound: map[string][]string{variable: {}}, composed: composed}
	f.at(v.n)
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
	composed map[string]Value    // those that were not read yet
}

// at looks at all that n reads; path is where its value is, nil where that is not known.
func (f *pathFinder) at(n *node) (path []string) {
	switch n.op {
	case opIdent:
		return f.bound[n.name]
	case opSelect, opHas, opOpt:
		if n.args[0].op == opIdent && n.args[0].name == "variables" {
			return f.variable(n.name)
		}
		return f.step(f.at(n.args[0]), n.name)
	case opIndex, opOptIdx:
		path = f.at(n.args[0])
		if key := n.args[1]; key.op == opString {
			return f.step(path, key.lit.(string))
		}
		f.at(n.args[1])
		return f.step(path, EachElement)
	case opMacro:
		return f.macro(n)
	case opMember:
		path = f.at(n.args[0])
		for _, a := range n.args[1:] {
			f.at(a)
		}
		switch n.function() {
		case FuncOr, FuncOrValue, FuncValue:
			return path
		}
		return nil
	}
	for _, a := range n.args {
		f.at(a)
	}
	return nil
}

// variable is where the value of a composed variable is.
func (f *pathFinder) variable(name string) []string {
	v, ok := f.composed[name]
	if !ok {
		return nil
	}
	others := &pathFinder{bound: f.bound, composed: map[string]Value{}, found: f.found}
	for other, w := range f.composed {
		if other != name { // one that reads itself would have no end
			others.composed[other] = w
		}
	}
	path := others.at(v.n)
	f.found = others.found
	return path
}

// macro binds the elements, or what an optional value holds.
func (f *pathFinder) macro(n *node) []string {
	path := f.at(n.args[0])
	element := path
	if m := n.macro(); m != MacroOptMap && m != MacroOptFlatMap {
		element = f.step(path, EachElement)
	}
	saved := f.bound
	f.bound = map[string][]string{}
	for name, at := range saved {
		f.bound[name] = at
	}
	for i, name := range n.vars {
		f.bound[name] = nil
		if i == len(n.vars)-1 {
			f.bound[name] = element
		}
	}
	for _, a := range n.args[1:] {
		f.at(a)
	}
	f.bound = saved
	if n.macro() == MacroFilter {
		return path
	}
	return nil
}

// step is the place one step below another.
func (f *pathFinder) step(path []string, name string) []string {
	if path == nil {
		return nil
	}
	path = append(slices.Clone(path), name)
	if !slices.ContainsFunc(f.found, func(have []string) bool { return slices.Equal(have, path) }) {
		f.found = append(f.found, path)
	}
	return path
}
