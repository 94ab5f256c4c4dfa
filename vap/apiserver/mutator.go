package apiserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	admissionauthorizer "k8s.io/apiserver/pkg/admission/plugin/authorizer"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// A Mutator holds compiled MutatingAdmissionPolicies, which change objects as an API server
// has them do. Objects of built-in kinds go through their Go types, as on a server; those of
// other kinds have no schema, so that apply configurations fail on them. It is safe for
// concurrent use.
type Mutator struct {
	hooks  []mutatingHook
	opts   JudgeOptions
	params *paramStore
	types  func() managedfields.TypeConverter
}

type mutatingHook struct {
	policy   *admissionregistrationv1.MutatingAdmissionPolicy
	bindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding
	compiled func() (*mutatingEvaluator, error) // when the first request meets it
}

// A mutatingEvaluator is a compiled policy.
type mutatingEvaluator struct {
	variables *plugincel.CompositedCompiler
	matcher   matchconditions.Matcher // nil for none
	patchers  []patch.Patcher
}

// NewMutator holds policies as an API server that has stored them does: an expression that
// does not compile errs when it is evaluated.
func NewMutator(policies []*admissionregistrationv1.MutatingAdmissionPolicy, bindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding, opts JudgeOptions) (*Mutator, error) {
	m := &Mutator{types: sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })}
	for _, p := range policies {
		h := mutatingHook{policy: p, compiled: sync.OnceValues(func() (*mutatingEvaluator, error) { return compileMutating(p) })}
		for _, b := range bindings {
			if b.Spec.PolicyName == p.Name {
				h.bindings = append(h.bindings, b)
			}
		}
		m.hooks = append(m.hooks, h)
	}
	return m.With(opts)
}

// With is the mutator with other params, namespaces and authorizer. Nothing is compiled again.
func (m *Mutator) With(opts JudgeOptions) (*Mutator, error) {
	params, err := newParamStore(opts)
	if err != nil {
		return nil, err
	}
	if opts.Authorizer == nil {
		opts.Authorizer = noOpinion{}
	}
	opts.Namespaces = storedNamespaces(opts.Namespaces)
	out := *m
	out.opts, out.params = opts, params
	return &out, nil
}

// compileMutating is the API server's compilePolicy, which is not exported, with one
// difference: the failure policy of the match conditions is always Fail, so that an error
// shows as one.
func compileMutating(p *admissionregistrationv1.MutatingAdmissionPolicy) (*mutatingEvaluator, error) {
	o := plugincel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	composed, err := plugincel.NewCompositedCompiler(baseEnvironment())
	if err != nil {
		return nil, err
	}
	var variables []plugincel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	composed.CompileAndStoreVariables(variables, o, environment.StoredExpressions)
	out := &mutatingEvaluator{variables: composed}
	if n := len(p.Spec.MatchConditions); n > 0 {
		accessors := make([]plugincel.ExpressionAccessor, n)
		for i := range p.Spec.MatchConditions {
			accessors[i] = (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i])
		}
		fail := admissionregistrationv1.Fail
		out.matcher = matchconditions.NewMatcher(composed.CompileCondition(accessors, o, environment.StoredExpressions), &fail, "policy", "validate", p.Name)
	}
	patches := o
	patches.HasPatchTypes = true
	for _, m := range p.Spec.Mutations {
		switch {
		case m.JSONPatch != nil:
			accessor := &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}
			out.patchers = append(out.patchers, patch.NewJSONPatcher(composed.CompileMutatingEvaluator(accessor, patches, environment.StoredExpressions)))
		case m.ApplyConfiguration != nil:
			accessor := &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
			out.patchers = append(out.patchers, patch.NewApplyConfigurationPatcher(composed.CompileMutatingEvaluator(accessor, patches, environment.StoredExpressions)))
		}
	}
	return out, nil
}

// A MutatingVerdict is what one policy with one binding did to a request. Its Outcome is
// NoMatch, Allow where it matched and every mutation was made, or Error.
type MutatingVerdict struct {
	Policy, Binding string
	Outcome         Outcome
	Message         string // of the error
	// Refused tells that the API server would refuse the request for this.
	Refused bool
}

// Mutate lets the policies change the object of a request, one after the other in the order
// in which they were given, each with what the ones before made of it. An API server promises
// no order among policies. told is as for Review. The error is that of an unreadable request.
func (m *Mutator) Mutate(ctx context.Context, request *admissionv1.AdmissionRequest, told *corev1.Namespace) (object map[string]any, verdicts []MutatingVerdict, err error) {
	attr, err := typedAttributes(request)
	if err != nil {
		return nil, nil, err
	}
	equivalent := m.opts.Equivalent
	if equivalent == nil {
		equivalent = runtime.NewEquivalentResourceRegistry()
	}
	r := &mutatingReview{
		mutator: m, attr: attr, objects: typedInterfaces{interfaces{equivalent}},
		matcher:    generic.NewPolicyMatcher(matching.NewMatcher(newNamespaceLister(m.opts.Namespaces, request.Namespace, told), nil)),
		authorizer: admissionauthorizer.NewCachingAuthorizer(m.opts.Authorizer),
	}
	if r.now, err = admission.NewVersionedAttributes(attr, attr.GetKind(), r.objects); err != nil {
		return nil, nil, err
	}
	for _, h := range m.hooks {
		for _, b := range h.bindings {
			verdicts = append(verdicts, r.binding(ctx, h, b))
		}
	}
	object, err = plainOf(r.now.VersionedObject.Object())
	return object, verdicts, err
}

// A mutatingReview is one request on its way through the policies. It follows the API
// server's dispatcher (k8s.io/apiserver/pkg/admission/plugin/policy/mutating), which stops
// at the first error that refuses the request.
type mutatingReview struct {
	mutator    *Mutator
	attr       admission.Attributes
	objects    admission.ObjectInterfaces
	matcher    generic.PolicyMatcher
	authorizer authorizer.UnconditionalAuthorizer
	now        *admission.VersionedAttributes
}

func (r *mutatingReview) binding(ctx context.Context, h mutatingHook, b *admissionregistrationv1.MutatingAdmissionPolicyBinding) MutatingVerdict {
	v := MutatingVerdict{Policy: h.policy.Name, Binding: b.Name, Outcome: NoMatch}
	fail := func(err error) MutatingVerdict {
		v.Outcome, v.Message = Error, err.Error()
		v.Refused = h.policy.Spec.FailurePolicy == nil || *h.policy.Spec.FailurePolicy == admissionregistrationv1.Fail
		return v
	}
	if exempt(r.attr.GetResource()) || r.now.VersionedObject.Object() == nil {
		return v
	}
	matches, resource, kind, err := r.matcher.DefinitionMatches(r.attr, r.objects, mutating.NewMutatingAdmissionPolicyAccessor(h.policy))
	if err == nil && matches {
		matches, err = r.matcher.BindingMatches(r.attr, r.objects, mutating.NewMutatingAdmissionPolicyBindingAccessor(b))
	}
	switch {
	case err != nil:
		return fail(err)
	case !matches:
		return v
	case kind != r.now.VersionedKind: // another version of the kind, which no server is here to convert to
		return fail(fmt.Errorf("the request is about %s, and the policy about %s", r.now.VersionedKind, kind))
	}
	params, err := r.mutator.params.collect(h.policy.Spec.ParamKind, b.Spec.ParamRef, r.attr.GetNamespace())
	if err != nil {
		return fail(fmt.Errorf("failed to configure binding: %w", err))
	}
	namespace, err := r.namespace(ctx)
	if err != nil {
		return fail(err)
	}
	evaluator, err := h.compiled()
	if err != nil {
		return fail(err)
	}
	for _, p := range params {
		matched, err := r.run(ctx, evaluator, p, resource, namespace)
		if matched && v.Outcome == NoMatch {
			v.Outcome = Allow
		}
		if err != nil {
			return fail(err)
		}
	}
	return v
}

// run makes the mutations of a policy, with one of its params. Those behind one that errs
// are made too.
func (r *mutatingReview) run(ctx context.Context, e *mutatingEvaluator, param runtime.Object, resource schema.GroupVersionResource, namespace *corev1.Namespace) (matched bool, err error) {
	ctx = e.variables.CreateContext(ctx)
	if e.matcher != nil {
		result := e.matcher.Match(ctx, r.now, param, r.authorizer)
		if result.Error != nil {
			return true, result.Error
		}
		if !result.Matches {
			return false, nil
		}
	}
	var errs []error
	for _, p := range e.patchers {
		after, err := p.Patch(ctx, patch.Request{
			MatchedResource: resource, VersionedAttributes: r.now, ObjectInterfaces: r.objects,
			OptionalVariables: plugincel.OptionalVariableBindings{VersionedParams: param, Authorizer: r.authorizer},
			Namespace:         namespace, TypeConverter: r.typesOf(r.now.VersionedKind),
		}, celconfig.RuntimeCELCostBudget)
		if err == nil {
			after, err = r.objects.GetObjectConvertor().ConvertToVersion(after, r.now.VersionedKind.GroupVersion())
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.now.UpdateObject(after)
	}
	return true, errors.Join(errs...)
}

// typesOf converts objects of a kind for merging; nil where it has no schema.
func (r *mutatingReview) typesOf(kind schema.GroupVersionKind) managedfields.TypeConverter {
	stub := &unstructured.Unstructured{}
	stub.SetGroupVersionKind(kind)
	if _, err := r.mutator.types().ObjectToTyped(stub); err != nil {
		return nil
	}
	return r.mutator.types()
}

func (r *mutatingReview) namespace(ctx context.Context) (*corev1.Namespace, error) {
	name := r.attr.GetNamespace()
	if k := r.attr.GetKind(); name == "" || k.Kind == "Namespace" && k.Version == "v1" && k.Group == "" {
		return nil, nil
	}
	return r.matcher.GetNamespace(ctx, name)
}

// typedAttributes are the attributes of a request whose objects have their Go types, where
// they are built in.
func typedAttributes(r *admissionv1.AdmissionRequest) (admission.Attributes, error) {
	a, err := attributes(r)
	if err != nil {
		return nil, err
	}
	object, err := typedObject(a.GetObject())
	if err != nil {
		return nil, fmt.Errorf("request.object: %w", err)
	}
	old, err := typedObject(a.GetOldObject())
	if err != nil {
		return nil, fmt.Errorf("request.oldObject: %w", err)
	}
	return admission.NewAttributesRecord(object, old, a.GetKind(), a.GetNamespace(), a.GetName(), a.GetResource(), a.GetSubresource(),
		a.GetOperation(), a.GetOperationOptions(), a.IsDryRun(), a.GetUserInfo()), nil
}

// typedObject is an object of a built-in kind in its Go type, and any other as it is.
func typedObject(o runtime.Object) (runtime.Object, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || !scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		return o, nil
	}
	kind := u.GroupVersionKind()
	out, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

// Decoded is an object as the API server has it once it has read it: of a built-in kind, what
// the Go type of the kind holds. The error is what no API server takes.
func Decoded(object map[string]any) (map[string]any, error) {
	if object == nil {
		return nil, nil
	}
	typed, err := typedObject(&unstructured.Unstructured{Object: object})
	if err != nil {
		return nil, err
	}
	return plainOf(typed)
}

// plainOf is an object as JSON has it; nil for none.
func plainOf(o runtime.Object) (map[string]any, error) {
	switch o := o.(type) {
	case nil:
		return nil, nil
	case *unstructured.Unstructured:
		return o.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// typedInterfaces make and convert objects by their Go types, where they are built in.
type typedInterfaces struct{ interfaces }

func (i typedInterfaces) GetObjectCreater() runtime.ObjectCreater     { return i }
func (i typedInterfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }

// New is an object of a kind that a patched one is decoded into.
func (i typedInterfaces) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	if scheme.Scheme.Recognizes(kind) {
		return scheme.Scheme.New(kind)
	}
	return i.interfaces.New(kind)
}

// Convert is asked for objects of the kind that they have.
func (i typedInterfaces) Convert(in, out, arg any) error {
	if from, ok := in.(runtime.Object); ok && !isUnstructured(from) {
		plain, err := plainOf(from)
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(plain, out)
	}
	return i.interfaces.Convert(in, out, arg)
}

// ConvertToVersion is an object that was merged, in its Go type.
func (i typedInterfaces) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return typedObject(in)
}

func isUnstructured(o runtime.Object) bool {
	_, ok := o.(*unstructured.Unstructured)
	return ok
}
