package compile

import (
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// namespaceSteps are what the policies of one namespace may take together, whoever may
// write them.
const namespaceSteps = 2_000_000

// SharedSteps are Options.Steps of policies of which those of one namespace share what it
// has, so that no namespace holds up the others. It does not depend on what is known of
// them from before.
func SharedSteps(ps []*policy.Policy) func(*policy.Policy) int64 {
	n := map[string]int64{}
	for _, p := range ps {
		if p.Namespaced() {
			n[p.Namespace]++
		}
	}
	return func(p *policy.Policy) int64 {
		steps := int64(budget.PerPolicy)
		if p.Namespaced() {
			steps = min(steps, namespaceSteps/n[p.Namespace])
		}
		return steps
	}
}

// limit leaves to the webhook what policies of one namespace have beyond the limit. An
// API server compiles and keeps each object, whoever wrote the policy. The rules come in
// the order of the policies; one that does not fit makes no room for those after it.
func (c *compilation) limit() {
	most := c.options.NamespaceLimit
	if most == 0 {
		return
	}
	rules, objects := map[string]int{}, map[string]map[string]bool{}
	for i, l := range c.lowered {
		if !l.Policy.Namespaced() {
			continue
		}
		namespace := l.Policy.Namespace
		if objects[namespace] == nil {
			objects[namespace] = map[string]bool{}
		}
		left := translate.Left{}
		for _, r := range l.Native(c.options.Translate) {
			rules[namespace]++
			for _, key := range r.Objects {
				objects[namespace][key] = true
			}
			if rules[namespace] <= most && len(objects[namespace]) <= most {
				continue
			}
			left[r.Rule] = diag.Warnf(r.Pos, diag.NamespaceLimit,
				"the policies of namespace %s have more than %d native rules or objects, which is the limit for each namespace; the webhook will judge this rule", namespace, most)
		}
		if len(left) > 0 {
			c.lowered[i] = l.Without(left)
		}
	}
}
