package check

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/schema"
)

// lintUnbound tells of a policy that is not enforced. Where the input has no bindings
// at all they may be elsewhere.
func (c *checking) lintUnbound(r *Result, s *anyPolicy, bindings []bound) {
	if len(bindings) > 0 {
		return
	}
	elsewhere := !c.some(func(o *Object) bool { _, ok := boundOf(o); return ok })
	r.report(0, "metadata.name", unbound(s.name, elsewhere))
}

// lintBinding looks at a binding with its policy.
func (c *checking) lintBinding(r *Result, b bound) {
	var s *anyPolicy
	policies := false
	for _, o := range c.objects {
		p := subjectOf(o)
		if p == nil || (o.Mutating != nil) != b.mutating {
			continue
		}
		policies = true
		if p.name == b.policy && together(o, r.Object) {
			s = p
		}
	}
	if s == nil {
		r.report(0, "spec.policyName", noPolicy(b.policy, !policies))
	}
	if b.does(admissionregistrationv1.Deny) && b.does(admissionregistrationv1.Warn) {
		r.report(0, "spec.validationActions", denyWithWarn())
	}
	lintParamRef(r, b, s)
	if s != nil {
		set := c.of(r.Releases[len(r.Releases)-1]).set
		lintSelectors(r, b.match, s.rules(), "spec.matchResources", set)
	}
}

// lintParamRef tells what a missing param does, where that surprises.
func lintParamRef(r *Result, b bound, s *anyPolicy) {
	switch {
	case b.param == nil:
		if s != nil && s.paramKind != nil {
			r.report(0, "spec", noParamRef(s.paramKind.Kind))
		}
		return
	case s != nil && s.paramKind == nil:
		r.report(0, "spec.paramRef", uselessParamRef(s.name))
		return
	case b.param.ParameterNotFoundAction == nil:
		r.report(0, "spec.paramRef.parameterNotFoundAction", noNotFound())
		return
	}
	fails := s == nil || s.fails
	switch action := *b.param.ParameterNotFoundAction; {
	case action == admissionregistrationv1.AllowAction && fails && b.does(admissionregistrationv1.Deny):
		r.report(0, "spec.paramRef.parameterNotFoundAction", notFoundAllows())
	case action == admissionregistrationv1.DenyAction && fails && !b.does(admissionregistrationv1.Deny):
		r.report(0, "spec.paramRef.parameterNotFoundAction", notFoundDenies(b.actions))
	}
}

// lintParams tells of params of a kind that the API server itself serves. The defect
// of API servers that it is about is theirs alone.
func lintParams(r *Result, s *anyPolicy, bindings []bound, set *schema.Set) {
	if s.paramKind == nil {
		return
	}
	kind := schema.GVK(apischema.FromAPIVersionAndKind(s.paramKind.APIVersion, s.paramKind.Kind))
	if _, known := set.ByKind(kind); known && isBuiltin(kind.Group) {
		r.report(0, "spec.paramKind", builtinParams(kind.Kind, bindings))
	}
}

// isBuiltin tells the groups that the API server serves from those of CRDs.
func isBuiltin(group string) bool {
	switch group {
	case "", "apps", "autoscaling", "batch", "extensions", "policy":
		return true
	}
	return slices.Contains([]string{
		"admissionregistration.k8s.io", "apiextensions.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "rbac.authorization.k8s.io",
		"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
	}, group)
}
