package controller

import (
	"context"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// A Fallback serves the rules that have no native form: it is the webhook, as the
// controller sees it. The steps of a hand-over are in doc.go.
type Fallback interface {
	// Serve has all requests from now on judged by what remains, in place of what was
	// given before. It returns when this process does so, with the configurations
	// that have the API server ask it, and the policies that it leaves out; it never
	// blocks for long. The controller writes the configurations. Where it returns an
	// error, what was given before is served still.
	//
	// The same remaining rules give equal configurations, with every field that the
	// API server would default, so that the controller writes nothing at rest.
	Serve(ctx context.Context, remaining Remaining) (Serving, error)
	// Changed yields when Serve would give other configurations for the same rules,
	// as when certificates were rotated. It may be nil.
	Changed() <-chan struct{}
}

// Remaining is what a Fallback serves: all there is to serve at a time.
type Remaining struct {
	// Policies are in the order of their kinds, namespaces and names.
	Policies []RemainingPolicy
	// Native are the policies that are enforced, with the rules that API servers judge by native
	// objects.
	Native []RemainingPolicy
	// Exceptions are those of the cluster that count now.
	Exceptions []*policy.Exception
	// ExcludeNamespaces are those whose objects are never judged.
	ExcludeNamespaces []string
	// Taken are the names of configurations that somebody else made.
	Taken []string
}

// A RemainingPolicy is a policy with some of its rules, as those that have no native form.
type RemainingPolicy struct {
	// Shadow tells that the rules are judged and recorded, and nothing follows from it:
	// no request is denied, changed or kept waiting for an answer, and no work is begun.
	// The policy then has its actions as they are written.
	Shadow bool
	// Source is the object in the cluster.
	Source v1alpha1.PolicyReference
	// Generation is the source's, for status and events.
	Generation int64
	// Policy is the whole policy. One of kvap.dev has become the policy of kyverno.io
	// that says the same.
	Policy *policy.Policy
	// Rules are those that remain, as written, in order. None of them is Invalid.
	// It is empty for a policy in CEL, which is one rule.
	Rules []*policy.Rule
}

// Configurations are what has the API server ask the webhook, one of each kind; nil where there
// is nothing to ask.
type Configurations struct {
	Validating *admissionregistrationv1.ValidatingWebhookConfiguration
	Mutating   *admissionregistrationv1.MutatingWebhookConfiguration
}

// list are those that there are.
func (c Configurations) list() (out []client.Object) {
	if c.Validating != nil {
		out = append(out, c.Validating)
	}
	if c.Mutating != nil {
		out = append(out, c.Mutating)
	}
	return out
}

// list are those of all shards, and the one about policies.
func (s Serving) list() (out []client.Object) {
	for _, c := range s.Configurations {
		out = append(out, c.list()...)
	}
	if s.Policies != nil {
		out = append(out, s.Policies)
	}
	return out
}

// like is the one of an object's kind.
func (c Configurations) like(o client.Object) client.Object {
	if _, ok := o.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
		return c.Mutating
	}
	return c.Validating
}

// Serving is what a Fallback does for what remains.
type Serving struct {
	// Configurations are as many as it takes for none to be larger than an API server takes.
	Configurations []Configurations
	// Policies has the API server ask about policies that are written, and go on where nobody
	// answers; nil where it need not ask.
	Policies *admissionregistrationv1.ValidatingWebhookConfiguration
	// Probe gives configurations that have the API server ask the Fallback about Params of a
	// name, which it answers with a warning that has the name: either alone shows that API
	// servers ask by it. They are written before the first configuration on whose answer
	// requests depend, and after each that was written, and removed afterwards. It is nil
	// where nobody need find that out.
	Probe func(name string) Configurations
	// Problems are about single policies, in a fixed order. The others are served.
	Problems []FallbackProblem
}

// A FallbackProblem is what a Fallback has to say of a policy.
type FallbackProblem struct {
	Source  v1alpha1.PolicyReference
	Message string
	// LeftOut tells that the policy is not served, and so judged by nobody.
	LeftOut bool
	// Stuck is why a rule does nothing but err, as the reason of a condition, for instance
	// PermissionMissing; empty where each does what it is for.
	Stuck string
	// Missing tells of a rule that reads what is not there.
	Missing bool
	// Broken tells of expressions that do not compile: the policy is served, and errs on
	// every request that it matches.
	Broken bool
}

// NoFallback serves nothing: rules without a native form are not judged, and the
// status of their policies says so.
type NoFallback struct{}

// Serve does nothing.
func (NoFallback) Serve(context.Context, Remaining) (Serving, error) { return Serving{}, nil }

// Changed is never.
func (NoFallback) Changed() <-chan struct{} { return nil }
