package registration

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
	// Local tells that the policies are those of namespaces, each of which is sent what is in
	// its own.
	Local bool
	// Namespaces confines the entry of other policies; nil does not.
	Namespaces *metav1.LabelSelector
	// Conditions are the match conditions that API servers evaluate. Those that may cost them too
	// much are not among them: the engine evaluates all.
	Conditions []policy.CEL
}

// RouteOf is the route of a policy's requests. It depends on nothing else.
func RouteOf(p *policy.Policy, verb Verb) Route { return routeOf(p, verb, EvaluatesNone(p)) }

// routeOf is the route of a policy of which API servers evaluate no match condition, or all.
func routeOf(p *policy.Policy, verb Verb, evaluatesNone bool) Route {
	place := Route{Verb: verb, FailurePolicy: p.FailurePolicy, Local: p.Namespaced()}
	if !evaluatesNone {
		place.Conditions = p.MatchConditions
	}
	place.Once = verb == Mutate && p.Mutating != nil
	if !place.Local {
		place.Namespaces = confined(p)
	}
	return place
}

// EvaluatesNone tells that a policy has match conditions, and that API servers evaluate none of
// them.
func EvaluatesNone(p *policy.Policy) bool { return p.Namespaced() && costsMuch(p.MatchConditions) }

// Path is the path of the server.
func (p Route) Path() string {
	path := "/" + string(p.Verb) + "/" + p.mode()
	if p.Once {
		path += "/once"
	}
	if p.Local {
		path += "/local"
	}
	if p.Namespaces != nil {
		path += "/within/" + hashOf(p.Namespaces)
	}
	if len(p.Conditions) > 0 {
		path += "/if/" + hashOf(p.conditions())
	}
	return path
}

// conditions are the match conditions as the API server is told of them.
func (p Route) conditions() (out []admissionregistrationv1.MatchCondition) {
	for _, c := range p.Conditions {
		out = append(out, admissionregistrationv1.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	return out
}

func (p Route) mode() string {
	if p.FailurePolicy == policy.Ignore {
		return "ignore"
	}
	return "fail"
}

// hashOf tells values apart.
func hashOf(v any) string {
	text, _ := json.Marshal(v) // of what JSON has
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// nameLabel is the label with the name that the API server gives every Namespace.
const nameLabel = "kubernetes.io/metadata.name"

// confined selects the namespaces outside of which a policy of the cluster says nothing; nil
// where there may be none such. The API server sends what is in no namespace all
// the same.
func confined(p *policy.Policy) *metav1.LabelSelector {
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

// A ruleBuilder is a rule of an entry while it is being built: lists without duplicates,
// sorted.
type ruleBuilder struct {
	groups, versions, resources, operations []string
	scope                                   scope
}

// rules are targets in as few rules as need be: what differs in one list only is
// one rule.
func rules(targets []ruleTarget) []admissionregistrationv1.RuleWithOperations {
	shapes := make([]ruleBuilder, len(targets))
	for i, t := range targets {
		shapes[i] = ruleBuilder{[]string{t.group}, []string{t.version}, []string{t.resource}, []string{t.operation}, t.scope}
	}
	for _, list := range []func(*ruleBuilder) *[]string{
		func(s *ruleBuilder) *[]string { return &s.operations },
		func(s *ruleBuilder) *[]string { return &s.versions },
		func(s *ruleBuilder) *[]string { return &s.resources },
	} {
		shapes = merged(shapes, list)
	}
	out := make([]admissionregistrationv1.RuleWithOperations, len(shapes))
	for i, s := range shapes {
		out[i] = s.rule()
	}
	return out
}

// merged joins shapes that are the same but for one list.
func merged(shapes []ruleBuilder, list func(*ruleBuilder) *[]string) []ruleBuilder {
	var out []ruleBuilder
	for _, s := range shapes {
		rest := s
		*list(&rest) = nil
		i := slices.IndexFunc(out, func(o ruleBuilder) bool {
			*list(&o) = nil
			return o.compare(rest) == 0
		})
		if i < 0 {
			out = append(out, s)
			continue
		}
		joined := append(slices.Clone(*list(&out[i])), *list(&s)...)
		slices.Sort(joined)
		*list(&out[i]) = slices.Compact(joined)
	}
	slices.SortFunc(out, ruleBuilder.compare)
	return out
}

func (s ruleBuilder) compare(o ruleBuilder) int {
	return cmp.Or(slices.Compare(s.groups, o.groups), slices.Compare(s.resources, o.resources), slices.Compare(s.versions, o.versions),
		slices.Compare(s.operations, o.operations), cmp.Compare(s.scope, o.scope))
}

func (s ruleBuilder) rule() admissionregistrationv1.RuleWithOperations {
	at := admissionregistrationv1.ScopeType(s.scope)
	out := admissionregistrationv1.RuleWithOperations{
		Rule: admissionregistrationv1.Rule{
			APIGroups: uncovered(s.groups, wildcardCovers), APIVersions: uncovered(s.versions, wildcardCovers),
			Resources: uncovered(s.resources, resourceCovers), Scope: &at,
		},
	}
	for _, o := range []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} { // in the order of a life
		if slices.Contains(s.operations, o) || slices.Contains(s.operations, "*") {
			out.Operations = append(out.Operations, admissionregistrationv1.OperationType(o))
		}
	}
	return out
}

// uncovered are the texts that no other one covers: the API server refuses a list with
// a wildcard beside what it covers, and with it the whole configuration.
func uncovered(list []string, covers func(wide, narrow string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), func(narrow string) bool {
		return slices.ContainsFunc(list, func(wide string) bool { return wide != narrow && covers(wide, narrow) })
	})
}

func wildcardCovers(wide, _ string) bool { return wide == "*" }

// resourceCovers tells whether a resource takes in another one: * is all resources
// without subresources, and */* is all there is.
func resourceCovers(wide, narrow string) bool {
	name, sub, below := strings.Cut(wide, "/")
	otherName, otherSub, otherBelow := strings.Cut(narrow, "/")
	if wide == "*/*" {
		return true
	}
	return below == otherBelow && (name == "*" || name == otherName) && (sub == "*" || sub == otherSub)
}
