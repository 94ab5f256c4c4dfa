package cellib

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"github.com/kvap/kvap/internal/budget"
)

// A World is what functions ask outside.
type World interface {
	// API asks the API server for a path; data, if not nil, is POSTed. found is false for
	// an object that does not exist.
	API(ctx context.Context, path string, data []byte) (answer []byte, found bool, err error)
	// Resource is the resource of a kind, as paths have it.
	Resource(ctx context.Context, apiVersion, kind string) (string, error)
	// Service asks a service.
	Service(ctx context.Context, call Call) (status int, answer []byte, err error)
	// Global is the data of a GlobalContextEntry; found is false where there is none of
	// the name.
	Global(ctx context.Context, name string) (data any, found bool, err error)
	// Metadata is what a registry knows of an image.
	Metadata(ctx context.Context, reference string) (map[string]any, error)
	// Call calls a function that policies have in JMESPath too.
	Call(name string, args ...any) (any, error)
	Now() time.Time
}

// A Call is a request to a service. Data, if not nil, is POSTed; CABundle, if not empty,
// names the authorities that are trusted.
type Call struct {
	URL      string
	Headers  map[string]string
	Data     []byte
	CABundle string
}

// A PolicyKind is what the policy is that an environment is for.
type PolicyKind struct {
	// Mutating tells of a policy that changes what it matches.
	Mutating bool
	// Generating tells of a policy that makes other objects.
	Generating bool
	// Images tells of a policy that verifies images.
	Images bool
	// Namespace confines the functions that read and write objects; "" does not.
	Namespace string
}

// A libraryFunction is a function, or a method if it has a receiver.
type libraryFunction struct {
	names  []string // all are the same function
	on     *cel.Type
	args   []*cel.Type
	result *cel.Type
	// has tells which kinds of policies have it; nil means all.
	has  func(PolicyKind) bool
	call call
	// unguarded leaves it to call what the values are: a list may have null in it in the
	// place of an object that does not exist, and only call can say so.
	unguarded bool
}

// A call is a function on Go values. The receiver of a method is the first of them.
type call func(w asker, args []any) (any, error)

// Options are the functions, variables and macros of a kind of policy, with Optionals.
func Options(kind PolicyKind, w World) []cel.EnvOption {
	out := append(Optionals(), ext.Bindings(), ext.Encoders(), ext.Math(), ext.Protos(), ext.Regex())
	ask := asker{w, kind.Namespace}
	for _, table := range [][]libraryFunction{objectFunctions(), outsideFunctions(), imageFunctions(), pureFunctions(), textFunctions(), generatorFunctions(), verifyFunctions()} {
		for _, e := range table {
			if e.has != nil && !e.has(kind) {
				continue
			}
			for _, name := range e.names {
				out = append(out, e.declare(name, ask))
			}
		}
	}
	if kind.Images {
		out = append(out, imageNames()...)
	}
	return out
}

func onlyImages(k PolicyKind) bool     { return k.Images }
func notImages(k PolicyKind) bool      { return !k.Images }
func onlyCluster(k PolicyKind) bool    { return k.Namespace == "" }
func onlyNamespaced(k PolicyKind) bool { return k.Namespace != "" }
func notGenerating(k PolicyKind) bool  { return !k.Generating }
func onlyMutating(k PolicyKind) bool   { return k.Mutating }

// both is a function with its name in both spellings, as in resource.Get and resource.get.
func both(receiver, name string) []string {
	dotted := func(name string) string {
		if receiver == "" {
			return name
		}
		return receiver + "." + name
	}
	return []string{dotted(name), dotted(strings.ToLower(name[:1]) + name[1:])}
}

// id is a name of an overload that no other has.
func (e libraryFunction) id(name string) string {
	id := "kyverno_" + strings.ReplaceAll(name, ".", "_")
	for _, t := range e.args {
		id += "_" + strings.NewReplacer("(", "_", ")", "", ",", "_", " ", "", ".", "_").Replace(t.String())
	}
	return id
}

func (e libraryFunction) declare(name string, w asker) cel.EnvOption {
	binding := cel.FunctionBinding(func(values ...ref.Val) ref.Val {
		plain := make([]any, len(values))
		for i, v := range values {
			if err := budget.CheckValue(v); err != nil {
				return types.WrapErr(err)
			}
			native, err := goData(v, 0)
			if err != nil {
				return types.NewErr("%s: argument %d: %v", name, i+1, err)
			}
			plain[i] = native
		}
		value, err := e.try(w, plain)
		if err != nil {
			return types.NewErr("%s: %v", strings.TrimPrefix(name, "@"), err) // of a macro, as it is written
		}
		return toCEL(value)
	})
	guards := decls.DisableTypeGuards(e.unguarded)
	if e.on != nil {
		return cel.Function(name, guards, cel.MemberOverload(e.id(name)+"_of_"+strings.ReplaceAll(e.on.TypeName(), ".", "_"), append([]*cel.Type{e.on}, e.args...), e.result, binding))
	}
	return cel.Function(name, guards, cel.Overload(e.id(name), e.args, e.result, binding))
}

// try calls a function. A value that is not of the type that the checker takes it for,
// because it is dynamic, is an error.
func (e libraryFunction) try(w asker, args []any) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("the arguments do not fit: %v", p)
		}
	}()
	return e.call(w, args)
}

// patience is how long the World is waited for. CEL has no way to hand a deadline
// on to a function.
const patience = 10 * time.Second

// An asker asks the World, and waits only so long. It is confined to a namespace unless
// that is empty.
type asker struct {
	World

	namespace string
}

func waiting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func textType() *cel.Type   { return cel.StringType }
func objectType() *cel.Type { return cel.MapType(cel.StringType, cel.DynType) }
func pairsType() *cel.Type  { return cel.MapType(cel.StringType, cel.StringType) }
