package apiserver

import (
	"regexp"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/budget"
)

// What the API server allows evaluation to cost.
const (
	ExpressionBudget     = celconfig.PerCallLimit                        // one expression
	PolicyBudget         = celconfig.RuntimeCELCostBudget                // all validations and messages
	MatchConditionBudget = celconfig.RuntimeCELCostBudgetMatchConditions // all match conditions
)

// A Meter counts what evaluating expressions costs, as the API server counts it. It
// reads maps in the order of their keys, so that it counts the same each time.
type Meter struct {
	env      *celgo.Env
	programs map[string]celgo.Program
	patterns map[string]*regexp.Regexp // by text
}

// NewMeter makes a meter for any number of expressions.
func NewMeter() (*Meter, error) {
	base := environment.MustBaseEnvSet(version.MajorMinor(1, uint(cel.Latest))).StoredExpressionsEnv()
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	known := apiservercel.NewDeclTypeProvider(request, namespace)
	provided, err := known.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	options := []celgo.EnvOption{
		celgo.Variable(plugincel.RequestVarName, request.CelType()),
		celgo.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		celgo.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
		celgo.Variable(plugincel.RequestResourceAuthorizerVarName, library.ResourceCheckType),
	}
	for _, name := range []string{plugincel.ObjectVarName, plugincel.OldObjectVarName, plugincel.ParamsVarName, plugincel.VariableVarName} {
		options = append(options, celgo.Variable(name, celgo.DynType))
	}
	options = append(options, provided...)
	options = append(options, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch))
	env, err := base.Extend(options...)
	if err != nil {
		return nil, err
	}
	env, err = env.Extend(celgo.CustomTypeAdapter(inOrder{env.CELTypeAdapter()}))
	return &Meter{env, map[string]celgo.Program{}, map[string]*regexp.Regexp{}}, err
}

// regexes has each pattern compiled once that is not written as the argument of
// matches() itself, for instance the elements of a list. CEL compiles such a pattern
// anew for each text. The cost is counted by its length all the same.
func regexes(patterns map[string]*regexp.Regexp) interpreter.InterpretableDecoratorV2 {
	matches := func(args ...ref.Val) ref.Val {
		text, isText := args[0].(types.String)
		pattern, ok := args[1].(types.String)
		if !isText || !ok {
			return types.NoSuchOverloadErr()
		}
		r := patterns[string(pattern)]
		if r == nil {
			var err error
			if r, err = regexp.Compile(string(pattern)); err != nil {
				return types.WrapErr(err)
			}
			patterns[string(pattern)] = r
		}
		return types.Bool(r.MatchString(string(text)))
	}
	return func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || call.Function() != overloads.Matches || len(call.Args()) != 2 {
			return i, nil
		}
		if _, written := call.Args()[1].(interpreter.InterpretableConst); written {
			return i, nil
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), matches), nil
	}
}

// A Reading is what an evaluation gave.
type Reading struct {
	Value any // to be given to Variables; an error is a value too
	Cost  int64
	Err   error
}

// Measure evaluates an expression, and gives nothing for one that does not compile.
// It stops where the API server does. vars are what the expression may read, as plain
// data; variables holds the Values of readings.
func (m *Meter) Measure(text string, vars map[string]any) Reading {
	program, ok := m.programs[text]
	if !ok {
		program = m.compile(text)
		m.programs[text] = program
	}
	if program == nil {
		return Reading{Value: types.NewErr("the expression does not compile")}
	}
	value, details, err := program.Eval(vars)
	r := Reading{Value: value, Err: err}
	if err != nil {
		r.Value = types.WrapErr(err)
	}
	if details != nil && details.ActualCost() != nil {
		r.Cost = int64(min(*details.ActualCost(), 1<<62))
	}
	return r
}

// Decide is whether a condition holds; ok is false where it is an error, or no condition.
func (m *Meter) Decide(text string, vars map[string]any) (holds, ok bool) {
	value, ok := m.Measure(text, vars).Value.(types.Bool)
	return bool(value), ok
}

func (m *Meter) compile(text string) celgo.Program {
	tree, issues := m.env.Compile(text)
	if issues.Err() != nil {
		return nil
	}
	program, err := m.env.Program(tree, celgo.CostLimit(ExpressionBudget), celgo.CostTracking(&library.CostEstimator{}),
		celgo.CustomDecoratorV2(literalsInOrder), budget.Texts(),
		celgo.OptimizeRegex(interpreter.MatchesRegexOptimization), celgo.CustomDecoratorV2(regexes(m.patterns))) // these cost the same
	if err != nil {
		return nil
	}
	return program
}

// Authorizers are the two variables that ask for permissions; whoever is asked has no
// opinion.
func Authorizers() map[string]any {
	nobody := &user.DefaultInfo{Name: "somebody"}
	return map[string]any{
		plugincel.AuthorizerVarName:                library.NewAuthorizerVal(nobody, noOpinion{}),
		plugincel.RequestResourceAuthorizerVarName: types.NewErr("no resource"),
	}
}
