package interp

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp/internal/cellib"
)

// plainEnvironment is what policies are compiled with that make objects: not the API
// server's, which refuses {"kind": "ConfigMap", "data": {"a": "b"}} for its mixed types.
// It has no authorizer, and no comprehensions with two variables.
func (in *Interpreter) plainEnvironment(kind cellib.PolicyKind, variables *apiservercel.DeclType) (*cel.Env, error) {
	names := celNames(true)
	options := []cel.EnvOption{
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(),
		library.URLs(), library.Regex(), library.Lists(library.ListsVersion(0)), library.Quantity(), library.IP(), library.CIDR(), library.Format(),
		library.SemverLib(library.SemverVersion(1)),
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), ext.Lists(ext.ListsVersion(3)),
	}
	options = append(options, cellib.Options(kind, celWorld{in.world, kind.Namespace})...)
	options = append(options, cellib.GeneratorVariable(), cel.Variable("variables", variables.CelType()))
	options = append(options, names.EnvOptions...)
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	provider := apiservercel.NewDeclTypeProvider(append(names.DeclTypes, variables)...)
	provider.SetRecognizeKeywordAsFieldName(true)
	types, err := provider.EnvOptions(env.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	return env.Extend(types...)
}

// plainPrograms are how what is compiled so is evaluated.
func plainPrograms() []cel.ProgramOption {
	return []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize), budget.Texts()}
}
