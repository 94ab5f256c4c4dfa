package apiserver

import (
	"context"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissionauthorizer "k8s.io/apiserver/pkg/admission/plugin/authorizer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kvap/kvap/vap"
)

// JudgeOptions are what a cluster would know.
type JudgeOptions struct {
	// Namespaces are those that are stored, by name. One that is not listed
	// exists, with no labels but its name, and without the phase of a stored one.
	Namespaces map[string]*corev1.Namespace
	// Params are the objects that bindings may refer to.
	Params []*unstructured.Unstructured
	// ParamScope tells whether a kind of params is namespaced, and whether the
	// cluster knows it. nil takes every kind for known, and for namespaced unless
	// there are params of it without a namespace.
	ParamScope func(schema.GroupVersionKind) (namespaced, known bool)
	// Authorizer answers authorizer checks. nil answers none, which is a no.
	Authorizer authorizer.UnconditionalAuthorizer
	// Equivalent knows the resources that are the same objects in other versions.
	// nil knows none. Objects are converted by changing their apiVersion.
	Equivalent runtime.EquivalentResourceMapper
}

// An Outcome is what a policy says of a request.
type Outcome string

// The outcomes. Deny means that a validation is false, whatever a binding's
// actions make of it, and Error that the API server cannot tell, whatever the
// failure policy makes of it. Unknown is what no judge says: those who ask one that
// lacks what a policy reads put it in the place of its verdict.
const (
	NoMatch Outcome = "nomatch"
	Allow   Outcome = "allow"
	Deny    Outcome = "deny"
	Error   Outcome = "error"
	Unknown Outcome = "unknown"
)

// A Verdict is the outcome for one policy with one binding.
type Verdict struct {
	Policy  string
	Binding string // empty where the policy has none, and so is not enforced
	// Resource is what the policy takes the request to be about, without a subresource.
	Resource string
	Outcome  Outcome
	// Results has one entry for each validation, for each of the params; it is
	// empty where the policy does not match, or erred before the validations. (In
	// a policy with one validation, such an error cannot be told from its own.)
	Results []ValidationResult
	// Message is that of the first validation that is false, or else that errs,
	// or the error before the validations.
	Message string
	// Stopped tells that the request went no further than the policy's guard: the
	// results are those that the validations have then.
	Stopped bool
	// Refused tells that the API server would refuse the request for this, with
	// the binding's actions and the policy's failure policy.
	Refused bool
	// Warnings are the texts that the client would see.
	Warnings []string
	// Audits are the audit annotations, by key.
	Audits map[string]string
}

// A ValidationResult is the outcome of one validation.
type ValidationResult struct {
	Index   int // in the policy's validations
	Param   string
	Outcome Outcome // Allow, Deny or Error
	Message string
	Reason  string
}

// A Judge holds compiled policies. It is safe for concurrent use.
type Judge struct {
	hooks   []hook
	opts    JudgeOptions
	params  *paramStore
	objects admission.ObjectInterfaces
}

type hook struct {
	policy   *admissionregistrationv1.ValidatingAdmissionPolicy
	bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	// compiled compiles the policy once, when the first request meets it: most
	// requests meet few policies. The matcher is nil where the policy has no guard.
	compiled func() (validating.Validator, matchconditions.Matcher)
}

// NewJudge holds policies as an API server that has stored them does: an
// expression that does not compile errs when it is evaluated. Validate finds
// such before. Bindings to other policies are ignored.
func NewJudge(policies []*admissionregistrationv1.ValidatingAdmissionPolicy, bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding, opts JudgeOptions) (*Judge, error) {
	j := &Judge{}
	plain := newCompiler(nil)
	for _, p := range policies {
		h := hook{policy: p, compiled: sync.OnceValues(func() (validating.Validator, matchconditions.Matcher) { return compile(p, plain) })}
		for _, b := range bindings {
			if b.Spec.PolicyName == p.Name {
				h.bindings = append(h.bindings, b)
			}
		}
		j.hooks = append(j.hooks, h)
	}
	return j.With(opts)
}

// With is the judge with other params, namespaces and authorizer. Nothing is
// compiled again.
func (j *Judge) With(opts JudgeOptions) (*Judge, error) {
	params, err := newParamStore(opts)
	if err != nil {
		return nil, err
	}
	if opts.Authorizer == nil {
		opts.Authorizer = noOpinion{}
	}
	opts.Namespaces = storedNamespaces(opts.Namespaces)
	return &Judge{hooks: j.hooks, opts: opts, params: params, objects: newInterfaces(opts.Equivalent)}, nil
}

// Review judges one request, with a verdict for each policy and binding in the
// order in which they were given. namespace, where not nil, is the request's, in the
// place of what JudgeOptions know; one without a phase tells of its labels alone. The error is that of an
// unreadable request.
func (j *Judge) Review(ctx context.Context, request *admissionv1.AdmissionRequest, namespace *corev1.Namespace) ([]Verdict, error) {
	attr, err := attributes(request)
	if err != nil {
		return nil, err
	}
	r := &policyRequest{
		judge:      j,
		attr:       attr,
		matcher:    generic.NewPolicyMatcher(matching.NewMatcher(newNamespaceLister(j.opts.Namespaces, request.Namespace, namespace), nil)),
		authorizer: admissionauthorizer.NewCachingAuthorizer(j.opts.Authorizer),
		versions:   map[schema.GroupVersionKind]*admission.VersionedAttributes{},
	}
	var out []Verdict
	for _, h := range j.hooks {
		out = append(out, r.policy(ctx, h)...)
	}
	return out, nil
}

// A policyRequest is one request on its way through the policies. It follows the API
// server's dispatcher (k8s.io/apiserver/pkg/admission/plugin/policy/validating),
// which gives only the first denial away.
type policyRequest struct {
	judge      *Judge
	attr       admission.Attributes
	matcher    generic.PolicyMatcher
	authorizer authorizer.UnconditionalAuthorizer
	versions   map[schema.GroupVersionKind]*admission.VersionedAttributes
}

func (r *policyRequest) policy(ctx context.Context, h hook) []Verdict {
	matches, resource, kind, err := false, schema.GroupVersionResource{}, schema.GroupVersionKind{}, error(nil)
	if !exempt(r.attr.GetResource()) {
		matches, resource, kind, err = r.matcher.DefinitionMatches(r.attr, r.judge.objects, validating.NewValidatingAdmissionPolicyAccessor(h.policy))
	}
	if len(h.bindings) == 0 {
		return []Verdict{{Policy: h.policy.Name, Outcome: NoMatch, Message: "the policy has no binding"}}
	}
	out := make([]Verdict, len(h.bindings))
	for i, b := range h.bindings {
		v := Verdict{Policy: h.policy.Name, Binding: b.Name, Resource: resource.Resource, Outcome: NoMatch}
		switch {
		case err != nil:
			v.misconfigured(h.policy, fmt.Errorf("failed to configure policy: %w", err))
		case matches:
			r.binding(ctx, h, b, resource, kind, &v)
		}
		out[i] = v
	}
	return out
}

func (r *policyRequest) binding(ctx context.Context, h hook, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, resource schema.GroupVersionResource, kind schema.GroupVersionKind, v *Verdict) {
	fail := func(err error) { v.misconfigured(h.policy, fmt.Errorf("failed to configure binding: %w", err)) }
	matches, err := r.matcher.BindingMatches(r.attr, r.judge.objects, validating.NewValidatingAdmissionPolicyBindingAccessor(b))
	if err != nil {
		fail(err)
		return
	}
	if !matches {
		return
	}
	params, err := r.judge.params.collect(h.policy.Spec.ParamKind, b.Spec.ParamRef, r.attr.GetNamespace())
	if err != nil {
		fail(err)
		return
	}
	if len(params) == 0 {
		return // nothing to judge by, and parameterNotFoundAction says Allow
	}
	versioned, err := r.versioned(kind)
	if err != nil {
		fail(fmt.Errorf("failed to convert object version: %w", err))
		return
	}
	namespace, err := r.namespace(ctx)
	if err != nil {
		fail(err)
		return
	}
	validator, unguarded := h.compiled()
	for _, p := range params {
		result := validator.Validate(ctx, resource, versioned, p, namespace, celconfig.RuntimeCELCostBudget, r.authorizer)
		if len(result.Decisions) == 0 && unguarded != nil && unguarded.Match(ctx, versioned, p, r.authorizer).Matches {
			v.pass(h.policy, paramName(p)) // it stopped at the guard
		}
		v.add(h.policy, b, paramName(p), result)
	}
}

func (r *policyRequest) versioned(kind schema.GroupVersionKind) (*admission.VersionedAttributes, error) {
	if v, ok := r.versions[kind]; ok {
		return v, nil
	}
	v, err := admission.NewVersionedAttributes(r.attr, kind, r.judge.objects)
	if err == nil {
		r.versions[kind] = v
	}
	return v, err
}

// namespace is namespaceObject, which is null for Namespaces themselves although
// their requests name one.
func (r *policyRequest) namespace(ctx context.Context) (*corev1.Namespace, error) {
	name := r.attr.GetNamespace()
	if k := r.attr.GetKind(); name == "" || k.Kind == "Namespace" && k.Version == "v1" && k.Group == "" {
		return nil, nil
	}
	return r.matcher.GetNamespace(ctx, name)
}

// exempt tells that policies made through the API never see the resource.
func exempt(r schema.GroupVersionResource) bool {
	switch r.Group {
	case "admissionregistration.k8s.io":
		return strings.HasPrefix(r.Resource, "validatingadmissionpolic") || strings.HasPrefix(r.Resource, "mutatingadmissionpolic")
	case "authentication.k8s.io":
		return r.Resource == "tokenreviews" || r.Resource == "selfsubjectreviews"
	case "authorization.k8s.io":
		switch r.Resource {
		case "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews":
			return true
		}
	}
	return false
}

// misconfigured is an error that the binding's actions do not soften.
func (v *Verdict) misconfigured(p *admissionregistrationv1.ValidatingAdmissionPolicy, err error) {
	v.Outcome = Error
	v.Message = err.Error()
	v.Refused = failsClosed(p)
}

func failsClosed(p *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy == admissionregistrationv1.Fail
}

// add joins the outcome for one param.
func (v *Verdict) add(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, param string, result validating.ValidateResult) {
	whole := len(result.Decisions) != len(p.Spec.Validations) // an error before the validations
	for i, d := range result.Decisions {
		outcome := outcomeOf(d)
		if !whole {
			v.Results = append(v.Results, ValidationResult{Index: i, Param: param, Outcome: outcome, Message: d.Message, Reason: string(d.Reason)})
		}
		if outcome != Allow && outcome.Graver(v.Outcome) {
			v.Message = d.Message
		}
		v.raise(outcome)
		v.act(p, b, outcome, d.Message)
	}
	if len(p.Spec.Validations) == 0 {
		v.raise(Allow)
	}
	for _, a := range result.AuditAnnotations {
		switch a.Action {
		case validating.AuditAnnotationActionError:
			if v.Outcome != Deny {
				v.Outcome, v.Message = Error, a.Error
			}
			v.Refused = v.Refused || failsClosed(p)
		case validating.AuditAnnotationActionPublish:
			if v.Audits == nil {
				v.Audits = map[string]string{}
			}
			if have, ok := v.Audits[a.Key]; ok && have != a.Value {
				a.Value = have + ", " + a.Value
			}
			v.Audits[a.Key] = a.Value
		}
	}
}

// pass is that all validations are true for one param.
func (v *Verdict) pass(p *admissionregistrationv1.ValidatingAdmissionPolicy, param string) {
	for i := range p.Spec.Validations {
		v.Results = append(v.Results, ValidationResult{Index: i, Param: param, Outcome: Allow})
	}
	v.Stopped = true
	v.raise(Allow)
}

func outcomeOf(d validating.PolicyDecision) Outcome {
	switch d.Evaluation {
	case validating.EvalDeny:
		return Deny
	case validating.EvalError:
		return Error
	}
	return Allow
}

// raise keeps the gravest outcome.
func (v *Verdict) raise(o Outcome) {
	if o.Graver(v.Outcome) {
		v.Outcome = o
	}
}

func rank(o Outcome) int {
	switch o {
	case Deny:
		return 4
	case Error:
		return 3
	case Unknown:
		return 2
	case Allow:
		return 1
	}
	return 0
}

// Graver tells whether an outcome weighs more than another one: what does not
// match, allows, is not known, errs, denies.
func (o Outcome) Graver(than Outcome) bool { return rank(o) > rank(than) }

// act does what the binding's actions say to a validation that does not hold.
func (v *Verdict) act(p *admissionregistrationv1.ValidatingAdmissionPolicy, b *admissionregistrationv1.ValidatingAdmissionPolicyBinding, o Outcome, message string) {
	if o == Allow || o == Error && !failsClosed(p) {
		return
	}
	for _, action := range b.Spec.ValidationActions {
		switch action {
		case admissionregistrationv1.Deny:
			v.Refused = true
		case admissionregistrationv1.Warn:
			v.Warnings = append(v.Warnings, fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.Name, b.Name, message))
		}
	}
}

// Members is the verdict seen by the rules that the policy was made from: the
// gravest outcome among each one's validations. An error before the validations
// is every member's, and so is NoMatch.
func (v Verdict) Members(t vap.Translation) []ValidationResult {
	out := make([]ValidationResult, len(t.Members))
	for i := range out {
		out[i] = ValidationResult{Index: i, Outcome: NoMatch}
		if len(v.Results) == 0 && t.Members[i].IsAbout(v.Resource) {
			out[i].Outcome, out[i].Message = v.Outcome, v.Message
		}
	}
	for _, r := range v.Results {
		if r.Index >= len(t.Validations) {
			continue
		}
		for _, i := range t.Validations[r.Index].Members() {
			if m := &out[i]; t.Members[i].IsAbout(v.Resource) && r.Outcome.Graver(m.Outcome) {
				m.Outcome, m.Message, m.Reason, m.Param = r.Outcome, r.Message, r.Reason, r.Param
			}
		}
	}
	return out
}
