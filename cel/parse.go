package cel

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	celparser "github.com/google/cel-go/parser"

	"github.com/kvap/kvap/diag"
)

// Parse reads an expression as the API server does. Macros stay as they are
// written. An error is a diag.Diagnostic whose line and column count from 1
// within text.
func Parse(text string) (Value, error) {
	if !utf8.ValidString(text) {
		return Value{}, diag.Errorf(diag.Pos{}, diag.BadExpression, "the expression is no valid UTF-8")
	}
	if strings.TrimSpace(text) == "" {
		return Value{}, diag.Errorf(diag.Pos{Line: 1, Col: 1}, diag.BadExpression, "the expression is empty")
	}
	p, err := celparser.NewParser(
		celparser.EnableOptionalSyntax(true),
		celparser.EnableIdentEscapeSyntax(false),
	)
	if err != nil {
		return Value{}, err
	}
	tree, errs := p.Parse(common.NewTextSource(text))
	if es := errs.GetErrors(); len(es) > 0 {
		return Value{}, syntaxError(es)
	}
	r := &reader{info: tree.SourceInfo()}
	n := r.node(tree.Expr())
	if r.err != nil {
		return Value{}, *r.err
	}
	n.written = text // the reader has just made it
	return Value{n}, nil
}

// Written is the text that v was parsed from, and "" for what was built, or has
// been changed since.
func (v Value) Written() string {
	if v.IsZero() {
		return ""
	}
	return v.n.written
}

// syntaxError is the first error by place: the later ones follow from it.
func syntaxError(es []*common.Error) diag.Diagnostic {
	first := slices.MinFunc(es, func(a, b *common.Error) int {
		return cmp.Or(a.Location.Line()-b.Location.Line(), a.Location.Column()-b.Location.Column())
	})
	message := strings.TrimPrefix(first.Message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " expecting {") // every token there is
	message = strings.ReplaceAll(message, "'<EOF>'", "end of the expression")
	return diag.Errorf(posOf(first.Location), diag.BadExpression, "%s", message)
}

func posOf(l common.Location) diag.Pos {
	return diag.Pos{Line: max(l.Line(), 0), Col: max(l.Column()+1, 0)}
}

// A reader turns cel-go's tree, parsed with no macros, into ours.
type reader struct {
	info *ast.SourceInfo
	err  *diag.Diagnostic // the first
}

func (r *reader) fail(e ast.Expr, format string, args ...any) *node {
	if r.err == nil {
		d := diag.Errorf(posOf(r.info.GetStartLocation(e.ID())), diag.BadExpression, format, args...)
		r.err = &d
	}
	return Null().n
}

func (r *reader) node(e ast.Expr) *node {
	switch e.Kind() {
	case ast.IdentKind:
		return Ident(e.AsIdent()).n
	case ast.LiteralKind:
		return r.literal(e)
	case ast.SelectKind:
		s := e.AsSelect()
		return newNode(node{op: opSelect, name: s.FieldName(), args: []*node{r.node(s.Operand())}})
	case ast.ListKind:
		args := r.nodes(e.AsList().Elements())
		for i := range args {
			args[i] = maybe(args[i], e.AsList().IsOptional(int32(i)))
		}
		return newNode(node{op: opList, args: args})
	case ast.MapKind:
		n := node{op: opMap}
		for _, one := range e.AsMap().Entries() {
			entry := one.AsMapEntry()
			n.args = append(n.args, maybe(r.node(entry.Key()), entry.IsOptional()), r.node(entry.Value()))
		}
		return newNode(n)
	case ast.StructKind:
		n := node{op: opStruct, name: e.AsStruct().TypeName()}
		for _, one := range e.AsStruct().Fields() {
			field := one.AsStructField()
			n.vars = append(n.vars, field.Name())
			n.args = append(n.args, maybe(r.node(field.Value()), field.IsOptional()))
		}
		return newNode(n)
	case ast.CallKind:
		return r.call(e)
	}
	return r.fail(e, "cannot read this expression")
}

func (r *reader) nodes(es []ast.Expr) []*node {
	ns := make([]*node, len(es))
	for i, e := range es {
		ns[i] = r.node(e)
	}
	return ns
}

func (r *reader) literal(e ast.Expr) *node {
	switch v := e.AsLiteral().(type) {
	case types.Null:
		return Null().n
	case types.Bool:
		return Lit(bool(v)).n
	case types.Int:
		return Int(int64(v)).n
	case types.Uint:
		return Uint(uint64(v)).n
	case types.Double:
		return Double(float64(v)).n
	case types.String:
		return String(string(v)).n
	case types.Bytes:
		return Bytes([]byte(v)).n
	}
	return r.fail(e, "cannot read this literal")
}

func maybe(n *node, optional bool) *node {
	if optional {
		return Maybe(Value{n}).n
	}
	return n
}

func (r *reader) call(e ast.Expr) *node {
	c := e.AsCall()
	if c.IsMemberFunction() {
		return r.member(e)
	}
	args := r.nodes(c.Args())
	switch name := c.FunctionName(); name {
	case operators.LogicalAnd:
		return flatten(opAnd, args)
	case operators.LogicalOr:
		return flatten(opOr, args)
	case operators.LogicalNot:
		return newNode(node{op: opNot, args: args})
	case operators.Negate:
		return newNode(node{op: opNeg, args: args})
	case operators.Conditional:
		return newNode(node{op: opCond, args: args})
	case operators.Index:
		return newNode(node{op: opIndex, args: args})
	case operators.OptIndex:
		return newNode(node{op: opOptIdx, args: args})
	case operators.OptSelect:
		return newNode(node{op: opOpt, name: args[1].lit.(string), args: args[:1]})
	case operators.Has:
		switch {
		case len(args) == 1 && args[0].op == opSelect:
			return newNode(node{op: opHas, name: args[0].name, args: args[0].args})
		case len(args) == 1 && args[0].op == opIndex:
			return r.fail(e, "has() takes one field selection, as in has(object.spec); of a key, write 'k' in m")
		}
		return r.fail(e, "has() takes one field selection, as in has(object.spec)")
	default:
		if sign, ok := operators.FindReverseBinaryOperator(name); ok {
			return newNode(node{op: opBinary, name: sign, args: args})
		}
		return newNode(node{op: opCall, name: name, args: args})
	}
}

// flatten makes one node of a chain of one operator: how its terms were
// bracketed makes no difference, since && and || are associative over errors too.
func flatten(o op, args []*node) *node {
	var flat []*node
	for _, a := range args {
		if a.op == o {
			flat = append(flat, a.args...)
		} else {
			flat = append(flat, a)
		}
	}
	return newNode(node{op: o, args: flat})
}

// member tells macros and functions with a qualified name from methods.
func (r *reader) member(e ast.Expr) *node {
	c := e.AsCall()
	name := c.FunctionName()
	if t := c.Target(); t.Kind() == ast.IdentKind && qualified(t.AsIdent()+"."+name) {
		return newNode(node{op: opCall, name: t.AsIdent() + "." + name, args: r.nodes(c.Args())})
	}
	args := append([]*node{r.node(c.Target())}, r.nodes(c.Args())...)
	vars, isMacro := MacroName(name).variables(len(c.Args()))
	if !isMacro {
		return newNode(node{op: opMember, name: name, args: args})
	}
	n := node{op: opMacro, name: name, args: append(args[:1:1], args[1+vars:]...)}
	for i, v := range args[1 : 1+vars] {
		if v.op != opIdent || !isIdent(v.name) {
			return r.fail(c.Args()[i], "argument %d of %s() must be the name of a variable", i+1, name)
		}
		n.vars = append(n.vars, v.name)
	}
	return newNode(n)
}
