package verify

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// expressed has the generator care for what a policy in CEL is about: by its constraints, its
// variables, and what else it says in CEL.
func (g *generator) expressed(about *policy.MatchConstraints, variables, others []policy.CEL) {
	composed, all := map[string]cel.Value{}, []cel.Value{}
	read := func(expression string) (v cel.Value, ok bool) {
		v, err := cel.Parse(expression)
		if err == nil {
			all = append(all, v)
		}
		return v, err == nil
	}
	for _, one := range variables {
		if parsed, ok := read(one.Expression); ok {
			composed[one.Name] = parsed
		}
	}
	for _, one := range others {
		read(one.Expression)
	}
	templates := g.constraints(about)
	for _, parsed := range all {
		g.hints.compared(parsed, composed)
		g.ofNamespaces(parsed, composed)
		for _, variable := range []string{"object", "oldObject"} {
			for _, path := range parsed.Paths(variable, composed) {
				g.focus.add(path)
				for _, template := range templates {
					g.focus.add(slices.Concat(template, path))
				}
			}
		}
	}
}

// expressions has values fit what a rule asks in CEL.
func (g *generator) expressions(r *policy.Rule) {
	texts := slices.Clone(r.CELPreconditions)
	composed := map[string]cel.Value{}
	if r.Validate != nil && r.Validate.CEL != nil {
		for _, one := range r.Validate.CEL.Variables {
			if parsed, err := cel.Parse(one.Expression); err == nil {
				composed[one.Name] = parsed
			}
			texts = append(texts, one)
		}
		for _, one := range r.Validate.CEL.Expressions {
			texts = append(texts, policy.CEL{Expression: one.Expression})
		}
	}
	for _, one := range texts {
		if parsed, err := cel.Parse(one.Expression); err == nil {
			g.hints.compared(parsed, composed)
			g.ofNamespaces(parsed, composed)
		}
	}
}

// ofNamespaces has namespaces have the labels and names that an expression asks for.
func (g *generator) ofNamespaces(parsed cel.Value, composed map[string]cel.Value) {
	named := slices.ContainsFunc(parsed.Paths("request", composed), func(path []string) bool { return slices.Equal(path, []string{"namespace"}) })
	for _, path := range parsed.Paths("namespaceObject", composed) {
		switch {
		case slices.Equal(path, []string{"metadata", "name"}):
			named = true
		case len(path) != 3 || path[0] != "metadata":
		case path[1] == "labels":
			g.labels = add(g.labels, path[2])
		case path[1] == "annotations":
			g.notes = add(g.notes, path[2])
		}
	}
	for _, c := range parsed.Constants() {
		if text, ok := c.(string); ok && named {
			g.namespace(text)
		}
	}
}

// compared has the constants of an expression belong to the fields and keys that it reads.
func (h *hints) compared(parsed cel.Value, composed map[string]cel.Value) {
	var names []string
	for _, variable := range []string{"object", "oldObject", "namespaceObject"} {
		for _, path := range parsed.Paths(variable, composed) {
			for i := len(path) - 1; i >= 0; i-- {
				if path[i] != cel.EachElement {
					names = add(names, path[i])
					break
				}
			}
		}
	}
	for _, c := range parsed.Constants() {
		near := names
		if text, ok := c.(string); ok && slices.Contains(names, text) { // which is a key itself
			near = nil
		}
		h.beside(near, func() { h.constant(c) })
	}
}

// constant adds what an expression compares with.
func (h *hints) constant(c any) {
	switch c := c.(type) {
	case string:
		h.text(c)
		h.pattern(c)
		if labelKey.MatchString(c) {
			h.key(c)
		}
	case int64:
		h.number(c)
	case uint64:
		h.number(int64(min(c, 1<<62)))
	case float64:
		h.float(c)
	}
}

// constraints adds the resources that a policy names. Where they are pods, it is about
// their controllers too; the places of their templates are returned.
func (g *generator) constraints(m *policy.MatchConstraints) (templates []mention) {
	if m == nil {
		return nil
	}
	g.selector(m.NamespaceSelector)
	g.selectObjects(m.ObjectSelector)
	for _, r := range m.Rules {
		for _, op := range r.Operations {
			g.operations = add(g.operations, op)
		}
		for _, name := range r.Resources {
			plural, sub, _ := strings.Cut(name, "/")
			g.resource(r, plural, sub)
			if plural != "pods" || sub != "" {
				continue
			}
			for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob"} {
				g.kind(kind)
			}
			templates = []mention{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}}
		}
	}
	return templates
}

// manyTargets is how many resources a wildcard adds.
const manyTargets = 8

// resource adds those that a resource rule may mean by a name.
func (g *generator) resource(r policy.ResourceRule, plural, sub string) {
	named := func(list []string, name string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, name)
	}
	n, some := len(g.targets), false
	for _, known := range g.schemas.Resources("*", "*", "*") {
		if !named(r.Groups, known.Group) || !named(r.Versions, known.Version) || plural != "*" && plural != known.Plural || plural == "*" && isExempt(known) || len(g.targets) >= n+manyTargets {
			continue
		}
		if sub == "" || sub == "*" && plural == "*" {
			g.target(requestTarget{resource: known})
			some = true
		}
		for _, s := range known.Subresources {
			if sub == "*" || sub == s.Name {
				g.target(requestTarget{resource: known, sub: &s})
			}
		}
	}
	for _, group := range r.Groups {
		for _, version := range r.Versions {
			if known, ok := g.schemas.ByResource(group, version, plural); ok && !some && sub == "" {
				g.target(requestTarget{resource: known})
				some = true
			}
		}
	}
	if !some && sub == "" && objectName.MatchString(plural) {
		g.target(requestTarget{resource: guessedResource(r, plural)})
	}
}

// isExempt tells of what native policies are never asked about, and nobody means by a wildcard.
func isExempt(r schema.Resource) bool {
	return r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io"
}

// guessedResource is one of a kind that is not known.
func guessedResource(r policy.ResourceRule, plural string) schema.Resource {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	out := schema.Resource{GVK: schema.GVK{Group: "x.io", Version: "v1", Kind: kind}, Plural: plural, Namespaced: r.Scope != "Cluster", Guessed: true}
	if len(r.Groups) > 0 && r.Groups[0] != "*" {
		out.Group = r.Groups[0]
	}
	if len(r.Versions) > 0 && r.Versions[0] != "*" {
		out.Version = r.Versions[0]
	}
	return out
}
