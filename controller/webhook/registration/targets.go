package registration

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// ruleTargets are what a policy's rules of a verb are about. missing are the kinds that
// nobody serves.
func ruleTargets(p *policy.Policy, verb Verb, kinds Kinds) (list []ruleTarget, missing []string) {
	switch {
	case p.ImagePolicy() != nil && verb == Mutate:
		return mutated(constrained(p.Validating.MatchConstraints, p.Validating.Autogen)), nil
	case p.Validating != nil:
		return constrained(p.Validating.MatchConstraints, p.Validating.Autogen), nil
	case p.Mutating != nil && verb == Validate: // for what it changes elsewhere
		return constrained(p.Mutating.MatchConstraints, []string{}), nil
	case p.Mutating != nil:
		return mutated(constrained(p.Mutating.MatchConstraints, p.Mutating.Autogen)), nil
	case p.Generating != nil:
		return generating(p.Generating), nil
	}
	for _, rule := range policy.Expand(p) {
		if rule.Invalid || rule.Match == nil || verb == Validate && !validates(rule) || verb == Mutate && !mutates(rule) {
			continue
		}
		for _, f := range matched(rule.Match) {
			operations := operationsOf(rule, f, verb)
			if len(f.Kinds) == 0 {
				list = append(list, targetsOf(kinds, "*/*", operations)...)
			}
			for _, k := range f.Kinds {
				found := targetsOf(kinds, k.Value, operations)
				if len(found) == 0 && len(operations) > 0 && unserved(kinds, k.Value) {
					missing = append(missing, k.Value)
				}
				list = append(list, found...)
			}
		}
	}
	slices.Sort(missing)
	return list, slices.Compact(missing)
}

// About reports of a resource whether a policy may have something to say of its objects.
func About(p *policy.Policy, kinds Kinds) func(group, resource string) bool {
	var targets []ruleTarget
	for _, verb := range []Verb{Validate, Mutate} {
		of, _ := ruleTargets(p, verb, kinds)
		targets = append(targets, of...)
	}
	return func(group, resource string) bool {
		return slices.ContainsFunc(targets, func(t ruleTarget) bool {
			return policy.Wildcard(t.group, group) && policy.Wildcard(t.plural(), resource)
		})
	}
}

func unserved(kinds Kinds, text string) bool {
	k, ok := policy.ParseKind(text)
	return !ok || k.Kind != "*" && len(kinds.Resources(k.Group, k.Version, k.Kind)) == 0
}

// matched are filters that cover what a match block matches. Of filters that must
// all hold, the kinds of one and the operations of all are enough.
func matched(m *policy.MatchBlock) []*policy.Filter {
	switch {
	case len(m.Any) > 0:
		return m.Any
	case len(m.All) > 0:
		one := &policy.Filter{}
		for _, f := range m.All {
			if len(one.Kinds) == 0 {
				one.Kinds = f.Kinds
			}
			switch {
			case len(one.Operations) == 0:
				one.Operations = f.Operations
			case len(f.Operations) > 0:
				one.Operations = common(one.Operations, f.Operations)
			}
		}
		return []*policy.Filter{one}
	case m.Legacy != nil:
		return []*policy.Filter{m.Legacy}
	}
	return nil
}

// common are the operations in both lists. If there are none, nothing matches; the
// first list says so little that it does no harm.
func common(a, b []string) []string {
	both := slices.DeleteFunc(slices.Clone(a), func(o string) bool { return !slices.Contains(b, o) })
	if len(both) == 0 {
		return a
	}
	return both
}

// operationsOf are those on which a rule can have something to say. Nothing is
// mutated that goes away, some rules check only what stays, and images only where they come.
func operationsOf(r *policy.Rule, f *policy.Filter, verb Verb) []string {
	operations := f.Operations
	switch {
	case len(operations) > 0:
	case verb == Mutate:
		operations = []string{"CREATE", "UPDATE"}
	default:
		operations = []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}
	}
	if v := r.Validate; verb == Mutate || v != nil && v.Deny == nil && (v.Pattern != nil || v.AnyPattern != nil || v.PodSecurity != nil) {
		operations = without(operations, "DELETE")
	}
	if r.VerifyImages != nil {
		operations = without(without(operations, "DELETE"), "CONNECT")
	}
	return operations
}

func without(list []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == one })
}

// mutated are the targets on which there is something to change: nothing is mutated that
// goes away.
func mutated(targets []ruleTarget) (out []ruleTarget) {
	for _, t := range targets {
		switch t.operation {
		case "DELETE":
		case "*":
			for _, operation := range []string{"CREATE", "UPDATE", "CONNECT"} {
				t.operation = operation
				out = append(out, t)
			}
		default:
			out = append(out, t)
		}
	}
	return out
}

// generating are the targets of a policy that makes objects. Where it keeps them in step, it
// hears of each change and of the end of what triggers it, whatever it names.
func generating(g *policy.Generating) []ruleTarget {
	if g.MatchConstraints == nil {
		return nil
	}
	var out []ruleTarget
	for _, r := range g.MatchConstraints.Rules {
		if g.Synchronize && !slices.Contains(r.Operations, "*") {
			r.Operations = slices.Concat(r.Operations, []string{"UPDATE", "DELETE"})
			slices.Sort(r.Operations)
			r.Operations = slices.Compact(r.Operations)
		}
		out = append(out, product(r)...)
	}
	return out
}

// constrained are the targets of a policy in CEL, and, if it is about pods only, of the
// controllers that it is expanded for; nil controllers are all.
func constrained(m *policy.MatchConstraints, controllers []string) []ruleTarget {
	if m == nil {
		return nil
	}
	var out []ruleTarget
	pods := true
	for _, r := range m.Rules {
		out = append(out, product(r)...)
		pods = pods && len(r.Resources) == 1 && r.Resources[0] == "pods"
	}
	if !pods || len(m.Rules) == 0 {
		return out
	}
	for _, c := range []struct{ group, resource string }{
		{"apps", "daemonsets"}, {"apps", "deployments"}, {"apps", "replicasets"}, {"apps", "statefulsets"},
		{"batch", "cronjobs"}, {"batch", "jobs"},
	} {
		if controllers == nil || slices.Contains(controllers, c.resource) {
			out = append(out, each(m.Rules[0].Operations, ruleTarget{c.group, "v1", c.resource, anyScope, ""})...)
		}
	}
	return out
}

func product(r policy.ResourceRule) []ruleTarget {
	at := anyScope
	if r.Scope != "" {
		at = scope(r.Scope)
	}
	var out []ruleTarget
	for _, group := range r.Groups {
		for _, version := range r.Versions {
			for _, resource := range r.Resources {
				out = append(out, each(r.Operations, ruleTarget{group, version, resource, at, ""})...)
			}
		}
	}
	return out
}

// A Resource is what the cluster serves for a kind.
type Resource struct {
	Group, Version, Kind, Plural string
	Namespaced                   bool
	Subresources                 []string
}

// Kinds knows what a cluster serves. In its patterns * is any text and ? any
// character; the core group is the empty text.
type Kinds interface {
	Resources(group, version, kind string) []Resource
}

// A ruleTarget is a resource and an operation that a rule is about.
type ruleTarget struct {
	group, version, resource string // the resource with its subresource
	scope                    scope
	operation                string
}

// A scope is that of an entry's rules.
type scope string

// The scopes.
const (
	anyScope   scope = "*"
	cluster    scope = "Cluster"
	namespaced scope = "Namespaced"
)

// targetsOf are what a kind of a rule is about; none if nobody serves it.
func targetsOf(kinds Kinds, text string, operations []string) []ruleTarget {
	k, ok := policy.ParseKind(text)
	if !ok {
		return nil
	}
	if k.Kind == "*" {
		resource := "*"
		if k.Subresource != "" {
			resource = "*/" + k.Subresource
		}
		return each(operations, ruleTarget{k.Group, k.Version, resource, anyScope, ""})
	}
	var out []ruleTarget
	for _, r := range kinds.Resources(k.Group, k.Version, k.Kind) {
		for _, name := range resourceNames(r, k.Subresource) {
			at := ruleTarget{r.Group, r.Version, name, cluster, ""}
			if r.Namespaced {
				at.scope = namespaced
			}
			out = append(out, each(possible(name, operations), at)...)
		}
	}
	return out
}

func each(operations []string, t ruleTarget) []ruleTarget {
	out := make([]ruleTarget, len(operations))
	for i, o := range operations {
		out[i] = t
		out[i].operation = o
	}
	return out
}

// possible are the operations that there are on a resource: only what is below one
// is connected to, and ephemeral containers are not.
func possible(resource string, operations []string) []string {
	if strings.Contains(resource, "/") && resource != "pods/ephemeralcontainers" {
		return operations
	}
	return without(operations, "CONNECT")
}

// resourceNames are the resource itself or those of its subresources that the pattern
// selects. A pod includes its ephemeral containers.
func resourceNames(r Resource, subresource string) []string {
	switch {
	case subresource == "" && r.Group == "" && r.Plural == "pods":
		return []string{"pods", "pods/ephemeralcontainers"}
	case subresource == "":
		return []string{r.Plural}
	case subresource == "*":
		return []string{r.Plural, r.Plural + "/*"}
	case !isPattern(subresource):
		return []string{r.Plural + "/" + subresource}
	}
	return []string{r.Plural + "/*"} // the engine looks closer
}

// A Table is what a cluster serves, as a list.
type Table []Resource

// Resources are those whose kind matches the patterns.
func (t Table) Resources(group, version, kind string) []Resource {
	var out []Resource
	for _, r := range t {
		if policy.Wildcard(group, r.Group) && policy.Wildcard(version, r.Version) && policy.Wildcard(kind, r.Kind) {
			out = append(out, r)
		}
	}
	return out
}

// Validates tells whether a policy has rules that the validating webhook is for:
// those that validate, those that verify images, and those that start work elsewhere when
// an object is admitted.
func Validates(p *policy.Policy) bool {
	if _, more := p.VerifiesMore(); more {
		return false
	}
	return p.Admission && (p.Validating != nil || p.InCEL() && p.StartsWork() || slices.ContainsFunc(p.Rules, validates))
}

// Mutates tells whether a policy has rules that change what is admitted.
func Mutates(p *policy.Policy) bool {
	if _, more := p.VerifiesMore(); more {
		return false
	}
	return p.Admission && (p.ImagePolicy() != nil && p.PinsImages() || p.Mutating != nil && !p.Mutating.ChangesOthers() || slices.ContainsFunc(p.Rules, mutates))
}

func validates(r *policy.Rule) bool {
	return r.Validate != nil || r.StartsWork() || verifies(r)
}

func mutates(r *policy.Rule) bool {
	return r.Mutate != nil && !r.Mutate.Existing || verifies(r) && r.PinsImages()
}

// verifies tells of a rule about images that asks for nothing which is not verified here.
func verifies(r *policy.Rule) bool {
	_, more := r.VerifiesMore()
	return r.VerifyImages != nil && !more
}
