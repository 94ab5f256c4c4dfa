package apiserver

import (
	"fmt"
	"testing"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/environment"
)

// What the judge compiles with says the same as the API server's own compiler.
func TestCompilerIsTheServers(t *testing.T) {
	upstream, err := plugincel.NewCompositedCompiler(baseEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	own := newCompiler(noVariables())
	all := plugincel.OptionalVariableDeclarations{HasParams: true, HasAuthorizer: true}
	for _, v := range []validating.Variable{
		{Name: "names", Expression: "object.spec.containers.map(c, string(c.name))"},
		{Name: "wrong", Expression: "object.spec +"},
		{Name: "limit", Expression: "quantity('1Gi')"},
		{Name: "count", Expression: "size(variables.names)"},
	} {
		want := upstream.CompileAndStoreVariable(&v, all, environment.StoredExpressions)
		got := own.CompileCELExpression(&v, all, environment.StoredExpressions)
		declare(own.variables, v.Name, got.OutputType)
		sameCompilation(t, v.Expression, got, want)
	}
	options := []plugincel.OptionalVariableDeclarations{{}, {HasParams: true}, {HasAuthorizer: true}, all}
	for _, text := range []string{
		"true", "1", "object.x == oldObject.x", "params.data.x == 'a'", "request.namespace == namespaceObject.metadata.name", "request.nothing == ''",
		"namespaceObject.metadata.namespace == ''", "variables.count > 1", "variables.names.exists(n, n > 1)", "variables.limit.isGreaterThan(quantity('1'))",
		"variables.wrong", "variables.other", "authorizer.group('').resource('pods').check('get').allowed()",
		"authorizer.requestResource.check('get').allowed()", "has(object.namespace) && object.in == 1", "matches('a', '[')", "[1, 2].sum() > 2", "{", "",
	} {
		for _, o := range options {
			e := &validating.ValidationCondition{Expression: text}
			what := fmt.Sprintf("%s %+v", text, o)
			sameCompilation(t, what, own.CompileCELExpression(e, o, environment.StoredExpressions), upstream.CompileCELExpression(e, o, environment.StoredExpressions))
		}
	}
}

func sameCompilation(t *testing.T, what string, got, want plugincel.CompilationResult) {
	t.Helper()
	if got.ExpressionAccessor != want.ExpressionAccessor || (got.Program == nil) != (want.Program == nil) {
		t.Errorf("%s: program %v, want %v", what, got.Program, want.Program)
	}
	if fmt.Sprint(got.OutputType) != fmt.Sprint(want.OutputType) {
		t.Errorf("%s is of type %v, want %v", what, got.OutputType, want.OutputType)
	}
	said := func(r plugincel.CompilationResult) string {
		if r.Error == nil {
			return ""
		}
		return fmt.Sprint(r.Error.Type, " ", r.Error)
	}
	if said(got) != said(want) {
		t.Errorf("%s: %s\nwant %s", what, said(got), said(want))
	}
}
