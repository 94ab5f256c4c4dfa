package background

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// literalKinds are the kinds of objects that targets make or copy, as far as their text says.
// A kind that is a variable is known only when it is made.
func literalKinds(targets []*policy.GenerateTarget) []ObjectKind {
	var out []ObjectKind
	add := func(k ObjectKind) {
		if k.APIVersion != "" && k.Kind != "" && !strings.Contains(k.APIVersion+k.Kind, "{{") && !strings.ContainsAny(k.Kind, "*?") && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for _, t := range targets {
		if t.CloneList == nil {
			add(ObjectKind{t.APIVersion.Value, t.Kind.Value})
			continue
		}
		for _, listed := range t.CloneList.Kinds {
			if i := strings.LastIndexByte(listed.Value, '/'); i > 0 {
				add(ObjectKind{listed.Value[:i], listed.Value[i+1:]})
			}
		}
	}
	return out
}

// targetsOf are the targets of a rule: its own, or those of its loops.
func targetsOf(g *policy.Generate) []*policy.GenerateTarget {
	if len(g.ForEach) == 0 {
		return []*policy.GenerateTarget{&g.GenerateTarget}
	}
	var out []*policy.GenerateTarget
	for _, f := range g.ForEach {
		out = append(out, &f.GenerateTarget)
	}
	return out
}
