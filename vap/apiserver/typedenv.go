package apiserver

import (
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// typedEnvs are the environments in which the expressions of policies are checked
// against the schemas of what they match: one for each kind, made once.
type typedEnvs struct {
	release cel.Release
	base    *celgo.Env
	schemas resolver.SchemaResolver
	mapper  meta.RESTMapper
	types   map[typeKey]*apiservercel.DeclType
	envs    map[envKey]*typedEnv
}

// A typeKey is a kind, and what its type is called.
type typeKey struct {
	kind apischema.GroupVersionKind
	name string
}

// An envKey is what an environment depends on.
type envKey struct {
	object, params apischema.GroupVersionKind
	hasParams      bool
}

// A typedEnv is the environment for a kind, with its variables, which are those of the
// policy at hand.
type typedEnv struct {
	kind      apischema.GroupVersionKind
	env       *celgo.Env
	variables *apiservercel.DeclType
}

func newTypedEnvs(release cel.Release, base *celgo.Env, schemas resolver.SchemaResolver, mapper meta.RESTMapper) *typedEnvs {
	return &typedEnvs{
		release: release, base: base, schemas: schemas, mapper: mapper,
		types: map[typeKey]*apiservercel.DeclType{}, envs: map[envKey]*typedEnv{},
	}
}

// of are the environments for the kinds that a policy matches and that have a schema,
// with no variables yet.
func (c *typedEnvs) of(p *admissionregistrationv1.ValidatingAdmissionPolicy) []*typedEnv {
	var out []*typedEnv
	for _, kind := range c.kinds(p) {
		object, known := c.typeOf(kind, kind.Kind)
		if !known {
			continue
		}
		e, err := c.env(kind, object, paramsKind(p.Spec.ParamKind))
		if err != nil {
			continue // as upstream: it is logged
		}
		clear(e.variables.Fields)
		out = append(out, e)
	}
	return out
}

// compile is the type of an expression, or what the checker has to say of it.
func (e *typedEnv) compile(text string) (output *celgo.Type, problem string) {
	tree, issues := e.env.Compile(text)
	if issues != nil {
		return nil, issues.String()
	}
	return tree.OutputType(), ""
}

// declare makes a variable known to the expressions after it. One with an error is
// dynamic.
func (e *typedEnv) declare(v admissionregistrationv1.Variable) (problem string) {
	output, problem := e.compile(v.Expression)
	declare(e.variables, v.Name, output)
	return problem
}

// typeOf is the type of a kind by a name, nil for one without fields to speak of, and
// whether the kind has a schema.
func (c *typedEnvs) typeOf(kind apischema.GroupVersionKind, name string) (t *apiservercel.DeclType, known bool) {
	key := typeKey{kind, name}
	if t, ok := c.types[key]; ok {
		return t, true
	}
	s, err := c.schemas.ResolveSchema(kind)
	if err != nil {
		return nil, false
	}
	if t = common.SchemaDeclType(&openapi.Schema{Schema: s}, true); t != nil {
		t = t.MaybeAssignTypeName(name)
	}
	c.types[key] = t
	return t, true
}

// env follows buildEnvSet and NewCompositedCompilerForTypeChecking.
func (c *typedEnvs) env(kind apischema.GroupVersionKind, object *apiservercel.DeclType, paramKind apischema.GroupVersionKind) (*typedEnv, error) {
	name := paramKind.Kind
	if name == kind.Kind && paramKind != kind {
		name += "Params" // two kinds of one name have different types
	}
	params, known := c.typeOf(paramKind, name)
	// Before 1.36, params of unknown type were not declared at all.
	key := envKey{kind, paramKind, !paramKind.Empty() && (c.release >= paramsAlwaysDeclared || known && params != nil)}
	if e, ok := c.envs[key]; ok {
		return e, nil
	}
	d := newDeclarations()
	d.declare(object, plugincel.ObjectVarName, plugincel.OldObjectVarName)
	if key.hasParams {
		d.declare(params, plugincel.ParamsVarName)
	}
	env, err := d.extend(c.base, c.release >= keywordsAreFields)
	if err != nil {
		return nil, err
	}
	c.envs[key] = &typedEnv{kind, env, d.variables}
	return c.envs[key], nil
}

// declarations are what an environment gets.
type declarations struct {
	types     []*apiservercel.DeclType
	options   []celgo.EnvOption
	variables *apiservercel.DeclType
}

func newDeclarations() *declarations {
	d := &declarations{variables: noVariables(), options: []celgo.EnvOption{celgo.Variable(plugincel.AuthorizerVarName, library.AuthorizerType)}}
	d.declare(plugincel.BuildNamespaceType(), plugincel.NamespaceVarName)
	d.declare(plugincel.BuildRequestType(), plugincel.RequestVarName)
	d.declare(d.variables, plugincel.VariableVarName)
	return d
}

func (d *declarations) declare(t *apiservercel.DeclType, names ...string) {
	typ := celgo.DynType
	if t != nil {
		typ = t.CelType()
		d.types = append(d.types, t)
	}
	for _, name := range names {
		d.options = append(d.options, celgo.Variable(name, typ))
	}
}

func (d *declarations) extend(base *celgo.Env, keywords bool) (*celgo.Env, error) {
	types := apiservercel.NewDeclTypeProvider(d.types...)
	types.SetRecognizeKeywordAsFieldName(keywords)
	provided, err := types.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	return base.Extend(append(d.options, provided...)...)
}

// What the checker does since some release.
const (
	keywordsAreFields    cel.Release = 31
	paramsAlwaysDeclared cel.Release = 36
)

func paramsKind(p *admissionregistrationv1.ParamKind) apischema.GroupVersionKind {
	if p == nil {
		return apischema.GroupVersionKind{}
	}
	gv, err := apischema.ParseGroupVersion(p.APIVersion)
	if err != nil {
		return apischema.GroupVersionKind{}
	}
	return gv.WithKind(p.Kind)
}

// mostKinds is how many kinds of one rule are looked at, and then no other rule.
const mostKinds = 10

// kinds follows typesToCheck: what has a wildcard or is a subresource is passed over.
func (c *typedEnvs) kinds(p *admissionregistrationv1.ValidatingAdmissionPolicy) []apischema.GroupVersionKind {
	var out []apischema.GroupVersionKind
	if p.Spec.MatchConstraints == nil {
		return nil
	}
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		count := 0
		for _, resource := range plainResources(rule.Rule) {
			found, err := c.mapper.KindsFor(resource)
			if err != nil {
				continue
			}
			for _, k := range found {
				if !slices.Contains(out, k) {
					out = append(out, k)
				}
				if count++; count == mostKinds {
					return sortedKinds(out)
				}
			}
		}
	}
	return sortedKinds(out)
}

// plainResources are the resources of a rule in the order in which they are looked at.
func plainResources(r admissionregistrationv1.Rule) []apischema.GroupVersionResource {
	if hasWildcard(r.APIGroups) || hasWildcard(r.APIVersions) {
		return nil
	}
	var out []apischema.GroupVersionResource
	for _, group := range slices.Sorted(slices.Values(r.APIGroups)) {
		for _, version := range slices.Sorted(slices.Values(r.APIVersions)) {
			for _, resource := range slices.Sorted(slices.Values(r.Resources)) {
				if !strings.ContainsAny(resource, "*/") {
					out = append(out, apischema.GroupVersionResource{Group: group, Version: version, Resource: resource})
				}
			}
		}
	}
	return out
}

func hasWildcard(list []string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "*") })
}

func sortedKinds(list []apischema.GroupVersionKind) []apischema.GroupVersionKind {
	slices.SortFunc(list, func(a, b apischema.GroupVersionKind) int { return schema.GVK(a).Compare(schema.GVK(b)) })
	return list
}
