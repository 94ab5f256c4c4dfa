package apiserver

import (
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// CEL's type checker copies all that it knows of type parameters for each argument of
// each call, so a long expression takes it time that grows with the square of the
// length. A long expression is therefore checked in parts. A part is outside of loops, so
// it reads no variable of what is around it; and its type is that which it has whatever
// is in it, as a conjunction is boolean. So the rest means the same to the checker with a
// literal of that type in its place.

// longText is the length from which on a text is checked in parts.
const longText = 2_000

// leastPart is how many nodes a part has at least.
const leastPart = 60

// compileInParts is what comes of a long text; false where something is wrong with it,
// or where it has errors that speak of its lines.
func compileInParts(env *celgo.Env, text string, literalsMatter bool) (compilation, bool) {
	whole, issues := env.Parse(text)
	if issues != nil {
		return compilation{}, false
	}
	p := parts{env: env}
	p.cut(whole.NativeRep().Expr())
	var output *celgo.Type
	for _, part := range append(p.taken, whole) {
		checked, issues := env.Check(part)
		if issues != nil {
			return compilation{}, false
		}
		if literalsMatter {
			if _, err := env.Program(checked, celgo.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
				return compilation{}, false
			}
		}
		output = checked.OutputType()
	}
	return compilation{output: output}, true
}

// parts are what was taken out of an expression.
type parts struct {
	env   *celgo.Env
	taken []*celgo.Ast
}

// cut takes the parts out of an expression. It returns how many nodes are left of it, and
// its type as far as its form tells.
func (p *parts) cut(e ast.Expr) (nodes int, typ *celgo.Type) {
	n := 1
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().Type() {
		case types.BoolType:
			return n, celgo.BoolType
		case types.StringType:
			return n, celgo.StringType
		}
	case ast.CallKind:
		n, typ = p.cutCall(e.AsCall())
		if n >= leastPart && typ != nil && p.take(e, typ) {
			return 1, typ
		}
		return n, typ
	case ast.SelectKind:
		n += p.cutAll(e.AsSelect().Operand())
	case ast.ListKind:
		n += p.cutAll(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			n += p.cutAll(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind: // inside of the loop its variables are read
		n += leastPart + p.cutAll(e.AsComprehension().IterRange())
	}
	return n, nil
}

func (p *parts) cutAll(es ...ast.Expr) (nodes int) {
	for _, e := range es {
		n, _ := p.cut(e)
		nodes += n
	}
	return nodes
}

func (p *parts) cutCall(call ast.CallExpr) (nodes int, typ *celgo.Type) {
	nodes = 1
	if call.IsMemberFunction() {
		nodes += p.cutAll(call.Target())
	}
	of := make([]*celgo.Type, len(call.Args()))
	for i, a := range call.Args() {
		n, t := p.cut(a)
		nodes += n
		of[i] = t
	}
	switch call.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals, operators.In,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return nodes, celgo.BoolType
	case operators.Add: // to a text, nothing but a text
		if slices.Contains(of, celgo.StringType) {
			return nodes, celgo.StringType
		}
	case operators.Conditional:
		if of[1] == of[2] {
			return nodes, of[1]
		}
	}
	return nodes, nil
}

// take makes an expression a part, and leaves a literal in its place.
func (p *parts) take(e ast.Expr, typ *celgo.Type) bool {
	part, issues := p.env.Parse("true")
	if issues != nil {
		return false
	}
	root := part.NativeRep().Expr()
	root.RenumberIDs(func(int64) int64 { return -1 }) // which nothing within it has
	root.SetKindCase(e)
	literal := ast.NewExprFactory().NewLiteral(e.ID(), types.True)
	if typ == celgo.StringType {
		literal = ast.NewExprFactory().NewLiteral(e.ID(), types.String(""))
	}
	e.SetKindCase(literal)
	p.taken = append(p.taken, part)
	return true
}
