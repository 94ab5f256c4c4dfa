package apiserver

import (
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"

	"github.com/kvap/kvap/cel"
)

// A Checked is what an expression is for values of known types.
type Checked struct {
	// Output is the type of the value, in CEL's words.
	Output string
	// Problems are what cannot be evaluated to a value.
	Problems []Problem
	// Misses are fields that are read, and that objects of the type do not have.
	Misses []Miss
	// Hits are the places where a field is read that is, or may be, there.
	Hits []LineColumn
}

// A LineColumn is a line and column of an expression, from 1 and in characters.
type LineColumn struct{ Line, Col int }

// A Problem is an error of CEL's type checker.
type Problem struct {
	LineColumn
	Message string
	// Function is what does not take the types that it is applied to; "" for another
	// error.
	Function  string
	arguments string // their types
}

func problem(message string, at LineColumn) Problem {
	p := Problem{LineColumn: at, Message: message}
	if function, arguments, ok := noOverload(message); ok {
		p.Function, p.arguments = function, arguments
	}
	return p
}

// Comparison tells that values of different types are compared, which is no error:
// they are not equal.
func (p Problem) Comparison() bool {
	return p.Function == "_==_" || p.Function == "_!=_"
}

// Optional tells that what is not optional is treated as if it were.
func (p Problem) Optional() bool {
	return p.Function == string(cel.FuncOrValue) || p.Function == string(cel.FuncOr)
}

// Alike tells that p and q are the same problem at the same place, on objects of
// whatever types.
func (p Problem) Alike(q Problem) bool {
	return p.LineColumn == q.LineColumn && p.Function == q.Function && (p.Function != "" || p.Message == q.Message)
}

// A Miss is a field that objects of a type do not have.
type Miss struct {
	Kind  string // of the object
	Path  string // of what should have the field, from the object
	Field string
	// Tested tells that the expression only asks whether the field is there.
	Tested bool
	// Written tells that a patch sets the field, rather than that it is read.
	Written bool
	// Published tells that what the type is from is published by a project, another release
	// of which may have the field.
	Published bool
	Fields    []string // that there are, sorted
	LineColumn
}

// Declare checks the expression of a variable, and makes it known to those after it.
func (t *Typed) Declare(name, text string) Checked {
	tree, checked := t.check(text)
	t.shapes.variables[name] = celgo.DynType
	if tree != nil {
		t.shapes.variables[name] = tree.OutputType()
	}
	return checked
}

// Check checks an expression.
func (t *Typed) Check(text string) Checked {
	_, checked := t.check(text)
	return checked
}

func (t *Typed) check(text string) (*celgo.Ast, Checked) {
	tree, issues := t.env.Parse(text)
	if issues.Err() != nil {
		return nil, Checked{Problems: problems(issues)}
	}
	selectConstants(tree.NativeRep().Expr())
	typed, issues := t.env.Check(tree)
	for issues.Err() != nil && t.loosen(tree.NativeRep(), issues) {
		typed, issues = t.env.Check(tree)
	}
	if issues.Err() != nil {
		return nil, Checked{Problems: slices.DeleteFunc(problems(issues), t.isSoundOnMaps)}
	}
	checked := Checked{Output: typed.OutputType().String()}
	t.reads(typed.NativeRep(), &checked)
	if t.shapes.patched {
		t.patches(typed.NativeRep(), &checked)
	}
	return typed, checked
}

func problems(issues *celgo.Issues) []Problem {
	var out []Problem
	for _, e := range issues.Errors() {
		out = append(out, problem(e.Message, LineColumn{e.Location.Line(), e.Location.Column() + 1}))
	}
	return out
}

// selectConstants makes x.name of x['name'], which is the same on an object of the
// API server, and which CEL's checker knows of typed objects.
func selectConstants(root ast.Expr) {
	make := ast.NewExprFactory()
	ast.PostOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		key := e.AsCall().Args()[1]
		name, isText := "", false
		if key.Kind() == ast.LiteralKind {
			name, isText = key.AsLiteral().Value().(string)
		}
		if !isText {
			return
		}
		switch e.AsCall().FunctionName() {
		case "_[_]":
			e.SetKindCase(make.NewSelect(e.ID(), e.AsCall().Args()[0], name))
		case "_[?_]":
			e.SetKindCase(make.NewCall(e.ID(), "_?._", e.AsCall().Args()...))
		}
	}))
}

// isSoundOnMaps tells of what CEL's checker says of objects, and is not so of the
// maps that they are: they have a size and keys, and may be compared with others. What
// it says of numbers is not so either, nor what it says of values of several types that
// become one.
func (t *Typed) isSoundOnMaps(p Problem) bool {
	switch p.Function {
	case "_+_":
		return strings.HasPrefix(p.arguments, "(list(") && strings.Contains(p.arguments, "), list(")
	case "_?_:_":
		return strings.HasPrefix(p.arguments, "(bool, ")
	case "orValue", "or":
		return strings.HasPrefix(p.arguments, "optional_type(") || strings.HasPrefix(p.arguments, "(optional_type(")
	case "size", "@in", "_[_]", "_[?_]", "_==_", "_!=_":
	default:
		return false
	}
	switch p.arguments {
	case "(int, double)", "(double, int)": // numbers are compared by value
		return true
	}
	for name := range t.shapes.named {
		if strings.Contains(p.arguments, name) {
			return true
		}
	}
	return false
}

// reads tells which fields are read of objects that do not have them, and which of
// objects that do or may. What is read of a field that is not there is neither.
func (t *Typed) reads(tree *ast.AST, out *Checked) {
	missing := map[int64]bool{}
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		operand, field, tested := selection(e)
		if operand == nil {
			return
		}
		if missing[operand.ID()] {
			missing[e.ID()] = true
			return
		}
		at := tree.SourceInfo().GetStartLocation(e.ID())
		place := LineColumn{at.Line(), at.Column() + 1}
		typ := tree.GetType(operand.ID())
		if typ != nil && typ.Kind() == types.OpaqueKind && len(typ.Parameters()) == 1 { // an optional value
			typ = typ.Parameters()[0]
		}
		fields, published := t.shapes.lacks(typ.TypeName(), field)
		if fields == nil {
			out.Hits = append(out.Hits, place)
			return
		}
		missing[e.ID()] = true
		slices.Sort(fields)
		kind, path := kindOf(typ.TypeName())
		out.Misses = append(out.Misses, Miss{Kind: kind, Path: path, Field: field, Tested: tested, Published: published, Fields: fields, LineColumn: place})
	}))
}

// selection is what e reads a field of; nil where it reads none.
func selection(e ast.Expr) (operand ast.Expr, field string, tested bool) {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		return s.Operand(), s.FieldName(), s.IsTestOnly()
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == "_?._" && c.Args()[1].Kind() == ast.LiteralKind {
			name, _ := c.Args()[1].AsLiteral().Value().(string)
			return c.Args()[0], name, true
		}
	}
	return nil, "", false
}
