package registration

import "github.com/kvap/kvap/policy"

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
	if hasSubresource(resource) && resource != "pods/ephemeralcontainers" {
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
