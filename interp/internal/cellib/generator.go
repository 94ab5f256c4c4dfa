package cellib

import (
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
)

// An Apply takes the objects that an expression wants to exist in a namespace. Its error is
// that of the expression.
type Apply func(namespace string, objects []any) error

// A generator is the receiver of the functions that say what is to exist. It is bound for
// each evaluation: what an expression wants is nobody else's.
type generator struct{ apply *Apply }

func generatorType() *cel.Type { return cel.OpaqueType("kyverno.generator") }

// GeneratorVariable declares the receiver.
func GeneratorVariable() cel.EnvOption { return cel.Variable("generator", generatorType()) }

// Generator is the receiver for one evaluation.
func Generator(f Apply) ref.Val { return opaque{generatorType(), generator{&f}} }

// generatorFunctions are those of a policy that makes objects. One of a namespace makes
// them there.
func generatorFunctions() []libraryFunction {
	objects := cel.ListType(objectType())
	names := []string{"Apply", "apply"}
	return []libraryFunction{
		{names: names, on: generatorType(), args: []*cel.Type{textType(), objects}, result: cel.BoolType, unguarded: true, has: func(k PolicyKind) bool {
			return k.Generating && k.Namespace == ""
		}, call: func(_ asker, args []any) (any, error) { return applied(args[0], args[1].(string), args[2]) }},
		{names: names, on: generatorType(), args: []*cel.Type{objects}, result: cel.BoolType, unguarded: true, has: func(k PolicyKind) bool {
			return k.Generating && k.Namespace != ""
		}, call: func(w asker, args []any) (any, error) { return applied(args[0], w.namespace, args[1]) }},
	}
}

func applied(receiver any, namespace string, objects any) (any, error) {
	g, ok := receiver.(generator)
	if !ok {
		return nil, errors.New("there is no generator")
	}
	return true, (*g.apply)(namespace, objects.([]any))
}

// Data is a CEL value as Go data.
func Data(v ref.Val) (any, error) { return goData(v, 0) }
