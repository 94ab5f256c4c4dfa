package apiserver

import (
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// loosen makes dynamic what CEL's checker refuses and its evaluator takes, and tells
// whether there was any. The checker wants one type for both lists of a sum, for both
// branches of a choice and for all elements of a list, and two objects are of one type
// to it only where they are of one place.
//
//	object.spec.containers + object.spec.?initContainers.orValue([])
//	-> dyn(object.spec.containers) + dyn(object.spec.?initContainers.orValue([]))
func (t *Typed) loosen(tree *ast.AST, issues *celgo.Issues) bool {
	l := loosening{ast.NewExprFactory(), ast.MaxID(tree), map[int64]bool{}, map[int64]bool{}, map[int64]bool{}}
	for _, e := range issues.Errors() {
		switch p := problem(e.Message, LineColumn{}); {
		case t.isSoundOnMaps(p):
			l.calls[e.ExprID] = true
		case strings.HasPrefix(e.Message, "expected type '") && !strings.HasPrefix(e.Message, "expected type 'optional_type("):
			l.elements[e.ExprID] = true
		}
	}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(l.visit))
	return len(l.loose) > 0
}

type loosening struct {
	ast.ExprFactory
	lastID   int64
	calls    map[int64]bool // whose arguments the checker refuses
	elements map[int64]bool // that the checker refuses in a list
	loose    map[int64]bool // what was made dynamic, or has parts that were
}

func (l *loosening) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		c := e.AsCall()
		longer := c.FunctionName() == "_+_" && slices.ContainsFunc(c.Args(), func(a ast.Expr) bool { return l.loose[a.ID()] })
		if !l.calls[e.ID()] && !longer { // a longer sum would be of the type of its last list
			return
		}
		args := slices.Clone(c.Args())
		for i := range args {
			if i > 0 || c.FunctionName() != "_?_:_" { // the condition of a choice is a boolean
				args[i] = l.dyn(e, args[i])
			}
		}
		if c.IsMemberFunction() { // what has the method keeps its type
			e.SetKindCase(l.NewMemberCall(e.ID(), c.FunctionName(), c.Target(), args...))
		} else {
			e.SetKindCase(l.NewCall(e.ID(), c.FunctionName(), args...))
		}
	case ast.ListKind:
		elements := slices.Clone(e.AsList().Elements())
		if !slices.ContainsFunc(elements, func(x ast.Expr) bool { return l.elements[x.ID()] }) {
			return
		}
		for i := range elements {
			elements[i] = l.dyn(e, elements[i])
		}
		e.SetKindCase(l.NewList(e.ID(), elements, e.AsList().OptionalIndices()))
	}
}

// dyn makes a part of e dynamic, unless it is: each expression is loosened once.
func (l *loosening) dyn(e, part ast.Expr) ast.Expr {
	if part.Kind() == ast.CallKind && part.AsCall().FunctionName() == "dyn" {
		return part
	}
	l.loose[e.ID()] = true
	l.lastID++
	return l.NewCall(l.lastID, "dyn", part)
}
