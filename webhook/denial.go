package webhook

import (
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
)

// denial is what the user reads: the resource, and what each policy and rule says,
// as YAML. All that is enforced and did not pass is in it, also what would not have
// blocked by itself.
func denial(r *review, found []ruleFailure) string {
	text, err := yaml.Marshal(byPolicy(found))
	if err != nil {
		text = fmt.Appendf(nil, "%v", byPolicy(found))
	}
	return fmt.Sprintf("\n\nresource %s was blocked due to the following policies \n\n%s", r.resource(), text)
}

// byPolicy are the messages that a denial names, by policy and rule.
func byPolicy(found []ruleFailure) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, f := range found {
		if f.Shadow || f.action != policy.Enforce {
			continue
		}
		name := f.nameAmong(found)
		if out[name] == nil {
			out[name] = map[string]string{}
		}
		out[name][f.rule] = f.message
	}
	return out
}

// nameAmong is the policy's name, with as much in front as tells it from others.
func (f ruleFailure) nameAmong(found []ruleFailure) string {
	shares := func(name func(ruleFailure) string) bool {
		return slices.ContainsFunc(found, func(o ruleFailure) bool { return o.servedPolicy != f.servedPolicy && name(o) == name(f) })
	}
	switch {
	case !shares(func(o ruleFailure) string { return o.Name }):
		return f.Name
	case !shares(func(o ruleFailure) string { return o.FullName() }):
		return f.FullName()
	}
	return f.Kind + " " + f.FullName()
}
