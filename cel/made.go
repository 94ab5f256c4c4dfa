package cel

import (
	"slices"
	"strings"
)

// What an expression makes: the Objects and JSON patches of a MutatingAdmissionPolicy.

// MakesEmpty tells that v makes an empty map, or a part of an Object without fields, anywhere. An
// Object without fields changes nothing.
func (v Value) MakesEmpty() bool {
	return v.n.some(func(n *node) bool { return (n.op == opMap || n.op == opStruct && n.name != "Object") && len(n.args) == 0 })
}

// FieldsOf are the values that v gives a field of a struct, wherever it makes one.
func (v Value) FieldsOf(name, field string) (out []Value) {
	v.Walk(func(v Value) bool {
		for i, f := range v.n.vars {
			if v.n.op == opStruct && v.n.name == name && f == field {
				out = append(out, Value{v.n.args[i]})
			}
		}
		return true
	})
	return out
}

// Prefix is the text that v, a sum of texts, begins with.
func (v Value) Prefix() string {
	switch {
	case v.n.op == opString:
		return v.n.lit.(string)
	case v.n.op == opBinary && v.n.name == string(Plus):
		return Value{v.n.args[0]}.Prefix()
	}
	return ""
}

// Taken is v with the branch that is taken in the place of a ternary whose condition is a
// literal. The type checker may see another type in it than in v.
func (v Value) Taken() Value {
	return v.Rewrite(func(v Value) Value {
		if v.n.op != opCond {
			return v
		}
		return Cond(Value{v.n.args[0]}.AsBool(), Value{v.n.args[1]}, Value{v.n.args[2]})
	})
}

// MakesText tells that v is string(x), or a sum that begins with one.
func (v Value) MakesText() bool {
	if v.n.op == opBinary && v.n.name == string(Plus) {
		return Value{v.n.args[0]}.MakesText()
	}
	return v.n.op == opCall && v.n.name == string(FuncString)
}

// MixesObjects tells that v joins a list of Objects that it makes with one of other values.
func (v Value) MixesObjects() bool {
	return v.n.some(func(n *node) bool {
		return n.operator() == Plus && n.args[0].listsObjects() != n.args[1].listsObjects() && !n.args[0].isEmptyList() && !n.args[1].isEmptyList()
	})
}

func (n *node) isEmptyList() bool { return n.op == opList && len(n.args) == 0 }

// listsObjects tells of a list whose elements n makes.
func (n *node) listsObjects() bool {
	switch {
	case n.op == opList:
		return len(n.args) > 0 && n.args[0].op == opStruct
	case n.op == opCond:
		return n.args[1].listsObjects() || n.args[2].listsObjects()
	case n.op == opBinary && n.name == string(Plus):
		return n.args[0].listsObjects() || n.args[1].listsObjects()
	case n.macro() == MacroMap || n.macro() == MacroTransformList:
		return n.args[len(n.args)-1].op == opStruct
	}
	return false
}

// MakesStruct tells that v makes an Object or a JSON patch, anywhere.
func (v Value) MakesStruct() bool { return makesStruct(v.n) }

// IsSelection tells that v reads a field, or an element, of something.
func (v Value) IsSelection() bool { return v.n.op == opSelect || v.n.op == opIndex }

// IsText tells that v is a literal text.
func (v Value) IsText() bool { return v.n.op == opString }

// LiteralType is the type of v, a part of an aggregate: of a literal, of a sum of texts, of lists
// and maps of texts; dyn of what is read of the object; "" where it is another one or not known.
func (v Value) LiteralType() string {
	n := v.n
	switch n.op {
	case opString, opBool, opInt, opDouble:
		return n.op.literalType()
	case opBinary:
		if n.operator() == Plus && v.Prefix() != "" {
			return opString.literalType()
		}
	case opList, opMap:
		for _, a := range n.args {
			if a.op != opString {
				return ""
			}
		}
		if len(n.args) > 0 {
			return n.op.literalType()
		}
	case opSelect, opIndex:
		for n.op == opSelect || n.op == opIndex {
			n = n.args[0]
		}
		if n.isPath([]string{"object"}) || n.isPath([]string{"oldObject"}) {
			return "dyn"
		}
	}
	return ""
}

func (o op) literalType() string {
	switch o {
	case opString:
		return "string"
	case opBool:
		return "bool"
	case opInt:
		return "int"
	case opDouble:
		return "double"
	case opList:
		return "list(string)"
	case opMap:
		return "map(string, string)"
	}
	return ""
}

// VariableName is the name of a variable; "" where v is none.
func (v Value) VariableName() string {
	if v.IsZero() || v.n.op != opIdent {
		return ""
	}
	return v.n.name
}

// Sets are the paths of what v changes, as an apply configuration or as a JSON patch: of each
// field that an Object sets, of each key of a map that it is given, and of what operations are
// about, as far as that is known. Steps are parted by slashes.
func (v Value) Sets() (out []string) {
	v.Walk(func(v Value) bool {
		if v.n.op != opStruct {
			return true
		}
		at := strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(v.n.name, "Object"), "."), ".", "/")
		for i, field := range v.n.vars {
			value := v.n.args[i]
			switch {
			case v.n.name == "JSONPatch":
				if field == "path" {
					out = append(out, strings.TrimPrefix(Value{value}.Prefix(), "/"))
				}
				continue
			case value.op == opMap && len(value.args) > 0:
				for k := 0; k < len(value.args); k += 2 {
					out = append(out, strings.TrimPrefix(at+"/"+field+"/"+escaped(Value{value.args[k]}.Prefix()), "/"))
				}
			case !makesStruct(value):
				out = append(out, strings.TrimPrefix(at+"/"+field, "/"))
			}
		}
		return true
	})
	return out
}

// escaped is a key as a step of a path.
func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// makesStruct tells that a struct is made in n.
func makesStruct(n *node) bool { return n.some(func(n *node) bool { return n.op == opStruct }) }

// Puts tells that v puts into what it makes a part of a variable that Kubernetes 1.37 cannot write:
// of a Go struct, where a match condition was asked before. These are maps, lists and structs as the value
// of a JSON patch, and elements of a list, gone through by a macro, elsewhere. Collection tells of
// the shapes of such parts.
//
//	JSONPatch{op: 'add', path: '/spec/volumes', value: object.spec.volumes}
//	Object.spec{volumes: object.spec.volumes.filter(v, v.name != 'a')}
func (c Checker) Puts(v Value, collection func(Shape) bool) bool {
	w := putter{collection: collection}
	for _, r := range c.Roots {
		w.bound = append(w.bound, binding[typed]{r.Name, typed{r.Shape, "."}})
	}
	return w.puts(v.n)
}

type putter struct {
	checked
	collection func(Shape) bool
}

// puts looks for structs that are made in n.
func (p putter) puts(n *node) bool {
	for i, a := range n.args {
		at := p
		if n.binds(i) {
			at.bound = p.bound.in(n, typed{}, p.typeOf(n.args[0]).elem())
		}
		put := false
		if n.op == opStruct && n.name == "JSONPatch" {
			put = at.holds(a)
		} else if n.op == opStruct {
			put = at.elements(a)
		}
		if put || at.puts(a) {
			return true
		}
	}
	return false
}

// holds tells that a part is, or is in, the value of n.
func (p putter) holds(n *node) bool {
	switch {
	case n.op == opList || n.op == opMap || n.op == opMaybe:
		return slices.ContainsFunc(n.args, p.holds)
	case n.op == opCond:
		return p.holds(n.args[1]) || p.holds(n.args[2])
	case n.op == opCall && n.function() == FuncDyn:
		return p.holds(n.args[0])
	case n.function() == FuncOrValue:
		return p.isPart(p.typeOf(n)) || p.holds(n.args[1])
	case n.op == opMacro || n.operator() == Plus:
		return p.elements(n)
	}
	return p.isPart(p.typeOf(n))
}

// elements tells that parts are elements of a list that n makes.
func (p putter) elements(n *node) bool {
	switch {
	case n.op == opList:
		return slices.ContainsFunc(n.args, p.holds)
	case n.op == opCond:
		return p.elements(n.args[1]) || p.elements(n.args[2])
	case n.operator() == Plus:
		return slices.ContainsFunc(n.args, func(a *node) bool { return p.isPart(p.typeOf(a).elem()) || p.elements(a) })
	case n.macro() == MacroFilter:
		return p.isPart(p.typeOf(n.args[0]).elem()) || p.elements(n.args[0])
	case n.op == opMacro && n.macro() == MacroMap:
		at := p
		at.bound = p.bound.in(n, typed{}, p.typeOf(n.args[0]).elem())
		return at.holds(n.args[len(n.args)-1])
	}
	return false
}

func (p putter) isPart(t typed) bool { return t.shape != nil && p.collection(t.shape) }
