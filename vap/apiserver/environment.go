package apiserver

import (
	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"
)

// A reach is what an expression may read besides the request and its objects.
type reach struct{ params, authorizer, variables, patches bool }

// extend adds to an environment what expressions may read, as createEnvForOpts and
// NewCompositedCompiler of k8s.io/apiserver/pkg/admission/plugin/cel do. keywords tells
// that fields may be called as CEL's reserved words are. variables is the type of the
// variables of a policy, which grows with each that is declared.
func extend(base *celgo.Env, r reach, keywords bool, variables *apiservercel.DeclType, more ...celgo.EnvOption) (*celgo.Env, error) {
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	declared := []*apiservercel.DeclType{namespace, request}
	options := []celgo.EnvOption{
		celgo.Variable(plugincel.ObjectVarName, celgo.DynType),
		celgo.Variable(plugincel.OldObjectVarName, celgo.DynType),
		celgo.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		celgo.Variable(plugincel.RequestVarName, request.CelType()),
	}
	if r.params {
		options = append(options, celgo.Variable(plugincel.ParamsVarName, celgo.DynType))
	}
	if r.authorizer {
		options = append(options, celgo.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
			celgo.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType))
	}
	if r.variables {
		options = append(options, celgo.Variable(plugincel.VariableVarName, variables.CelType()))
		declared = append(declared, variables)
	}
	types := apiservercel.NewDeclTypeProvider(declared...)
	types.SetRecognizeKeywordAsFieldName(keywords)
	provided, err := types.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	if r.patches {
		provided = append(provided, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch))
	}
	return base.Extend(append(append(options, provided...), more...)...)
}

// noVariables is the type of the variables of a policy before the first.
func noVariables() *apiservercel.DeclType {
	return apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})
}

// declare makes a variable known to the expressions after it, as the API server's
// compiler does. What cannot be said of its type is dynamic.
func declare(variables *apiservercel.DeclType, name string, t *celgo.Type) *apiservercel.DeclType {
	declared := declTypeOf(t)
	variables.Fields[name] = apiservercel.NewDeclField(name, declared, true, nil, nil)
	return declared
}

// declTypeOf is the type of a variable, as the API server's compiler keeps it: what
// it cannot say is dynamic.
func declTypeOf(t *celgo.Type) *apiservercel.DeclType {
	if t == nil {
		return apiservercel.DynType
	}
	for _, plain := range []*apiservercel.DeclType{
		apiservercel.AnyType, apiservercel.BoolType, apiservercel.BytesType, apiservercel.DoubleType, apiservercel.DurationType, apiservercel.IntType,
		apiservercel.NullType, apiservercel.StringType, apiservercel.TimestampType, apiservercel.UintType,
	} {
		if t == plain.CelType() {
			return plain
		}
	}
	if !t.HasTrait(traits.ContainerType) || !t.HasTrait(traits.IndexerType) {
		return apiservercel.DynType
	}
	switch p := t.Parameters(); len(p) {
	case 1:
		return apiservercel.NewListType(declTypeOf(p[0]), -1)
	case 2:
		return apiservercel.NewMapType(declTypeOf(p[0]), declTypeOf(p[1]), -1)
	}
	return apiservercel.DynType
}
