package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/read"
)

// Kyverno's merge goes through all of the object: in each list that it knows a key of, it keeps
// the last of the elements that have the same key, whether or not the patch names the list, and
// whether or not its conditions hold. Natively only what the patch says is changed, and no
// expression of a readable length would take such elements away everywhere. So they stay, and
// the rule is told of.

// merges tells of a rule with a patchStrategicMerge.
func merges(m *policy.Mutate) bool {
	return m.Merge != nil || slices.ContainsFunc(m.ForEach, func(f *policy.MutateForEach) bool { return f.Merge != nil })
}

// noteCollapsed tells of the lists in which Kyverno keeps one element of each key.
func noteCollapsed(l *read.Lowering, targets []native.Target) {
	if l.Rule.Expansion != "" || !merges(l.Rule.Mutate) { // what is expanded has the lists of its Pods
		return
	}
	var names []string
	for _, t := range targets {
		for _, list := range keyedLists(t.GVK) {
			if name := list.Path[len(list.Path)-1]; !list.Unique && list.Path[0] != "status" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	l.SetPos(l.Rule.Pos)
	l.Note(diag.ElementsOfOneKey, "of elements of the object that have the same key in a list (%s), Kyverno keeps the last, whether or not the patch names the list; natively all stay",
		strings.Join(slices.Compact(names), ", "))
}
