package interp

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// toOptional cannot be written in an expression.
const toOptional = "@optional"

// lenientOptionals make x.orValue(y) the value x where x is not optional, as Kyverno
// has it. For the API server of 1.37 that is an error.
func lenientOptionals() environment.VersionedOptions {
	return environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []celgo.EnvOption{
		celgo.Function(toOptional, celgo.Overload("any_to_optional", []*celgo.Type{celgo.DynType}, celgo.DynType, celgo.UnaryBinding(asOptional))),
		celgo.Macros(celgo.ReceiverMacro("orValue", 1, func(f celgo.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *celgo.Error) {
			return f.NewMemberCall("orValue", f.NewCall(toOptional, target), args[0]), nil
		})),
	}}
}

func asOptional(v ref.Val) ref.Val {
	if o, ok := v.(*types.Optional); ok {
		return o
	}
	return types.OptionalOf(v)
}
