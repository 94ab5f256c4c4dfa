package mutate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/anchor"
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

// noteCollapsed tells of the lists in which Kyverno keeps one element of each key: of those that
// the patch names, for there somebody may count on it, else in a note.
func noteCollapsed(l *read.Lowering, targets []native.Target) {
	if l.Rule.Expansion != "" || !merges(l.Rule.Mutate) { // what is expanded has the lists of its Pods
		return
	}
	keys := map[string]bool{}
	patchedKeys(l.Rule.Mutate.Merge, keys)
	for _, f := range l.Rule.Mutate.ForEach {
		patchedKeys(f.Merge, keys)
	}
	var names, patched []string
	for _, t := range targets {
		for _, list := range keyedLists(t.GVK) {
			name := list.Path[len(list.Path)-1]
			if list.Unique || list.Path[0] == "status" {
				continue
			}
			if names = append(names, name); keys[name] {
				patched = append(patched, name)
			}
		}
	}
	switch {
	case len(patched) > 0:
		slices.Sort(patched)
		l.SetPos(l.Rule.Pos)
		l.Note(diag.ElementsOfOneKey, "of elements of the object that have the same key in a list that is patched (%s), Kyverno keeps the last; natively all stay",
			strings.Join(slices.Compact(patched), ", "))
	case len(names) > 0:
		slices.Sort(names)
		*l.Notes = append(*l.Notes, diag.Notef(l.Rule.Pos, diag.ElementsOfOneKey,
			"of elements of the object that have the same key in a list (%s), Kyverno keeps the last, though the patch does not name the list; natively all stay",
			strings.Join(slices.Compact(names), ", ")))
	}
}

// patchedKeys are the keys of a patch, whatever their anchors.
func patchedKeys(n *policy.Node, keys map[string]bool) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		patchedKeys(item, keys)
	}
	for _, f := range n.Fields {
		_, key := anchor.Split(f.Key)
		keys[strings.TrimSuffix(strings.TrimPrefix(key, "+("), ")")] = true
		patchedKeys(f.Value, keys)
	}
}
