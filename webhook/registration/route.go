package registration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

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

// nameLabel is the label with the name that the API server gives every Namespace.
const nameLabel = "kubernetes.io/metadata.name"

// confined selects the namespaces outside of which a policy says nothing; nil
// where there may be none such. The API server sends what is in no namespace all
// the same.
func confined(p *policy.Policy) *metav1.LabelSelector {
	if p.Namespaced() {
		return inNamespaces([]string{p.Namespace})
	}
	var names []string
	var selector *metav1.LabelSelector
	for i, rule := range p.Rules {
		n, s := ruleConfined(rule.Match)
		switch {
		case n == nil && s == nil,
			i > 0 && (n == nil) != (names == nil),
			i > 0 && s != nil && !reflect.DeepEqual(s, selector):
			return nil
		}
		names, selector = append(names, n...), s
	}
	if names != nil {
		return inNamespaces(names)
	}
	return selector
}

func inNamespaces(names []string) *metav1.LabelSelector {
	slices.Sort(names)
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: nameLabel, Operator: metav1.LabelSelectorOpIn, Values: slices.Compact(names)},
	}}
}

// ruleConfined is what all filters of a match block that can make it true say of
// the namespace: names, or a selector that they share.
func ruleConfined(m *policy.MatchBlock) (names []string, selector *metav1.LabelSelector) {
	if m == nil {
		return nil, nil
	}
	for i, f := range alternatives(m) {
		n, s := literal(f.Namespaces), plainSelector(f.NamespaceSelector)
		switch {
		case n != nil && (i == 0 || names != nil):
			names = append(names, n...)
		case n == nil && s != nil && (i == 0 || reflect.DeepEqual(s, selector)):
			selector = s
		default:
			return nil, nil
		}
	}
	return names, selector
}

// alternatives are the filters one of which must hold. Of filters that must all
// hold, each says enough.
func alternatives(m *policy.MatchBlock) []*policy.Filter {
	switch {
	case len(m.Any) > 0:
		return m.Any
	case len(m.All) > 0:
		for _, f := range m.All {
			if literal(f.Namespaces) != nil || plainSelector(f.NamespaceSelector) != nil {
				return []*policy.Filter{f}
			}
		}
		return m.All[:1]
	case m.Legacy != nil:
		return []*policy.Filter{m.Legacy}
	}
	return nil
}

// literal are names without wildcards; nil if one has some, or there are none.
func literal(texts []policy.Text) []string {
	var names []string
	for _, t := range texts {
		if t.Value == "" || isPattern(t.Value) {
			return nil
		}
		names = append(names, t.Value)
	}
	return names
}

func isPattern(s string) bool { return strings.ContainsAny(s, "*?") }

// plainSelector is a selector in the form of the API server; nil if there is none,
// or it has wildcards, or selects everything.
func plainSelector(s *policy.Selector) *metav1.LabelSelector {
	if s == nil || len(s.MatchLabels) == 0 && len(s.Expressions) == 0 {
		return nil
	}
	if slices.ContainsFunc(s.MatchLabels, func(p policy.Pair) bool { return isPattern(p.Key) || isPattern(p.Value) }) {
		return nil
	}
	out := SelectorOf(s)
	if _, err := metav1.LabelSelectorAsSelector(out); err != nil {
		return nil // the engine says what is wrong with it
	}
	return out
}

// SelectorOf is a selector in the form of the API server, as it is written.
func SelectorOf(s *policy.Selector) *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	for _, pair := range s.MatchLabels {
		metav1.AddLabelToSelector(out, pair.Key, pair.Value)
	}
	for _, e := range s.Expressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	return out
}
