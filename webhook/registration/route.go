package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/policy"
)

// A Verb is what a webhook is asked for.
type Verb string

// The verbs.
const (
	Validate Verb = "validate"
	Mutate   Verb = "mutate"
)

// A Route is where the API server sends the requests of a policy: an entry of a
// webhook configuration, and a path of the server. Policies that share a route are
// judged by one call.
type Route struct {
	Verb          Verb
	FailurePolicy policy.FailurePolicy
	// Once tells that the policy is not asked again about what other webhooks make of the
	// object: a MutatingPolicy need not say whether it has changed the object already.
	Once bool
	// Namespaces confines the entry; nil does not.
	Namespaces *metav1.LabelSelector
	// Own is the full name of the one policy that the entry is for, because it has
	// match conditions.
	Own string
}

// RouteOf is the route of a policy's requests. It depends on nothing else.
func RouteOf(p *policy.Policy, verb Verb) Route {
	place := Route{Verb: verb, FailurePolicy: p.FailurePolicy, Namespaces: confined(p)}
	place.Once = verb == Mutate && p.Mutating != nil
	if len(p.MatchConditions) > 0 {
		place.Own = p.FullName()
	}
	return place
}

// Path is the path of the server.
func (p Route) Path() string {
	path := "/" + string(p.Verb) + "/" + p.mode()
	if p.Once {
		path += "/once"
	}
	if p.Namespaces != nil {
		path += "/within/" + p.hash()
	}
	if p.Own != "" {
		path += "/policy/" + p.Own
	}
	return path
}

// Name is the name of the entry, which stands in front of a denial.
func (p Route) Name() string {
	name := string(p.Verb) + "-" + p.mode()
	if p.Once {
		name += "-once"
	}
	if p.Namespaces != nil || p.Own != "" {
		name += "-" + p.hash()
	}
	return name + ".webhook.kvap.dev"
}

func (p Route) mode() string {
	if p.FailurePolicy == policy.Ignore {
		return "ignore"
	}
	return "fail"
}

// hash tells routes of the same verb and failure policy apart.
func (p Route) hash() string {
	selector, _ := json.Marshal(p.Namespaces) // it has no value that JSON lacks
	sum := sha256.Sum256([]byte(string(selector) + p.Own))
	return hex.EncodeToString(sum[:5])
}
