package vap

import (
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/kvap/kvap/cel"
)

// A Checker validates policies for one release, any number of them, one after the
// other. It makes each environment that it needs once: the API server's compiler
// makes them all anew for each policy, which takes longer than the compiling.
type Checker struct {
	base      *environment.EnvSet
	version   *version.Version
	variables *apiservercel.DeclType // those of the policy at hand
	declared  string                 // they once more, as text
	envs      map[reach]*celgo.Env
	known     map[known]compilation
}

// A reach is what an expression may read besides the request and its objects.
type reach struct{ params, authorizer, variables, patches bool }

// known is a text with all that it may mean: what it may read, and the types of the
// variables so far. Policies that say the same share what came of it.
type known struct {
	text     string
	reach    reach
	declared string
}

// NewChecker makes a checker for a release: for expressions that are new there,
// which know what the release before it knew.
func NewChecker(release cel.Release) *Checker {
	v := version.MajorMinor(1, uint(release)-1)
	return &Checker{
		base: environment.MustBaseEnvSet(v), version: v,
		variables: apiservercel.NewObjectType("kubernetes.variables", map[string]*apiservercel.DeclField{}),
		envs:      map[reach]*celgo.Env{}, known: map[known]compilation{},
	}
}

// A compilation is what came of an expression.
type compilation struct {
	output   *celgo.Type // nil where there is an error
	problem  string
	internal bool
}

func (c compilation) errors(text string, at *field.Path) field.ErrorList {
	switch {
	case c.problem == "":
		return nil
	case c.internal:
		return field.ErrorList{field.InternalError(at, fmt.Errorf("%s", c.problem))}
	}
	return field.ErrorList{field.Invalid(at, text, c.problem)}
}

// compile compiles a text, unless one has been compiled that is the same but for
// literals that do not matter.
func (c *Checker) compile(text string, r reach) compilation {
	key := known{text, r, c.declared}
	if !strings.Contains(text, "variables") {
		key.reach.variables, key.declared = false, ""
	}
	plain, literalsMatter := withoutLiterals(text)
	for _, t := range []string{text, plain} {
		if result, done := c.known[known{t, key.reach, key.declared}]; done {
			return result
		}
	}
	result := c.compileNew(text, key.reach, literalsMatter)
	if result.problem == "" { // a problem quotes the text
		key.text = plain
	}
	c.known[key] = result
	return result
}

// compileNew follows CompileCELExpression of k8s.io/apiserver/pkg/admission/plugin/cel.
// Where no literal matters, no program is made: making one fails only where constants
// that are functions' arguments cannot be evaluated.
func (c *Checker) compileNew(text string, r reach, literalsMatter bool) compilation {
	env, err := c.env(r)
	if err != nil {
		return compilation{problem: fmt.Sprintf("unexpected error loading CEL environment: %v", err), internal: true}
	}
	tree, issues := env.Compile(text)
	if issues != nil {
		return compilation{problem: "compilation failed: " + issues.String()}
	}
	if !literalsMatter {
		return compilation{output: tree.OutputType()}
	}
	if _, err := env.Program(tree, celgo.InterruptCheckFrequency(celconfig.CheckFrequency)); err != nil {
		return compilation{problem: "program instantiation failed: " + err.Error(), internal: true}
	}
	return compilation{output: tree.OutputType()}
}

// declare makes a variable known to the expressions after it.
func (c *Checker) declare(name string, t *apiservercel.DeclType) {
	c.variables.Fields[name] = apiservercel.NewDeclField(name, t, true, nil, nil)
	c.declared += name + " " + t.CelType().String() + "\n"
}

// forget begins a policy.
func (c *Checker) forget() {
	clear(c.variables.Fields)
	c.declared = ""
}

// env follows createEnvForOpts and NewCompositedCompiler of the same package.
func (c *Checker) env(r reach) (*celgo.Env, error) {
	if env, ok := c.envs[r]; ok {
		return env, nil
	}
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
		options = append(options, celgo.Variable(plugincel.VariableVarName, c.variables.CelType()))
		declared = append(declared, c.variables)
	}
	base := c.base.NewExpressionsEnv()
	types := apiservercel.NewDeclTypeProvider(declared...)
	types.SetRecognizeKeywordAsFieldName(c.version.AtLeast(version.MajorMinor(1, 31)))
	provided, err := types.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	if r.patches {
		provided = append(provided, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch))
	}
	env, err := base.Extend(append(options, provided...)...)
	if err == nil {
		c.envs[r] = env
	}
	return env, err
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
