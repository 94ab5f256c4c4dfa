package pack

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/vap"
)

// withDeletions puts the groups about deletions into those that say the same of new
// objects. Where one reads object, the other reads oldObject.
func withDeletions(groups []group) []group {
	var out, deletions []group
	for _, g := range groups {
		if g.onlyDeletes() {
			deletions = append(deletions, g)
		} else {
			out = append(out, g)
		}
	}
	for _, d := range deletions {
		i := slices.IndexFunc(out, func(g group) bool { return g.saysOfDeleted(d) })
		if i < 0 {
			out = append(out, d)
			continue
		}
		for _, t := range d.targets {
			at := out[i].placeOf(t.Target)
			out[i].targets[at].deletes = true
		}
	}
	return out
}

// saysOfDeleted tells that d says of what is deleted what the group says of what is made.
func (g group) saysOfDeleted(d group) bool {
	return len(g.units) == len(d.units) &&
		!slices.ContainsFunc(d.targets, func(t placed) bool { return g.placeOf(t.Target) < 0 }) &&
		!slices.ContainsFunc(g.targets, func(t placed) bool { return slices.Contains(t.ops, native.Connect) }) &&
		slices.EqualFunc(g.units, d.units, Unit.saysOfDeleted)
}

func (u Unit) saysOfDeleted(d Unit) bool {
	asksForUpdate := len(u.Operations) > 1 || u.Exempt.IsFalse()
	if u.CEL != nil || len(u.Conditions) > 0 || !asksForUpdate || u.Rule != d.Rule || u.attributes(Options{}) != d.attributes(Options{}) {
		return false
	}
	u.Exempt = cel.False()
	ofDeleted := u.inlined().rewritten(func(v cel.Value) cel.Value {
		return v.Rename("object", "oldObject").Rename(vap.PodName, vap.OldPodName)
	})
	return ofDeleted.Text() == d.inlined().Text()
}

// inlined is the unit with its variables written out: those of a deletion have other names.
func (u Unit) inlined() Unit {
	variables := u.Variables
	u.Variables = nil
	return u.rewritten(func(v cel.Value) cel.Value { return vap.Inlined(v, variables) })
}

// placeOf is where the group has a target; -1 where it has not.
func (g group) placeOf(t native.Target) int {
	return slices.IndexFunc(g.targets, func(p placed) bool { return p.Key() == t.Key() })
}
