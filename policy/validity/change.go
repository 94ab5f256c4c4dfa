package validity

import (
	"encoding/json"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// Change is what is refused and warned of when one policy takes the place of another of its
// name: of generate rules Kyverno finds again what they made by what it is made of, and by the
// rule. What is new by itself is for Check.
func Change(before, after *policy.Policy) diag.List {
	was, now := generating(before), generating(after)
	if len(was) == 0 || len(now) == 0 {
		return nil
	}
	if lost := missing(was, now, targetOf); lost != nil {
		return diag.List{diag.Warnf(now[0].Pos, diag.StaleTarget,
			"no synchronization will be performed to the old target resource upon policy updates: what the rule %s made stays as it is; remove it by hand", lost.Name)}
	}
	synchronized := false
	for _, rule := range was {
		synchronized = synchronized || rule.Generate.Synchronize
	}
	of := func(rule *policy.Rule) string { return triggerOf(rule, synchronized) }
	from, to := was, now
	if len(from) > len(to) {
		from, to = to, from
	}
	if changed := missing(from, to, of); changed != nil {
		return diag.List{diag.Errorf(now[0].Pos, diag.ImmutableRule,
			"the name, match, exclude, context and preconditions of a generate rule are immutable, and those of %s differ; add a rule of another name, or delete the policy first", changed.Name)}
	}
	return nil
}

func generating(p *policy.Policy) (out []*policy.Rule) {
	for _, rule := range p.Rules {
		if rule.Generate != nil {
			out = append(out, rule)
		}
	}
	return out
}

// missing is the first rule of which no other one has the same key.
func missing(of, among []*policy.Rule, key func(*policy.Rule) string) *policy.Rule {
	known := map[string]bool{}
	for _, rule := range among {
		known[key(rule)] = true
	}
	for _, rule := range of {
		if !known[key(rule)] {
			return rule
		}
	}
	return nil
}

// targetOf is what a rule makes and copies, as text.
func targetOf(rule *policy.Rule) string {
	return textOf(rule.Source.Get("generate"), "apiVersion", "kind", "namespace", "name", "clone", "cloneList")
}

// triggerOf is what a rule is called, and about, as text.
func triggerOf(rule *policy.Rule, withMatch bool) string {
	keys := []string{"name", "exclude", "context", "preconditions"}
	if withMatch {
		keys = append(keys, "match")
	}
	return textOf(rule.Source, keys...)
}

// textOf are the values of some keys, as text.
func textOf(n *policy.Node, keys ...string) string {
	values := make([]any, len(keys))
	for i, key := range keys {
		values[i] = n.Get(key).Value()
	}
	text, _ := json.Marshal(values) // of what JSON has
	return string(text)
}
