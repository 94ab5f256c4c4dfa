package cel

import "slices"

// Parts of an object in what a mutation writes. Kubernetes 1.37 hands on Go structs, once a match
// condition of any policy was asked, and cannot write these out: a map, a list or a struct as the
// value of a JSON patch is an error, and so are elements that a macro or a function has picked.

// Puts tells that v may put a part of a variable into what it makes, which cannot be written out.
// What is not known to be a scalar may be one. Scalar tells of the shapes of these.
//
//	JSONPatch{op: 'add', path: '/spec/volumes', value: object.spec.volumes}
//	Object.spec{volumes: object.spec.volumes.filter(v, v.name != 'a')}
func (c Checker) Puts(v Value, scalar func(Shape) bool) bool {
	return putter{checked: checked{bound: c.bound()}, scalar: scalar}.puts(v.n)
}

type putter struct {
	checked
	scalar   func(Shape) bool
	plain    []string // variables of macros that go through what has no parts
	selected []string // and of those that go through a part as it is
}

// in is p in a part of n.
func (p putter) in(n *node, i int) putter {
	if !n.binds(i) {
		return p
	}
	out := p
	out.bound = p.bound.in(n, typed{}, p.typeOf(n.args[0]).elem())
	hidden := func(name string) bool { return slices.Contains(n.vars, name) }
	out.plain, out.selected = slices.DeleteFunc(slices.Clone(p.plain), hidden), slices.DeleteFunc(slices.Clone(p.selected), hidden)
	if len(n.vars) == 2 {
		out.plain = append(out.plain, n.vars[0]) // an index, or a key
	}
	if x := n.vars[len(n.vars)-1]; p.isPlain(n.args[0]) {
		out.plain = append(out.plain, x)
	} else if p.isSelected(n.args[0]) {
		out.selected = append(out.selected, x)
	}
	return out
}

// puts looks for structs that are made in n.
func (p putter) puts(n *node) bool {
	for i, a := range n.args {
		at := p.in(n, i)
		if n.op == opStruct {
			if n.name == "JSONPatch" && n.vars[i] == "value" && !at.isPlain(a) || n.name != "JSONPatch" && !at.isApplied(a) {
				return true
			}
		}
		if at.puts(a) {
			return true
		}
	}
	return false
}

// isApplied tells of what may stand in an apply configuration: a part as it is, but no list of
// parts that were picked.
func (p putter) isApplied(n *node) bool {
	switch {
	case n.op == opStruct, p.isSelected(n), p.isList(n):
		return true
	case n.op == opCond:
		return p.isApplied(n.args[1]) && p.isApplied(n.args[2])
	case n.isOrValue():
		return p.isSelected(n.args[0]) && p.isApplied(n.args[1])
	}
	return false
}

// isList tells of a list of elements that are made, or of what has no parts.
func (p putter) isList(n *node) bool {
	switch {
	case p.isPlain(n):
		return true
	case n.op == opList:
		return !slices.ContainsFunc(n.args, func(a *node) bool { return !p.isElement(a) })
	case (n.macro() == MacroMap || n.macro() == MacroTransformList) && len(n.args) > 1:
		return p.in(n, 1).isElement(n.args[len(n.args)-1])
	case n.op == opCond:
		return p.isList(n.args[1]) && p.isList(n.args[2])
	}
	return n.operator() == Plus && p.isList(n.args[0]) && p.isList(n.args[1])
}

// isElement tells of an element that is made.
func (p putter) isElement(n *node) bool {
	if n.op == opCond {
		return p.isElement(n.args[1]) && p.isElement(n.args[2])
	}
	return n.op == opStruct || p.isPlain(n)
}

// isSelected tells of a part of a variable as it is.
func (p putter) isSelected(n *node) bool {
	switch n.op {
	case opIdent:
		return isRoot(n.name) || slices.Contains(p.selected, n.name)
	case opSelect, opOpt, opIndex, opOptIdx:
		return p.isSelected(n.args[0])
	}
	return false
}

// isPlain tells of a value without parts of variables but scalars.
func (p putter) isPlain(n *node) bool {
	all := func(nodes ...*node) bool {
		return !slices.ContainsFunc(nodes, func(a *node) bool { return !p.isPlain(a) })
	}
	switch n.op {
	case opList, opMap, opStruct, opMaybe:
		return all(n.args...)
	case opCond:
		return all(n.args[1:]...)
	case opBinary:
		return n.operator() != Plus || n.args[0].op == opString || n.args[1].op == opString || all(n.args...)
	case opNull, opBool, opInt, opUint, opDouble, opString, opBytes, opNot, opAnd, opOr, opHas:
		return true
	case opIdent:
		return slices.Contains(p.plain, n.name) || p.isScalar(n)
	case opSelect, opOpt, opIndex, opOptIdx:
		return p.isScalar(n) || p.isPlain(n.args[0])
	case opMacro:
		switch n.macro() {
		case MacroMap, MacroTransformList:
			return p.in(n, 1).isPlain(n.args[len(n.args)-1])
		case MacroFilter:
			return p.isScalarShape(p.typeOf(n.args[0]).elem()) || p.isPlain(n.args[0])
		}
		return n.isTest()
	case opCall, opMember:
		switch n.function() {
		case FuncString, FuncInt, FuncUint, FuncDouble, FuncSize, FuncJoin, FuncReplace, FuncSplit, FuncLowerASCII, FuncUpperASCII, FuncTrim, FuncSubstring,
			FuncFind, FuncIndexOf, FuncStartsWith, FuncEndsWith, FuncContains, FuncMatches, FuncHasValue, FuncSign:
			return true
		case FuncDyn, FuncOrValue:
			return all(n.args...)
		}
		return n.name == "escapeKey" || n.name == "format"
	}
	return false
}

func (p putter) isScalar(n *node) bool { return p.isScalarShape(p.typeOf(n)) }

func (p putter) isScalarShape(t typed) bool { return t.shape != nil && p.scalar(t.shape) }
