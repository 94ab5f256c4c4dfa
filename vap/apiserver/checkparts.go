package apiserver

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// CEL's type checker copies all that it knows of type parameters for each argument of
// each call, so a long expression takes it time that grows with the square of the
// length. A long expression is therefore checked in parts. A part is a conjunction or
// a disjunction outside of loops. Whatever is in it, it is boolean, and reads no
// variable of what is around it; so the rest means the same to the checker with true
// in its place.

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

// cut takes the parts out of an expression. It returns how many nodes are left of it.
func (p *parts) cut(e ast.Expr) int {
	n := 1
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			n += p.cut(call.Target())
		}
		for _, a := range call.Args() {
			n += p.cut(a)
		}
		if f := call.FunctionName(); n >= leastPart && (f == operators.LogicalAnd || f == operators.LogicalOr) && p.take(e) {
			return 1
		}
	case ast.SelectKind:
		n += p.cut(e.AsSelect().Operand())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			n += p.cut(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			n += p.cut(entry.AsMapEntry().Key()) + p.cut(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind: // inside of the loop its variables are read
		n += leastPart + p.cut(e.AsComprehension().IterRange())
	}
	return n
}

// take makes an expression a part, and leaves true in its place.
func (p *parts) take(e ast.Expr) bool {
	part, issues := p.env.Parse("true")
	if issues != nil {
		return false
	}
	root := part.NativeRep().Expr()
	root.RenumberIDs(func(int64) int64 { return -1 }) // which nothing within it has
	root.SetKindCase(e)
	e.SetKindCase(ast.NewExprFactory().NewLiteral(e.ID(), types.True))
	p.taken = append(p.taken, part)
	return true
}
