package apiserver

import (
	"fmt"
	"sync"

	celgo "github.com/google/cel-go/cel"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/kvap/kvap/internal/budget"
)

// A compiler is that of k8s.io/apiserver/pkg/admission/plugin/cel for expressions that
// are stored, save that it makes an environment when an expression needs it: the API
// server's makes all that there may be, each twice, which takes longer than to compile
// a policy. It is safe for concurrent use once the variables are declared.
type compiler struct {
	variables *apiservercel.DeclType // nil for expressions that speak of none
	mu        sync.Mutex
	envs      map[plugincel.OptionalVariableDeclarations]*celgo.Env
}

func newCompiler(variables *apiservercel.DeclType) *compiler {
	return &compiler{variables: variables, envs: map[plugincel.OptionalVariableDeclarations]*celgo.Env{}}
}

// CompileCondition compiles a list; nil stays out of it.
func (c *compiler) CompileCondition(list []plugincel.ExpressionAccessor, o plugincel.OptionalVariableDeclarations, mode environment.Type) plugincel.ConditionEvaluator {
	results := make([]plugincel.CompilationResult, len(list))
	for i, e := range list {
		if e != nil {
			results[i] = c.CompileCELExpression(e, o, mode)
		}
	}
	return plugincel.NewCondition(results)
}

// CompileCELExpression compiles an expression. What is wrong with it is in the result.
func (c *compiler) CompileCELExpression(e plugincel.ExpressionAccessor, o plugincel.OptionalVariableDeclarations, _ environment.Type) plugincel.CompilationResult {
	failed := func(kind apiservercel.ErrorType, cause error, format string, args ...any) plugincel.CompilationResult {
		return plugincel.CompilationResult{ExpressionAccessor: e, Error: &apiservercel.Error{Type: kind, Detail: fmt.Sprintf(format, args...), Cause: cause}}
	}
	env, err := c.env(o)
	if err != nil {
		return failed(apiservercel.ErrorTypeInternal, nil, "unexpected error loading CEL environment: %v", err)
	}
	tree, issues := env.Compile(e.GetExpression())
	if issues != nil {
		return failed(apiservercel.ErrorTypeInvalid, apiservercel.NewCompilationError(issues), "compilation failed: %s", issues)
	}
	if types := e.ReturnTypes(); !isOneOf(tree.OutputType(), types) {
		if len(types) == 1 {
			return failed(apiservercel.ErrorTypeInvalid, nil, "must evaluate to %v but got %v", types[0], tree.OutputType())
		}
		return failed(apiservercel.ErrorTypeInvalid, nil, "must evaluate to one of %v but got %v", types, tree.OutputType())
	}
	program, err := env.Program(tree, celgo.InterruptCheckFrequency(celconfig.CheckFrequency), budget.Texts())
	if err != nil {
		return failed(apiservercel.ErrorTypeInternal, nil, "program instantiation failed: %s", err)
	}
	return plugincel.CompilationResult{Program: program, ExpressionAccessor: e, OutputType: tree.OutputType()}
}

func isOneOf(t *celgo.Type, types []*celgo.Type) bool {
	for _, want := range types {
		if t.IsExactType(want) || celgo.AnyType.IsExactType(want) {
			return true
		}
	}
	return false
}

func (c *compiler) env(o plugincel.OptionalVariableDeclarations) (*celgo.Env, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if env, ok := c.envs[o]; ok {
		return env, nil
	}
	r := reach{params: o.HasParams, authorizer: o.HasAuthorizer, variables: c.variables != nil, patches: o.HasPatchTypes}
	env, err := extend(baseEnvironment().StoredExpressionsEnv(), r, true, c.variables, celgo.Lib(costs{}))
	if err == nil {
		c.envs[o] = env
	}
	return env, err
}

// baseEnvironment is what an API server extends for its policies.
func baseEnvironment() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// costs has programs count what they cost.
type costs struct{}

// CompileOptions are none.
func (costs) CompileOptions() []celgo.EnvOption { return environment.StrictCostOpt.EnvOptions }

// ProgramOptions are those of the API server.
func (costs) ProgramOptions() []celgo.ProgramOption { return environment.StrictCostOpt.ProgramOptions }
