package vap

import (
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/schema"
)

// A StatusChecker says what kube-controller-manager of a release writes into
// status.typeChecking of policies. It is TypeChecker of
// k8s.io/apiserver/pkg/admission/plugin/policy/validating, save that it makes the
// environment for a kind once, and not for each expression; that it knows the
// functions of its release; and that types are not called by the clock.
type StatusChecker struct {
	release cel.Release
	schemas schema.StatusResolver
	mapper  meta.RESTMapper
	base    *environment.EnvSet
	types   map[apischema.GroupVersionKind]*apiservercel.DeclType
	envs    map[statusEnv]*statusTyped
}

// A statusEnv is what an environment depends on.
type statusEnv struct {
	object, params apischema.GroupVersionKind
	hasParams      bool
}

// A statusTyped is an environment with its variables, which are those of the policy
// at hand.
type statusTyped struct {
	env       *celgo.Env
	variables *apiservercel.DeclType
}

// NewStatusChecker makes a checker for the kinds of a set. It is for any number of
// policies, one after the other.
func NewStatusChecker(set *schema.Set, release cel.Release) *StatusChecker {
	return &StatusChecker{
		release: release, schemas: set.StatusResolver(), mapper: set.RESTMapper(),
		base:  environment.MustBaseEnvSet(version.MajorMinor(1, uint(release))),
		types: map[apischema.GroupVersionKind]*apiservercel.DeclType{},
		envs:  map[statusEnv]*statusTyped{},
	}
}

// Check is what is written into the status, in its order.
func (c *StatusChecker) Check(p *admissionregistrationv1.ValidatingAdmissionPolicy) []TypeWarning {
	var kinds []apischema.GroupVersionKind
	for _, k := range c.kinds(p) {
		if _, known := c.typeOf(k); known {
			kinds = append(kinds, k)
		}
	}
	warnings := map[string]string{}
	var fields []string
	check := func(env *statusTyped, kind apischema.GroupVersionKind, at, text string) {
		if problem := env.compile(text); problem != "" {
			if _, more := warnings[at]; more {
				warnings[at] += "\n"
			}
			warnings[at] += fmt.Sprintf("%v: %s\n", kind, problem)
		}
	}
	for _, k := range kinds {
		env, err := c.env(k, p)
		if err != nil {
			continue // as upstream: it is logged
		}
		env.declare(p.Spec.Variables)
		for i, v := range p.Spec.Validations {
			at := field.NewPath("spec", "validations").Index(i)
			check(env, k, at.Child("expression").String(), v.Expression)
			if v.MessageExpression != "" {
				check(env, k, at.Child("messageExpression").String(), v.MessageExpression)
			}
		}
	}
	for i := range p.Spec.Validations {
		at := field.NewPath("spec", "validations").Index(i)
		fields = append(fields, at.Child("expression").String(), at.Child("messageExpression").String())
	}
	var out []TypeWarning
	for _, at := range fields {
		if text, ok := warnings[at]; ok {
			out = append(out, TypeWarning{Field: at, Warning: text})
		}
	}
	return out
}

// compile is what the checker has to say, and "" where that is nothing.
func (t *statusTyped) compile(text string) string {
	if _, issues := t.env.Compile(text); issues != nil {
		return issues.String()
	}
	return ""
}

// declare makes variables known. One with an error is dynamic, without a word.
func (t *statusTyped) declare(variables []admissionregistrationv1.Variable) {
	clear(t.variables.Fields)
	for _, v := range variables {
		var output *celgo.Type
		if tree, issues := t.env.Compile(v.Expression); issues == nil {
			output = tree.OutputType()
		}
		declare(t.variables, v.Name, output)
	}
}

// typeOf is the type of a kind, nil for one without fields to speak of, and whether
// the kind has a schema.
func (c *StatusChecker) typeOf(kind apischema.GroupVersionKind) (*apiservercel.DeclType, bool) {
	if t, ok := c.types[kind]; ok {
		return t, true
	}
	s, err := c.schemas.ResolveSchema(kind)
	if err != nil {
		return nil, false
	}
	t := common.SchemaDeclType(&openapi.Schema{Schema: s}, true)
	if t != nil {
		t = t.MaybeAssignTypeName(kind.Kind)
	}
	c.types[kind] = t
	return t, true
}

// env follows buildEnvSet and NewCompositedCompilerForTypeChecking.
func (c *StatusChecker) env(kind apischema.GroupVersionKind, p *admissionregistrationv1.ValidatingAdmissionPolicy) (*statusTyped, error) {
	key := statusEnv{object: kind, params: paramsKind(p.Spec.ParamKind)}
	params, known := c.typeOf(key.params)
	// Before 1.36, params of unknown type were not declared at all.
	key.hasParams = !key.params.Empty() && (c.release >= paramsAlwaysDeclared || known && params != nil)
	if t, ok := c.envs[key]; ok {
		return t, nil
	}
	object, _ := c.typeOf(kind)
	request, namespace := plugincel.BuildRequestType(), plugincel.BuildNamespaceType()
	variables := noVariables()
	declared := []*apiservercel.DeclType{namespace, request, variables}
	options := []celgo.EnvOption{
		celgo.Variable(plugincel.NamespaceVarName, namespace.CelType()),
		celgo.Variable(plugincel.RequestVarName, request.CelType()),
		celgo.Variable(plugincel.VariableVarName, variables.CelType()),
		celgo.Variable(plugincel.AuthorizerVarName, library.AuthorizerType),
	}
	declare := func(t *apiservercel.DeclType, names ...string) {
		typ := celgo.DynType
		if t != nil {
			typ = t.CelType()
			declared = append(declared, t)
		}
		for _, name := range names {
			options = append(options, celgo.Variable(name, typ))
		}
	}
	declare(object, plugincel.ObjectVarName, plugincel.OldObjectVarName)
	if key.hasParams {
		declare(params, plugincel.ParamsVarName)
	}
	base := c.base.NewExpressionsEnv() // of what this release knows, which to it is all there is
	types := apiservercel.NewDeclTypeProvider(declared...)
	types.SetRecognizeKeywordAsFieldName(c.release >= keywordsAreFields)
	provided, err := types.EnvOptions(base.CELTypeProvider())
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(append(options, provided...)...)
	if err != nil {
		return nil, err
	}
	c.envs[key] = &statusTyped{env, variables}
	return c.envs[key], nil
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
func (c *StatusChecker) kinds(p *admissionregistrationv1.ValidatingAdmissionPolicy) []apischema.GroupVersionKind {
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
