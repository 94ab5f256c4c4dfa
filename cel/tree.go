package cel

import (
	"slices"
	"unicode/utf8"
)

// A Value is a CEL expression of any type. The zero Value is not an expression.
type Value struct{ n *node }

// A Bool is an expression that is known to be boolean. And, Or and Not take only
// Bools, so a tree that is ill-typed in this respect does not compile in Go.
type Bool struct{ Value }

type op int

const (
	opIdent  op = iota // name
	opNull             //
	opBool             // lit: bool
	opInt              // lit: int64
	opDouble           // lit: float64
	opUint             // lit: uint64
	opString           // lit: string, valid UTF-8
	opBytes            // lit: string
	opSelect           // args[0].name
	opHas              // has(args[0].name)
	opOpt              // args[0].?name
	opIndex            // args[0][args[1]]
	opOptIdx           // args[0][?args[1]]
	opCall             // name(args...)
	opMember           // args[0].name(args[1:]...)
	opMacro            // args[0].name(vars..., args[1:]...): all, exists, exists_one, map, filter
	opList             // [args...]
	opMap              // {args[0]: args[1], ...}
	opStruct           // name{vars[0]: args[0], ...}
	opMaybe            // ?args[0]: an element of a list, a key of a map or a value of a struct, optional
	opAnd              // args[0] && args[1] && ...
	opOr               // args[0] || args[1] || ...
	opNot              // !args[0]
	opNeg              // -args[0]
	opBinary           // args[0] name args[1]: == != < <= > >= in + - * / %
	opCond             // args[0] ? args[1] : args[2]
)

// A node is immutable once built. Only newNode makes one.
type node struct {
	op   op
	name string
	vars []string
	lit  any
	args []*node
	kind Kind   // of the values that it has, where that is known
	sure bool   // of a selection: it is there wherever what it selects from is
	hash uint64 // of all of the above: equal trees have equal hashes
	size int    // how many nodes the tree has

	written string // the text that was parsed, in the node that is all of it
}

func newNode(n node) *node {
	n.hash = n.sum()
	n.size = 1
	n.written = ""
	for _, a := range n.args {
		if a != nil {
			n.size += a.size
		}
	}
	if n.size > MaxSize {
		panic(TooLarge{})
	}
	return &n
}

func mk(o op, name string, args ...Value) Value {
	ns := make([]*node, len(args))
	for i, a := range args {
		ns[i] = a.n
	}
	return Value{newNode(node{op: o, name: name, args: ns})}
}

// IsZero tells that v is not an expression.
func (v Value) IsZero() bool { return v.n == nil }

// OfKind is v, of which the caller knows of what kind it is.
func (v Value) OfKind(k Kind) Value {
	n := *v.n
	n.kind = k
	return Value{&n}
}

// Sure is v, a selection that is there wherever what it selects from is there.
func (v Value) Sure() Value {
	n := *v.n
	n.sure = true
	return Value{&n}
}

// AsBool takes v for boolean; the caller knows that it is.
func (v Value) AsBool() Bool { return Bool{v} }

// Ident is a variable.
func Ident(name string) Value { return Value{newNode(node{op: opIdent, name: name})} }

// Null is the literal null.
func Null() Value { return Value{newNode(node{op: opNull})} }

// True and False are the boolean literals.
func True() Bool { return Lit(true) }

// False is the literal false.
func False() Bool { return Lit(false) }

// Lit is a boolean literal.
func Lit(b bool) Bool { return Bool{Value{newNode(node{op: opBool, lit: b})}} }

// Int is an integer literal.
func Int(i int64) Value { return Value{newNode(node{op: opInt, lit: i})} }

// Double is a floating-point literal.
func Double(f float64) Value { return Value{newNode(node{op: opDouble, lit: f})} }

// Uint is an unsigned integer literal.
func Uint(u uint64) Value { return Value{newNode(node{op: opUint, lit: u})} }

// String is a string literal. CEL strings are Unicode: each byte that is no part
// of valid UTF-8 becomes U+FFFD, as it does in the objects the API server decodes.
func String(s string) Value {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	return Value{newNode(node{op: opString, lit: s})}
}

// Bytes is a literal of type bytes.
func Bytes(b []byte) Value { return Value{newNode(node{op: opBytes, lit: string(b)})} }

// Strings is a list of string literals.
func Strings(ss ...string) Value {
	vs := make([]Value, len(ss))
	for i, s := range ss {
		vs[i] = String(s)
	}
	return List(vs...)
}

// List is a list literal.
func List(vs ...Value) Value { return mk(opList, "", vs...) }

// An Entry is a key and a value of a map literal.
type Entry struct{ Key, Value Value }

// Maybe is ?v, for an element of a list literal or the key of an entry: the
// element or entry is left out when its optional value is empty.
func Maybe(v Value) Value { return mk(opMaybe, "", v) }

// Map is a map literal.
func Map(es ...Entry) Value {
	vs := make([]Value, 0, 2*len(es))
	for _, e := range es {
		vs = append(vs, e.Key, e.Value)
	}
	return mk(opMap, "", vs...)
}

// A StructField is a field of a struct that is made, and its value.
type StructField struct {
	Name  string
	Value Value
}

// Struct is name{field: value, ...}: an Object or a JSONPatch, in the expressions of a
// MutatingAdmissionPolicy. A value may be a Maybe.
func Struct(name string, fields ...StructField) Value {
	n := node{op: opStruct, name: name}
	for _, f := range fields {
		n.vars, n.args = append(n.vars, f.Name), append(n.args, f.Value.n)
	}
	return Value{newNode(n)}
}

// Field is v.name, or v["name"] where the API server cannot parse v.name: names
// that are not identifiers, and the words true, false, null and in.
func (v Value) Field(name string) Value {
	if !selectable(name) {
		return v.Index(String(name))
	}
	return mk(opSelect, name, v)
}

// Has is has(v.name), or "name" in v where v.name cannot be written. The two
// agree on maps only: for null and for scalars, has is false and in is an error;
// for a list, has is an error and in looks for the element.
func (v Value) Has(name string) Bool {
	if !selectable(name) {
		return String(name).In(v)
	}
	return Bool{mk(opHas, name, v)}
}

// Optional is v.?name, or v[?"name"] where v.name cannot be written. v may be optional.
func (v Value) Optional(name string) Value {
	if !selectable(name) {
		return mk(opOptIdx, "", v, String(name))
	}
	return mk(opOpt, name, v)
}

// Index is v[i].
func (v Value) Index(i Value) Value { return mk(opIndex, "", v, i) }

// OptIndex is v[?i].
func (v Value) OptIndex(i Value) Value { return mk(opOptIdx, "", v, i) }

// OrValue is v.orValue(d); v is optional.
func (v Value) OrValue(d Value) Value { return v.Call(FuncOrValue, d) }

// HasValue is v.hasValue(); v is optional.
func (v Value) HasValue() Bool { return v.Call(FuncHasValue).AsBool() }

// Call is v.f(args...), a member call.
func (v Value) Call(f Function, args ...Value) Value {
	return mk(opMember, string(f), append([]Value{v}, args...)...)
}

// Func is f(args...), a global call.
func Func(f Function, args ...Value) Value { return mk(opCall, string(f), args...) }

// Size is size(v).
func (v Value) Size() Value { return Func(FuncSize, v) }

// Type is type(v).
func (v Value) Type() Value { return Func(FuncType, v) }

// Binary is v op w.
func (v Value) Binary(op Operator, w Value) Value { return mk(opBinary, string(op), v, w) }

// Plus is v + w.
func (v Value) Plus(w Value) Value { return v.Binary(Plus, w) }

// Compare is v op w, where op has a truth for its result.
func (v Value) Compare(op Operator, w Value) Bool { return v.Binary(op, w).AsBool() }

// Eq is v == w.
func (v Value) Eq(w Value) Bool { return v.Compare(Equals, w) }

// Ne is v != w.
func (v Value) Ne(w Value) Bool { return v.Compare(Differs, w) }

// In is v in w.
func (v Value) In(w Value) Bool { return v.Binary(In, w).AsBool() }

// StartsWith is v.startsWith(s).
func (v Value) StartsWith(s Value) Bool { return v.Call(FuncStartsWith, s).AsBool() }

// EndsWith is v.endsWith(s).
func (v Value) EndsWith(s Value) Bool { return v.Call(FuncEndsWith, s).AsBool() }

// Contains is v.contains(s).
func (v Value) Contains(s Value) Bool { return v.Call(FuncContains, s).AsBool() }

// Matches is v.matches(re).
func (v Value) Matches(re string) Bool { return v.MatchesValue(String(re)) }

// MatchesValue is v.matches(re) where the regular expression is computed.
func (v Value) MatchesValue(re Value) Bool { return v.Call(FuncMatches, re).AsBool() }

// Cond is c ? v : w. Where c asks for the steps of v, it is v.orValue(w) with these steps
// optional.
func Cond(c Bool, v, w Value) Value {
	if b, ok := c.Const(); ok {
		if b {
			return v
		}
		return w
	}
	typed := v.n.op != opIndex || v.n.kind != Unknown // else the type checker takes it for one of w's type
	if out, ok := v.OrElse(c, w); ok && typed && (w.n.isLiteral() || len(w.n.args) == 0 && w.n.op != opIdent) {
		return out
	}
	return mk(opCond, "", c.Value, v, w)
}

// CondBool is c ? b : d for booleans. Unlike && and ||, it is strict in c: an
// error of c is an error of the whole.
func CondBool(c, b, d Bool) Bool {
	if v, ok := c.Const(); ok {
		if v {
			return b
		}
		return d
	}
	return Bool{mk(opCond, "", c.Value, b.Value, d.Value)}
}

// Const is the value of a boolean literal.
func (b Bool) Const() (value, ok bool) {
	if b.n != nil && b.n.op == opBool {
		return b.n.lit.(bool), true
	}
	return false, false
}

// IsTrue tells that b is the literal true.
func (b Bool) IsTrue() bool { v, ok := b.Const(); return ok && v }

// IsFalse tells that b is the literal false.
func (b Bool) IsFalse() bool { v, ok := b.Const(); return ok && !v }

// And is the conjunction, flattened and without literals. No terms are true.
func And(bs ...Bool) Bool { return andOr(opAnd, bs) }

// Or is the disjunction, flattened and without literals. No terms are false.
func Or(bs ...Bool) Bool { return andOr(opOr, bs) }

// andOr is And or Or.
func andOr(o op, bs []Bool) Bool {
	var args []*node
	seen := nodeSet{}
	var add func(*node) bool
	add = func(n *node) bool {
		if n.op == opBool {
			return n.lit.(bool) == o.unit() // the unit adds nothing, its opposite decides
		}
		if n.op == o {
			return !slices.ContainsFunc(n.args, func(a *node) bool { return !add(a) })
		}
		if seen.add(n) { // x && x is x
			args = append(args, n)
		}
		return true
	}
	for _, b := range bs {
		if !add(b.n) {
			return Lit(!o.unit())
		}
	}
	return Bool{Value{o.of(args)}}
}

// Not is the negation. A double negation goes, == and != change places, and
// a quantifier over a negation becomes its dual.
func Not(b Bool) Bool {
	switch n := b.n; n.op {
	case opBool:
		return Lit(!n.lit.(bool))
	case opNot:
		return Bool{Value{n.args[0]}}
	case opBinary:
		if inv, ok := n.operator().inverse(); ok {
			return Bool{Value{newNode(node{op: opBinary, name: string(inv), args: n.args})}}
		}
	}
	return Bool{mk(opNot, "", b.Value)}
}

// Implies is !a || b.
func Implies(a, b Bool) Bool { return Or(Not(a), b) }

// MaxSize is how many nodes a tree may have. The API server takes expressions of
// 100,000 characters, and few nodes print as less than one.
const MaxSize = 150_000

// TooLarge is what building a larger tree panics with. A tree may share its parts,
// so that one of billions of nodes takes a few; whoever would walk it next would
// never come to an end. The one who lowers a rule recovers, and refuses the rule.
type TooLarge struct{}

// Error says what became too large.
func (TooLarge) Error() string { return "the expression has too many parts" }

// Nodes is how many nodes v has; none where it is not an expression.
func (v Value) Nodes() int {
	if v.n == nil {
		return 0
	}
	return v.n.size
}
