package apiserver

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"

	"github.com/kvap/kvap/vap"
)

// withoutLiterals is a text with empty strings for those that it has, if their
// content matters to no compiler: it decides neither a type nor whether there is
// an error. It matters where a function makes something of it before anything is
// evaluated; and how it is written where it has escapes, and how long it is.
func withoutLiterals(text string) (plain string, matter bool) {
	if slices.ContainsFunc(literalFunctions(), func(name string) bool { return callsOf(text, name) }) {
		return text, true
	}
	if len(text) > vap.MaxExpressionLength/2 || strings.ContainsAny(text, "\\`") || strings.Contains(text, "'''") || strings.Contains(text, `"""`) || strings.Contains(text, "//") {
		return text, false
	}
	var b strings.Builder
	for rest := text; ; {
		i := strings.IndexAny(rest, `'"`)
		if i < 0 {
			b.WriteString(rest)
			return b.String(), false
		}
		length := strings.IndexByte(rest[i+1:], rest[i])
		if length < 0 || strings.Contains(rest[i+1:i+1+length], "\n") || i > 0 && strings.ContainsRune("rRbB", rune(rest[i-1])) {
			return text, false
		}
		b.WriteString(rest[:i+1] + rest[i:i+1])
		rest = rest[i+length+2:]
	}
}

// literalFunctions make something of a literal before anything is evaluated.
func literalFunctions() []string {
	return []string{"matches", "find", "findAll", "bool", "bytes", "double", "duration", "int", "uint", "string", "timestamp"}
}

// makesOfConstants tells of an expression that calls such a function with what may be a
// constant.
func makesOfConstants(checked *ast.AST) (some bool) {
	functions := literalFunctions()
	constant := func(e ast.Expr) bool { return mayBeConstant(checked, e) }
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if some || e.Kind() != ast.CallKind || !slices.Contains(functions, e.AsCall().FunctionName()) {
			return
		}
		call := e.AsCall()
		some = slices.ContainsFunc(call.Args(), constant) || call.IsMemberFunction() && constant(call.Target())
	}))
	return some
}

// mayBeConstant tells that e may be worked out before anything is evaluated: a literal, a
// list or map of literals, a type, or what dyn makes of one of them. What another function
// makes of a literal need not be told: it is asked about itself.
func mayBeConstant(checked *ast.AST, e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind, ast.ListKind, ast.MapKind:
		return true
	case ast.CallKind:
		if e.AsCall().FunctionName() == overloads.TypeConvertDyn {
			return mayBeConstant(checked, e.AsCall().Args()[0])
		}
	}
	return checked.GetType(e.ID()).Kind() == types.TypeKind
}

// callsOf tells that a word is followed by a parenthesis, perhaps after blanks.
func callsOf(text, word string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, word)
		if !found {
			return false
		}
		if strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), "(") {
			return true
		}
		rest = after
	}
}
