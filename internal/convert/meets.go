package convert

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// Meets is how many policy objects a request on each resource meets: what judging
// costs is nearly proportional to that. Where it is more than one, it is held against
// what --pack match would come to; for the first few only, which takes a part of the
// time that all take.
func (done *Compilation) Meets(pack translate.Pack, first int) []report.Meeting {
	var drafts []*vap.Draft
	for _, o := range done.Objects {
		drafts = append(drafts, o.Draft)
	}
	var out []report.Meeting
	for _, r := range resourcesIn(drafts) {
		n := r.met(drafts)
		out = append(out, report.Meeting{Group: r.group, Resource: r.name, Objects: n, WithMatch: n})
	}
	slices.SortStableFunc(out, func(a, b report.Meeting) int { return -cmp.Compare(a.Objects, b.Objects) })
	if pack == translate.PackMatch || len(out) == 0 || out[0].Objects < 2 {
		return out
	}
	compared := out[:min(first, len(out))]
	packed, ok := done.packedByMatch(func(group, resource string) bool {
		rule := vap.ResourceRule{Groups: []string{group}, Resources: []string{resource}}
		return slices.ContainsFunc(compared, func(m report.Meeting) bool { return named{m.Group, m.Resource}.isAmong(rule) })
	})
	for i, m := range compared {
		if ok {
			compared[i].WithMatch = named{m.Group, m.Resource}.met(packed)
		}
	}
	return out
}

// isAmong tells that a rule is about the resource.
func (r named) isAmong(rule vap.ResourceRule) bool {
	return holds(rule.Groups, r.group) && (holds(rule.Resources, r.name) || slices.Contains(rule.Resources, "*/*"))
}

// A named resource is one that policy objects name.
type named struct{ group, name string }

// resourcesIn are the resources that drafts name, without subresources: those that
// people know first, then by name.
func resourcesIn(drafts []*vap.Draft) []named {
	var out []named
	for _, d := range drafts {
		for _, rule := range d.Constraints.Rules {
			out = append(out, namedBy(rule.Groups, rule.Resources)...)
		}
	}
	return bestKnownFirst(out)
}

// namedBy are the resources that a resource rule names, without subresources.
func namedBy(groups, resources []string) (out []named) {
	for _, g := range groups {
		for _, name := range resources {
			if g != "*" && !strings.ContainsAny(name, "*/") {
				out = append(out, named{g, name})
			}
		}
	}
	return out
}

// bestKnownFirst are the resources, each once: those that people know first, then by
// name.
func bestKnownFirst(list []named) []named {
	known := []string{"pods", "deployments", "services", "configmaps", "secrets", "ingresses", "jobs", "statefulsets", "namespaces"}
	place := func(r named) int {
		if i := slices.Index(known, r.name); i >= 0 {
			return i
		}
		return len(known)
	}
	slices.SortFunc(list, func(a, b named) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.name, b.name), cmp.Compare(a.group, b.group))
	})
	return slices.Compact(list)
}

// met is how many of the drafts a request meets that creates one, or that updates
// one if those are more.
func (r named) met(drafts []*vap.Draft) int {
	most := 0
	for _, op := range []string{"CREATE", "UPDATE"} {
		n := 0
		for _, d := range drafts {
			if slices.ContainsFunc(d.Constraints.Rules, func(rule vap.ResourceRule) bool {
				return r.isAmong(rule) && holds(rule.Operations, op)
			}) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// holds tells that a list of a resource rule has a word, or stands for all.
func holds(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, "*")
}
