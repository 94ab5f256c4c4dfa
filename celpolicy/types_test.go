package celpolicy_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/policy"
)

// kyvernoTypes is what Kyverno compiles expressions in, as far as types go: orValue takes
// anything, and gives a value of which nobody knows the type.
func kyvernoTypes(t *testing.T, mutates bool, variables map[string]*apiservercel.DeclField) *celgo.Env {
	t.Helper()
	const orValue = "@orValue"
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	for _, name := range []string{"object", "oldObject"} {
		request.Fields[name] = apiservercel.NewDeclField(name, apiservercel.DynType, false, nil, nil)
	}
	fields := apiservercel.NewObjectType("kubernetes.variables", variables)
	resource := celgo.ObjectType("resource")
	of := []*celgo.Type{resource, celgo.StringType, celgo.StringType, celgo.StringType, celgo.StringType}
	image, global := celgo.ObjectType("image"), celgo.ObjectType("globalContext")
	labels := celgo.MapType(celgo.StringType, celgo.StringType)
	options := []celgo.EnvOption{
		celgo.Variable("object", celgo.DynType), celgo.Variable("oldObject", celgo.DynType), celgo.Variable("request", request.CelType()),
		celgo.Variable("namespaceObject", namespace.CelType()), celgo.Variable("variables", fields.CelType()),
		celgo.Variable("resource", resource), celgo.Variable("image", image), celgo.Variable("globalContext", global), ext.Bindings(),
		celgo.Function("random", celgo.Overload("random_text", []*celgo.Type{celgo.StringType}, celgo.StringType)),
		celgo.Function("GetMetadata", celgo.MemberOverload("metadata", []*celgo.Type{image, celgo.StringType}, celgo.DynType)),
		celgo.Function("Get",
			celgo.MemberOverload("get_of_cluster", of, celgo.MapType(celgo.StringType, celgo.DynType)),
			celgo.MemberOverload("get_of_namespace", of[:4], celgo.MapType(celgo.StringType, celgo.DynType)),
			celgo.MemberOverload("get_global", []*celgo.Type{global, celgo.StringType}, celgo.DynType),
			celgo.MemberOverload("get_projection", []*celgo.Type{global, celgo.StringType, celgo.StringType}, celgo.DynType)),
		celgo.Function("List",
			celgo.MemberOverload("list_of_cluster", of[:4], celgo.MapType(celgo.StringType, celgo.DynType)),
			celgo.MemberOverload("list_of_cluster_labelled", append(of[:4:4], labels), celgo.MapType(celgo.StringType, celgo.DynType)),
			celgo.MemberOverload("list_of_namespace", of[:3], celgo.MapType(celgo.StringType, celgo.DynType)),
			celgo.MemberOverload("list_of_namespace_labelled", append(of[:3:3], labels), celgo.MapType(celgo.StringType, celgo.DynType))),
		celgo.Function(orValue, celgo.Overload("or_value", []*celgo.Type{celgo.DynType, celgo.DynType}, celgo.DynType,
			celgo.BinaryBinding(func(x, _ ref.Val) ref.Val { return x }))),
		celgo.Macros(celgo.ReceiverMacro("orValue", 1, func(mef celgo.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *celgo.Error) {
			return mef.NewCall(orValue, target, args[0]), nil
		})),
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), DeclTypes: []*apiservercel.DeclType{request, namespace, fields}, EnvOptions: options,
	})
	if err == nil && mutates {
		set, err = set.Extend(environment.VersionedOptions{
			IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: []celgo.EnvOption{common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), library.JSONPatch()},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	env, err := set.Env(environment.StoredExpressions)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// Every expression has the type that Kyverno insists on when it compiles the policy.
func TestTypes(t *testing.T) {
	for _, f := range fixtures.All() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			for _, p := range convertFixture(t, f).made {
				checkTypes(t, p)
			}
		})
	}
	const corpus = "../../shared/corpus"
	for _, part := range []string{"policies", "mutate"} {
		err := filepath.WalkDir(filepath.Join(corpus, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return nil //nolint:nilerr // there is no corpus
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				for _, p := range convertFixture(t, fixtures.Fixture{Name: path, Policy: text}).made {
					checkTypes(t, p)
				}
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func checkTypes(t *testing.T, p *policy.Policy) {
	t.Helper()
	variables := map[string]*apiservercel.DeclField{}
	compiled := func(text string, want *celgo.Type) *celgo.Type {
		tree, issues := kyvernoTypes(t, p.Mutating != nil, variables).Compile(text)
		if issues.Err() != nil {
			t.Errorf("%s: %v", p.Name, issues.Err())
			return types.DynType
		}
		if want != nil && !tree.OutputType().IsExactType(want) {
			t.Errorf("%s: the type is %s, want %s: %s", p.Name, tree.OutputType(), want, text)
		}
		return tree.OutputType()
	}
	if m := p.Mutating; m != nil {
		for _, v := range m.Variables {
			variables[v.Name] = apiservercel.NewDeclField(v.Name, declared(compiled(v.Expression, nil)), true, nil, nil)
		}
		for _, c := range m.MatchConditions {
			compiled(c.Expression, celgo.BoolType)
		}
		if m.TargetExpression != "" {
			compiled(m.TargetExpression, celgo.MapType(celgo.StringType, celgo.DynType))
		}
		for _, c := range m.TargetConditions {
			compiled(c.Expression, celgo.BoolType)
		}
		for _, one := range m.Mutations {
			want := celgo.ObjectType(mutation.ObjectTypeName)
			if one.PatchType == policy.JSONPatch {
				want = celgo.ListType(celgo.ObjectType(mutation.JSONPatchTypeName))
			}
			compiled(one.Expression, want)
		}
		return
	}
	for _, c := range p.Validating.MatchConditions {
		compiled(c.Expression, celgo.BoolType)
	}
	for _, v := range p.Validating.Variables {
		variables[v.Name] = apiservercel.NewDeclField(v.Name, declared(compiled(v.Expression, nil)), true, nil, nil)
	}
	for _, v := range p.Validating.Validations {
		compiled(v.Expression, celgo.BoolType)
		if v.MessageExpression != "" {
			compiled(v.MessageExpression, celgo.StringType)
		}
	}
}

// declared is a type as the type of variables has it.
func declared(of *celgo.Type) *apiservercel.DeclType {
	for _, d := range []*apiservercel.DeclType{apiservercel.BoolType, apiservercel.StringType, apiservercel.IntType} {
		if of.IsExactType(d.CelType()) {
			return d
		}
	}
	if of.Kind() == types.ListKind {
		return apiservercel.NewListType(declared(of.Parameters()[0]), -1)
	}
	return apiservercel.DynType
}
