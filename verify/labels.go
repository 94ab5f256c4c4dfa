package verify

import (
	"regexp"
	"slices"

	"github.com/kvap/kvap/policy"
)

// selector has namespaces meet a selector of their labels. That of the name is met by a
// namespace of that name.
func (g *generator) selector(s *policy.Selector) {
	if s == nil {
		return
	}
	g.selectors = append(g.selectors, s)
	for _, r := range requirements(s) {
		if r.Key == namespaceName {
			for _, name := range r.Values {
				g.namespace(name)
			}
		}
	}
}

// selectObjects has objects meet a selector of their labels.
func (g *generator) selectObjects(s *policy.Selector) {
	if s != nil {
		g.selected = append(g.selected, s)
	}
}

// requirements are what a selector asks for, each as an expression.
func requirements(s *policy.Selector) (out []policy.SelectorExpression) {
	if s == nil {
		return nil
	}
	for _, p := range s.MatchLabels {
		out = append(out, policy.SelectorExpression{Key: p.Key, Operator: "In", Values: []string{p.Value}})
	}
	return append(out, s.Expressions...)
}

// namespaceLabels are labels of a namespace.
func (g *generator) namespaceLabels(c *choice) map[string]string {
	out := map[string]string{}
	for range c.of(3) {
		out[one(c, g.hints.all.keys...)] = one(c, g.hints.all.labels...)
	}
	m := &maker{choice: c, hints: g.hints}
	m.meet(g.selectors, func(key, value string) { out[key] = value }, func(key string) { delete(out, key) })
	for _, key := range g.labels {
		if c.percent(65) {
			out[key] = m.label(key)
		}
	}
	return out
}

// instance is a text that a wildcard may stand for, of those that have a form, if any has.
func (m *maker) instance(pattern string, form *regexp.Regexp) string {
	texts := instances(pattern)
	if valid := slices.DeleteFunc(slices.Clone(texts), func(s string) bool { return !form.MatchString(s) }); len(valid) > 0 {
		texts = valid
	}
	return one(m.choice, texts...)
}

func (m *maker) label(key string) string {
	return near(m, key, func(p *pool) []string { return p.labels })
}

// meet has labels meet selectors: often all that one asks for, but for some that it lacks.
func (m *maker) meet(selectors []*policy.Selector, set func(key, value string), drop func(key string)) {
	for _, s := range selectors {
		if !m.percent(60) {
			continue
		}
		for _, r := range requirements(s) {
			if !m.percent(90) {
				continue
			}
			key := m.instance(r.Key, labelKey)
			switch r.Operator {
			case "In":
				set(key, m.instance(one(m.choice, r.Values...), labelValue))
			case "Exists":
				set(key, m.label(key))
			default: // NotIn and DoesNotExist
				drop(key)
			}
		}
	}
}

// namespaceAnnotations are annotations of a namespace, where the policy may look at some.
func (g *generator) namespaceAnnotations(c *choice) map[string]string {
	if !g.hints.words["annotations"] {
		return nil
	}
	out := map[string]string{}
	for range c.of(3) {
		out[one(c, g.hints.all.keys...)] = one(c, g.hints.all.texts...)
	}
	m := &maker{choice: c, hints: g.hints}
	for _, key := range g.notes {
		if c.percent(65) {
			out[key] = near(m, key, func(p *pool) []string { return p.texts })
		}
	}
	return out
}
