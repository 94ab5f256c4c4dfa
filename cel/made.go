package cel

import (
	"slices"
	"strings"
)

// What an expression makes: the Objects and JSON patches of a MutatingAdmissionPolicy.

// MakesEmpty tells that v makes an empty map, or a part of an Object without fields, anywhere. An
// Object without fields changes nothing.
func (v Value) MakesEmpty() bool {
	return v.n.some(func(n *node) bool {
		return (n.op == opMap || n.op == opStruct && n.name != "Object") && len(n.args) == 0
	})
}

// FieldsOf are the values that v gives a field of a struct, wherever it makes one.
func (v Value) FieldsOf(name, field string) (out []Value) {
	for _, fields := range v.Structs(name) {
		if value, ok := fields[field]; ok {
			out = append(out, value)
		}
	}
	return out
}

// Structs are the fields of each struct of a name that v makes.
func (v Value) Structs(name string) (out []map[string]Value) {
	v.Walk(func(v Value) bool {
		if v.n.op == opStruct && v.n.name == name {
			fields := map[string]Value{}
			for i, f := range v.n.vars {
				fields[f] = Value{v.n.args[i]}
			}
			out = append(out, fields)
		}
		return true
	})
	return out
}

// Prefix is the text that v, a sum of texts, begins with.
func (v Value) Prefix() string {
	switch {
	case v.n == nil:
		return ""
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
func (v Value) MakesStruct() bool {
	return v.n.some(func(n *node) bool { return n.op == opStruct })
}

// IsSelection tells that v reads a field, or an element, of something.
func (v Value) IsSelection() bool { return v.n.op == opSelect || v.n.op == opIndex }

// IsText tells that v is a literal text.
func (v Value) IsText() bool { return v.n != nil && v.n.op == opString }

// LiteralType is the type of v, a part of an aggregate: of a literal, of a sum of texts, of lists
// and maps of texts; dyn of what is read of the object; "" where it is another one or not known.
func (v Value) LiteralType() string {
	n := v.n.plain()
	switch n.op {
	case opString:
		return "string"
	case opBool:
		return "bool"
	case opInt:
		return "int"
	case opDouble:
		return "double"
	case opBinary:
		if n.operator() == Plus && v.Prefix() != "" {
			return "string"
		}
	case opList:
		if areTexts(n.args) {
			return "list(string)"
		}
	case opMap:
		if areTexts(n.args) {
			return "map(string, string)"
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

// areTexts tells of some nodes that all are literal texts.
func areTexts(ns []*node) bool {
	return len(ns) > 0 && !slices.ContainsFunc(ns, func(n *node) bool { return n.op != opString })
}

// areInts tells of some nodes that all are literal integers.
func areInts(ns []*node) bool {
	return len(ns) > 0 && !slices.ContainsFunc(ns, func(n *node) bool { return n.op != opInt })
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
					step := strings.NewReplacer("~", "~0", "/", "~1").Replace(Value{value.args[k]}.Prefix())
					out = append(out, strings.TrimPrefix(at+"/"+field+"/"+step, "/"))
				}
			case !Value{value}.MakesStruct():
				out = append(out, strings.TrimPrefix(at+"/"+field, "/"))
			}
		}
		return true
	})
	return out
}

// A Making is how a value is made.
type Making int

// The makings.
const (
	Unmade     Making = iota
	MadeMap           // of names and parts: a map or a struct
	MadeList          // of parts
	MadeChoice        // one of two parts
	MadeEach          // a list of a part for each element of another one
)

// Made is how v is made, and of what. A name that is not known is empty.
func (v Value) Made() (how Making, names []string, parts []Value) {
	n := v.n.plain()
	of := func(nodes ...*node) (out []Value) {
		for _, a := range nodes {
			out = append(out, Value{a})
		}
		return out
	}
	switch {
	case n.op == opStruct:
		return MadeMap, n.vars, of(n.args...)
	case n.op == opMap:
		for i := 0; i+1 < len(n.args); i += 2 {
			name, _ := n.args[i].lit.(string)
			names, parts = append(names, name), append(parts, Value{n.args[i+1]})
		}
		return MadeMap, names, parts
	case n.op == opList:
		return MadeList, nil, of(n.args...)
	case n.op == opCond:
		return MadeChoice, nil, of(n.args[1], n.args[2])
	case n.macro() == MacroMap || n.macro() == MacroTransformList:
		return MadeEach, nil, of(n.args[len(n.args)-1])
	}
	return Unmade, nil, nil
}

// AnyStep is a step of a path that is made at run time.
const AnyStep = "*"

// Pointer are the steps of a JSON pointer that v, a text, is, with AnyStep for numbers and
// for keys that are escaped; false where it may have other steps.
func (v Value) Pointer() (steps []string, ok bool) {
	text, ok := v.n.pointer()
	if !ok || !strings.HasPrefix(text, "/") {
		return nil, false
	}
	steps = strings.Split(text[1:], "/")
	for i, step := range steps {
		if step == madeStep {
			steps[i] = AnyStep
		} else if strings.Contains(step, madeStep) {
			return nil, false
		} else {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		}
	}
	return steps, true
}

// isPlace tells of what is taken for the index of an element.
func (n *node) isPlace() bool {
	return n.op == opIdent || n.op == opInt || n.function() == FuncIndexOf || n.function() == FuncSize ||
		(n.operator() == Plus || n.operator() == Minus) && n.args[0].isPlace() && n.args[1].isPlace()
}

// madeStep is no character of a field.
const madeStep = "\x00"

func (n *node) pointer() (text string, ok bool) {
	switch {
	case n.op == opString:
		return n.lit.(string), true
	case n.operator() == Plus:
		a, ok := n.args[0].pointer()
		b, ok2 := n.args[1].pointer()
		return a + b, ok && ok2
	case n.function() == FuncString && len(n.args) == 1 && n.args[0].isPlace(), n.op == opMember && n.name == "escapeKey", n.op == opCall && n.name == "jsonpatch.escapeKey":
		return madeStep, true
	}
	return "", false
}
