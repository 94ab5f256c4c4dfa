package cel

import (
	"maps"
	"slices"
)

// Order is the last step of a path that stands for which elements a list has, and in which
// order.
const Order = "#"

// Decides are the places whose values decide what v is, by the names of fields and EachElement:
// of a list whose elements are gone through, its Order, and of the elements what is used of
// these. bound are the places of variables, and composed the expressions of variables.NAME.
func (v Value) Decides(bound map[string][]string, composed map[string]Value) [][]string {
	f := &decider{bound: bound, composed: composed}
	f.use(v.n)
	return f.found
}

type decider struct {
	found    [][]string
	bound    map[string][]string
	composed map[string]Value // those that are not being read
}

// use is for a node all of whose value counts.
func (f *decider) use(n *node) { f.note(f.at(n)) }

func (f *decider) note(path []string) {
	if path != nil && !slices.ContainsFunc(f.found, func(have []string) bool { return slices.Equal(have, path) }) {
		f.found = append(f.found, path)
	}
}

// below is a place below another; nil where that is not known.
func below(path []string, step string) []string {
	if path == nil {
		return nil
	}
	return append(slices.Clone(path), step)
}

// at is the place of a node's value, of which not all need count; nil where it is none.
func (f *decider) at(n *node) []string {
	switch n.op {
	case opIdent:
		return f.bound[n.name]
	case opSelect, opOpt, opHas:
		if n.args[0].op == opIdent && n.args[0].name == "variables" {
			return f.variable(n.name)
		}
		path := below(f.at(n.args[0]), n.name)
		if n.op == opHas {
			f.note(path)
			return nil
		}
		return path
	case opIndex, opOptIdx:
		path := f.at(n.args[0])
		if key := n.args[1]; key.op == opString {
			return below(path, key.lit.(string))
		}
		f.use(n.args[1])
		f.note(below(path, Order))
		return below(path, EachElement)
	case opMacro:
		return f.macro(n)
	case opMember:
		if called := n.function(); called == FuncOrValue || called == FuncValue {
			for _, a := range n.args[1:] {
				f.use(a)
			}
			return f.at(n.args[0])
		}
	}
	for _, a := range n.args {
		f.use(a)
	}
	return nil
}

// variable is the place of a composed variable.
func (f *decider) variable(name string) []string {
	v, ok := f.composed[name]
	if !ok {
		return nil
	}
	others := maps.Clone(f.composed)
	delete(others, name) // one that reads itself would have no end
	one := &decider{found: f.found, bound: f.bound, composed: others}
	path := one.at(v.n)
	f.found = one.found
	return path
}

// macro binds the elements, or what an optional value holds.
func (f *decider) macro(n *node) []string {
	path := f.at(n.args[0])
	element := path
	if m := n.macro(); m != MacroOptMap && m != MacroOptFlatMap {
		f.note(below(path, Order))
		element = below(path, EachElement)
	} else {
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
