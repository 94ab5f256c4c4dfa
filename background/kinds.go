package background

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// A kind is a kind of objects that a rule makes.
type kind struct{ apiVersion, kind string }

// kindsOf are the kinds of objects that a rule makes, as far as its text says. A kind
// that is a variable is known only when it is made.
func kindsOf(g *policy.Generate) []kind {
	var out []kind
	add := func(k kind) {
		if k.apiVersion != "" && k.kind != "" && !strings.Contains(k.apiVersion+k.kind, "{{") && !strings.ContainsAny(k.kind, "*?") && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	for _, t := range targetsOf(g) {
		add(kind{t.APIVersion.Value, t.Kind.Value})
		if t.CloneList == nil {
			continue
		}
		for _, listed := range t.CloneList.Kinds {
			if i := strings.LastIndexByte(listed.Value, '/'); i > 0 {
				add(kind{listed.Value[:i], listed.Value[i+1:]})
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
