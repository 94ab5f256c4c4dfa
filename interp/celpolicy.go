package interp

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/lazy"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/interp/internal/cellib"
)

// A celPolicy is what the expressions of a policy that is written in CEL are compiled
// with, and its variables.
type celPolicy struct {
	env       *cel.Env
	options   []cel.ProgramOption    // beside those of the environment
	fields    *apiservercel.DeclType // of variables, with a field for each that is compiled
	variables []celVariable
}

type celVariable struct {
	name    string
	program cel.Program
}

// variablesType is the name of the type of variables, as the API server has it.
const variablesType = "kubernetes.variables"

// celPolicy is made for a policy of a kind, of a namespace or of the cluster.
func (in *Interpreter) celPolicy(kind cellib.PolicyKind) (*celPolicy, error) {
	fields := apiservercel.NewObjectType(variablesType, map[string]*apiservercel.DeclField{})
	if kind.Generating {
		env, err := in.plainEnvironment(kind, fields)
		return &celPolicy{env: env, options: plainPrograms(), fields: fields}, err
	}
	set, err := in.environment(kind)
	if err != nil {
		return nil, err
	}
	set, err = set.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), DeclTypes: []*apiservercel.DeclType{fields},
		EnvOptions: []cel.EnvOption{cel.Variable("variables", fields.CelType())},
	})
	if err != nil {
		return nil, err
	}
	env, err := set.Env(environment.StoredExpressions)
	return &celPolicy{env: env, fields: fields}, err
}

// compile compiles an expression, which must be of exactly that type: a dynamic value is
// no boolean. Without a type any will do.
func (c *celPolicy) compile(expression string, want *cel.Type) (cel.Program, error) {
	program, of, err := c.program(expression)
	if err == nil && want != nil && !of.IsExactType(want) {
		return nil, fmt.Errorf("%q must evaluate to %s, not to %s", expression, want, of)
	}
	return program, err
}

func (c *celPolicy) program(expression string) (cel.Program, *cel.Type, error) {
	ast, issues := c.env.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, fmt.Errorf("compilation failed: %w", issues.Err())
	}
	program, err := c.env.Program(ast, append(slices.Clone(c.options), cel.InterruptCheckFrequency(celconfig.CheckFrequency))...)
	return program, ast.OutputType(), err
}

// define compiles a variable, which may use those before it.
func (c *celPolicy) define(name, expression string) error {
	program, of, err := c.program(expression)
	if err != nil {
		return fmt.Errorf("variable %s: %w", name, err)
	}
	c.fields.Fields[name] = apiservercel.NewDeclField(name, declTypeOf(of), true, nil, nil)
	c.variables = append(c.variables, celVariable{name, program})
	return nil
}

// declTypeOf is a type as the type of variables has it. What it cannot say is dynamic.
func declTypeOf(t *cel.Type) *apiservercel.DeclType {
	for _, d := range []*apiservercel.DeclType{
		apiservercel.AnyType, apiservercel.BoolType, apiservercel.BytesType, apiservercel.DoubleType, apiservercel.DurationType,
		apiservercel.IntType, apiservercel.NullType, apiservercel.StringType, apiservercel.TimestampType, apiservercel.UintType,
	} {
		if t.IsExactType(d.CelType()) {
			return d
		}
	}
	if t.HasTrait(traits.ContainerType) && t.HasTrait(traits.IndexerType) {
		switch of := t.Parameters(); len(of) {
		case 1:
			return apiservercel.NewListType(declTypeOf(of[0]), -1)
		case 2:
			return apiservercel.NewMapType(declTypeOf(of[0]), declTypeOf(of[1]), -1)
		}
	}
	if isPatchType(t) {
		return apiservercel.NewObjectType(t.TypeName(), nil)
	}
	return apiservercel.DynType
}

// A celScope is what the names in expressions stand for.
type celScope map[string]any

// with are the variables of a policy in a scope. Each is evaluated when it is first
// asked for, and once.
func (s celScope) with(ctx context.Context, c *celPolicy) celScope {
	of := lazy.NewMapValue(types.NewObjectType(variablesType))
	for _, v := range c.variables {
		of.Append(v.name, func(*lazy.MapValue) ref.Val {
			out, err := s.eval(ctx, v.program)
			if err != nil {
				return types.NewErr("composited variable %q fails to evaluate: %v", v.name, err)
			}
			return out
		})
	}
	s["variables"] = of
	return s
}

func (s celScope) eval(ctx context.Context, program cel.Program) (ref.Val, error) {
	out, _, err := program.ContextEval(ctx, map[string]any(s))
	if err != nil {
		return nil, err
	}
	return out, budget.CheckValue(out)
}

// all tells whether conditions are all true. They are looked at up to the first that is
// false; an error counts unless one is.
func (s celScope) all(ctx context.Context, conditions []cel.Program) (bool, error) {
	var bad error
	for _, c := range conditions {
		out, err := s.eval(ctx, c)
		switch {
		case err != nil && bad == nil:
			bad = err
		case err == nil && out != types.True:
			return false, nil
		}
	}
	return bad == nil, bad
}
