package cellib

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// asOptional makes a value that is no optional one that has it.
const asOptional = "@asOptional"

// Optionals let orValue and or be asked of any value, which then is the result:
// so they do in the CEL of Kyverno's release. In younger ones it is an error.
func Optionals() []cel.EnvOption {
	v := cel.TypeParamType("V")
	// The second overload makes the type of a dynamic value stay dynamic.
	plain := cel.OpaqueType("kvap.plain")
	return []cel.EnvOption{
		cel.Function(asOptional,
			cel.Overload("as_optional_of_optional", []*cel.Type{cel.OptionalType(v)}, cel.OptionalType(v)),
			cel.Overload("as_optional_of_plain", []*cel.Type{plain}, plain),
			cel.SingletonUnaryBinding(func(v ref.Val) ref.Val {
				if o, ok := v.(*types.Optional); ok {
					return o
				}
				return types.OptionalOf(v)
			}),
		),
		cel.Macros(asked("orValue"), asked("or")),
	}
}

// asked is the macro that makes the target of a method an optional.
func asked(method string) cel.Macro {
	return cel.ReceiverMacro(method, 1, func(mef cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		return mef.NewMemberCall(method, mef.NewCall(asOptional, target), args[0]), nil
	})
}
