package apiserver

import (
	"math"
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/containers"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// CEL's type checker copies all that it knows of type parameters for each argument of
// each call, so a long expression takes it time that grows with the square of the
// length. A long expression is therefore checked in parts. The type of a part is that
// which it has whatever is in it, as a conjunction is boolean; so the rest means the same
// to the checker with something else of that type in its place. Variables of loops that
// are of type dyn, as the object is, are replaced by that, so that parts of what is in
// loops mean the same outside of them.

// longText is the length from which on a text is checked in parts.
const longText = 2_000

// leastPart is how many nodes a part has at least.
const leastPart = 60

// dynamic is a variable of type dyn wherever expressions are compiled.
const dynamic = "object"

// compileInParts is what comes of a long text; false where something is wrong with it,
// or where it has errors that speak of its lines.
func compileInParts(env *celgo.Env, text string, literalsMatter bool) (compilation, bool) {
	whole, issues := env.Parse(text)
	if issues != nil {
		return compilation{}, false
	}
	p := parts{env: env}
	p.cut(whole.NativeRep().Expr())
	if p.failed {
		return compilation{}, false
	}
	var output *celgo.Type
	for _, part := range append(p.taken, whole) {
		checked, issues := env.Check(part)
		if issues != nil {
			return compilation{}, false
		}
		if literalsMatter && makesOfConstants(checked.NativeRep()) {
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
	// loops are the variables of the loops around what is looked at.
	loops  []loopVariable
	failed bool
}

type loopVariable struct {
	name string
	typ  *celgo.Type // nil where its form does not tell
}

// A rest is what is left of an expression.
type rest struct {
	nodes int
	typ   *celgo.Type // as far as its form tells
	// outermost is the index, in parts.loops, of the outermost variable that it reads and
	// that nothing can replace; math.MaxInt where there is none.
	outermost int
}

// with adds what a part of the expression leaves.
func (r *rest) with(of rest) {
	r.nodes += of.nodes
	r.outermost = min(r.outermost, of.outermost)
}

// cut takes the parts out of an expression, and returns what is left of it.
func (p *parts) cut(e ast.Expr) rest {
	out := rest{nodes: 1, outermost: math.MaxInt}
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().Type() {
		case types.BoolType:
			out.typ = celgo.BoolType
		case types.StringType:
			out.typ = celgo.StringType
		}
	case ast.IdentKind:
		return p.variable(e)
	case ast.CallKind:
		return p.part(e, p.cutCall(e.AsCall()))
	case ast.SelectKind:
		of := p.cut(e.AsSelect().Operand())
		out.with(of)
		switch {
		case e.AsSelect().IsTestOnly():
			out.typ = celgo.BoolType
		case of.typ == celgo.DynType:
			out.typ = celgo.DynType
		}
	case ast.ListKind:
		of := p.cutAll(&out, e.AsList().Elements()...)
		if len(of) > 0 && !slices.ContainsFunc(of, func(t *celgo.Type) bool { return t != celgo.DynType }) {
			out.typ = celgo.ListType(celgo.DynType)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			p.cutAll(&out, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		return p.part(e, p.cutLoop(e.AsComprehension()))
	}
	return out
}

// cutAll cuts the operands of an expression, of which it returns the types.
func (p *parts) cutAll(of *rest, es ...ast.Expr) []*celgo.Type {
	out := make([]*celgo.Type, len(es))
	for i, e := range es {
		r := p.cut(e)
		of.with(r)
		out[i] = r.typ
	}
	return out
}

// variable looks at what a name stands for.
func (p *parts) variable(e ast.Expr) rest {
	for i, v := range slices.Backward(p.loops) {
		switch {
		case v.name != e.AsIdent():
		case v.typ == celgo.DynType:
			e.SetKindCase(ast.NewExprFactory().NewIdent(e.ID(), dynamic))
			return rest{nodes: 1, typ: v.typ, outermost: math.MaxInt}
		default:
			return rest{nodes: 1, outermost: i}
		}
	}
	out := rest{nodes: 1, outermost: math.MaxInt}
	if e.AsIdent() == dynamic {
		out.typ = celgo.DynType
	}
	return out
}

func (p *parts) cutCall(call ast.CallExpr) rest {
	out := rest{nodes: 1, outermost: math.MaxInt}
	if call.IsMemberFunction() && !p.isNamespaced(call) {
		out.with(p.cut(call.Target()))
	}
	of := p.cutAll(&out, call.Args()...)
	switch call.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Equals, operators.NotEquals, operators.In,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		out.typ = celgo.BoolType
	case operators.Add: // to a text, nothing but a text
		if slices.Contains(of, celgo.StringType) {
			out.typ = celgo.StringType
		}
	case operators.Conditional:
		if of[1] == of[2] {
			out.typ = of[1]
		}
	case overloads.TypeConvertDyn:
		out.typ = celgo.DynType
	}
	return out
}

// isDyn tells of a call of dyn, which of a constant is one: what is around it may make
// something of that.
func isDyn(e ast.Expr) bool {
	return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == overloads.TypeConvertDyn
}

// isNamespaced tells that what looks like the target of a call is the beginning of the
// function's name: it is that even where a variable has the same name.
func (p *parts) isNamespaced(call ast.CallExpr) bool {
	prefix, ok := containers.ToQualifiedName(call.Target())
	return ok && p.env.HasFunction(prefix+"."+call.FunctionName())
}

// cutLoop cuts a loop.
func (p *parts) cutLoop(loop ast.ComprehensionExpr) rest {
	out := rest{nodes: 1, outermost: math.MaxInt}
	through := p.cut(loop.IterRange())
	out.with(through)
	begin := p.cut(loop.AccuInit())
	out.with(begin)
	if slices.Contains([]string{loop.IterVar(), loop.IterVar2(), loop.AccuVar()}, dynamic) {
		p.failed = true
	}
	outside := len(p.loops)
	p.loops = append(p.loops, loopVariable{name: loop.AccuVar()}, loopVariable{name: loop.IterVar()})
	switch {
	case loop.HasIterVar2():
		p.loops = append(p.loops, loopVariable{name: loop.IterVar2()})
	case isDynamic(through.typ):
		p.loops[outside+1].typ = celgo.DynType
	}
	p.cutAll(&out, loop.LoopCondition(), loop.LoopStep())
	p.loops = p.loops[:outside+1]
	if r := loop.Result(); r.Kind() == ast.IdentKind && r.AsIdent() == loop.AccuVar() && begin.typ == celgo.BoolType {
		out.typ = begin.typ
	} else {
		p.cutAll(&out, r)
	}
	p.loops = p.loops[:outside]
	return out
}

// isDynamic tells that what a loop goes through has elements of type dyn.
func isDynamic(through *celgo.Type) bool {
	return through == celgo.DynType || through != nil && through.Kind() == types.ListKind && through.Parameters()[0] == celgo.DynType
}

// part makes an expression a part where it is one, and returns what is left of it.
func (p *parts) part(e ast.Expr, left rest) rest {
	if left.nodes < leastPart || left.outermost < len(p.loops) || isDyn(e) {
		return left
	}
	var standIn ast.Expr
	switch factory := ast.NewExprFactory(); left.typ {
	case celgo.BoolType:
		standIn = factory.NewLiteral(e.ID(), types.True)
	case celgo.StringType:
		standIn = factory.NewLiteral(e.ID(), types.String(""))
	case celgo.DynType:
		standIn = factory.NewIdent(e.ID(), dynamic)
	default:
		return left
	}
	part, issues := p.env.Parse("true")
	if issues != nil {
		p.failed = true
		return left
	}
	root := part.NativeRep().Expr()
	root.RenumberIDs(func(int64) int64 { return -1 }) // which nothing within it has
	root.SetKindCase(e)
	e.SetKindCase(standIn)
	p.taken = append(p.taken, part)
	return rest{nodes: 1, typ: left.typ, outermost: math.MaxInt}
}
