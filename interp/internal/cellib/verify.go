package cellib

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types/ref"
)

// Images answers what an ImageValidatingPolicy asks of the images of one request.
type Images interface {
	// Signatures is how many attestors, by their names, signed an image.
	Signatures(image string, by []string) (int, error)
	// Attestations is how many of them attest of it what has a name in the policy.
	Attestations(image, attestation string, by []string) (int, error)
	// Payload is what was attested, where Attestations has proven it.
	Payload(image, attestation string) (any, error)
	// Data is what a registry knows of an image, with the names that GetMetadata has for it.
	Data(image string) (map[string]any, error)
}

// imagesName is what the Images of a request are under in a scope. No expression can name it:
// macros hand it to the functions that ask them.
//
//	verifyImageSignatures(i, [attestors.k1])    @verifyImageSignatures(@images, i, [attestors.k1])
const imagesName = "@images"

func imagesType() *cel.Type   { return cel.OpaqueType("kyverno.images") }
func attestorType() *cel.Type { return cel.OpaqueType("kyverno.attestor") }

// An attestor is one of the policy, and nothing that an expression can make of a text.
type attestor struct{ name string }

// An imagesValue is Images as a value.
type imagesValue struct{ of Images }

// ImageScope is what the functions and variables of an ImageValidatingPolicy have in a scope.
func ImageScope(of Images, attestors, attestations []string) map[string]any {
	by, named := map[string]ref.Val{}, map[string]string{}
	for _, name := range attestors {
		by[name] = opaque{attestorType(), attestor{name}}
	}
	for _, name := range attestations {
		named[name] = name
	}
	return map[string]any{imagesName: opaque{imagesType(), imagesValue{of}}, "attestors": by, "attestations": named}
}

// imageNames are the variables and macros of an ImageValidatingPolicy.
func imageNames() []cel.EnvOption {
	handed := func(name string, args int) cel.Macro {
		return cel.GlobalMacro(name, args, func(f cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			return f.NewCall("@"+name, append([]ast.Expr{f.NewIdent(imagesName)}, args...)...), nil
		})
	}
	metadata := func(name string) cel.Macro {
		return cel.ReceiverMacro(name, 1, func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
			if target.Kind() != ast.IdentKind || target.AsIdent() != "image" {
				return nil, nil
			}
			return f.NewCall("@getImageMetadata", f.NewIdent(imagesName), args[0]), nil
		})
	}
	return []cel.EnvOption{
		cel.Variable(imagesName, imagesType()),
		cel.Variable("images", cel.MapType(cel.StringType, cel.ListType(cel.StringType))),
		cel.Variable("attestors", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("attestations", cel.MapType(cel.StringType, cel.StringType)),
		cel.Macros(
			handed("verifyImageSignatures", 2), handed("verifyAttestationSignatures", 3), handed("extractPayload", 2), handed("getImageData", 1),
			metadata("GetMetadata"), metadata("getMetadata"),
		),
	}
}

// verifyFunctions ask the Images of a request.
func verifyFunctions() []libraryFunction {
	of := func(args ...*cel.Type) []*cel.Type { return append([]*cel.Type{imagesType()}, args...) }
	attestors := cel.ListType(cel.DynType)
	return []libraryFunction{
		{names: []string{"@verifyImageSignatures"}, args: of(textType(), attestors), result: cel.IntType, has: onlyImages, call: func(_ asker, args []any) (any, error) {
			by, err := attestorsOf(args[2])
			if err != nil {
				return nil, err
			}
			return args[0].(imagesValue).of.Signatures(args[1].(string), by)
		}},
		{names: []string{"@verifyAttestationSignatures"}, args: of(textType(), textType(), attestors), result: cel.IntType, has: onlyImages, call: func(_ asker, args []any) (any, error) {
			by, err := attestorsOf(args[3])
			if err != nil {
				return nil, err
			}
			return args[0].(imagesValue).of.Attestations(args[1].(string), args[2].(string), by)
		}},
		{names: []string{"@extractPayload"}, args: of(textType(), textType()), result: cel.DynType, has: onlyImages, call: func(_ asker, args []any) (any, error) {
			return args[0].(imagesValue).of.Payload(args[1].(string), args[2].(string))
		}},
		{names: []string{"@getImageData"}, args: of(textType()), result: cel.DynType, has: onlyImages, call: func(_ asker, args []any) (any, error) {
			found, err := args[0].(imagesValue).of.Data(args[1].(string))
			return metadataOf(args[1].(string), found, func(value any) any { return value }), err
		}},
		{names: []string{"@getImageMetadata"}, args: of(textType()), result: cel.DynType, has: onlyImages, call: func(_ asker, args []any) (any, error) {
			found, err := args[0].(imagesValue).of.Data(args[1].(string))
			return metadataOf(args[1].(string), found, doubles), err
		}},
	}
}

func attestorsOf(list any) (names []string, err error) {
	items, _ := list.([]any)
	for _, item := range items {
		one, ok := item.(attestor)
		if !ok {
			return nil, fmt.Errorf("%v is no attestor; write attestors and its name", item)
		}
		names = append(names, one.name)
	}
	return names, nil
}
