package deviation

import (
	"strings"

	"github.com/kvap/kvap/policy"
)

// A MutationDifference is a difference in what mutate rules make of an object: Kyverno's
// statuses and those that are said instead, by rule. A rule without one is absent.
type MutationDifference struct {
	Rules      []*policy.Rule // as written and expanded
	Object     any            // JSON as Go data
	Want, Said map[string]string
}

// A listedMutation is a place of deviation 14.
type listedMutation struct {
	reason  string
	excuses func(MutationDifference) bool
}

// mutations is the table of the places of deviation 14.
func mutations() []listedMutation {
	return []listedMutation{
		{"Kyverno lets a rule that errs leave an empty object, so that later rules say nothing", silenced},
		{"Kyverno expands no foreach within a foreach, and expands rules with targets", expansion},
		{"Kyverno lets the elements of a list share what a template in it came to", inLists(sharedTemplate)},
		{"Kyverno removes the wrong elements where a list has two templates or more", inLists(templates)},
		{"Kyverno puts a template in the place of an element of a list that does not go by names", inLists(unkeyed)},
		{"Kyverno applies a template with a name to all elements", inLists(namedTemplate)},
		{"Kyverno empties a list to which a patch adds an element without a key", inLists(keylessElement)},
		{"Kyverno writes what a condition says without anchors", inMaps(conditionWithContent)},
		{"Kyverno writes keys with anchors that it does not know in patches, and panics on blanks around one", inMaps(strangeAnchor)},
		{"Kyverno drops elements of the object's lists from the first on that has not all keys of its list", keylessObject},
	}
}

// OfMutation tells whether a difference in a mutation is a listed one.
func OfMutation(m MutationDifference) (Listed, bool) {
	for _, l := range mutations() {
		if l.excuses(m) {
			return Listed{Number: 14, Reason: l.reason}, true
		}
	}
	return Listed{}, false
}

// silenced: Kyverno says nothing of a rule behind one that errs.
func silenced(m MutationDifference) bool {
	erred := false
	for _, r := range m.Rules {
		if erred && m.Want[r.Name] == "" && m.Said[r.Name] != "" {
			return true
		}
		erred = erred || m.Want[r.Name] == "error" && m.Said[r.Name] == "error"
	}
	return false
}

// expansion: Kyverno has a result for a rule for pod controllers that is another
// here, or not there.
func expansion(m MutationDifference) bool {
	for _, r := range m.Rules {
		if r.Mutate == nil {
			continue
		}
		if r.Mutate.Existing && m.Want["autogen-"+r.Name]+m.Want["autogen-cronjob-"+r.Name] != "" {
			return true
		}
		for _, f := range r.Mutate.ForEach {
			if len(f.ForEach) > 0 && m.Want["autogen-"+r.Origin]+m.Want["autogen-cronjob-"+r.Origin] != "" {
				return true
			}
		}
	}
	return false
}

// merges are the merge patches of the rules that said or were to say something.
func (m MutationDifference) merges() (out []*policy.Node) {
	for _, r := range m.Rules {
		if r.Mutate == nil || m.Want[r.Name] == "" && m.Said[r.Name] == "" {
			continue
		}
		out = append(out, merges(r.Mutate.Patch, r.Mutate.ForEach)...)
	}
	return out
}

func merges(p policy.Patch, loops []*policy.MutateForEach) (out []*policy.Node) {
	if p.Merge != nil {
		out = append(out, p.Merge)
	}
	for _, f := range loops {
		out = append(out, merges(f.Patch, f.ForEach)...)
	}
	return out
}

// inMaps excuses what is in a map of a merge patch.
func inMaps(is func(f policy.Field) bool) func(MutationDifference) bool {
	return func(m MutationDifference) bool {
		for _, n := range m.merges() {
			if fieldOf(n, is) {
				return true
			}
		}
		return false
	}
}

func fieldOf(n *policy.Node, is func(policy.Field) bool) bool {
	for _, f := range n.Fields {
		if is(f) || fieldOf(f.Value, is) {
			return true
		}
	}
	for _, item := range n.Items {
		if fieldOf(item, is) {
			return true
		}
	}
	return false
}

// A patchedList is a list of a merge patch.
type patchedList struct {
	key       string // under which it stands, without its anchor
	builtin   bool   // the object is of a built-in kind
	elements  []*policy.Node
	templates []*policy.Node // of the elements, those with anchors
	there     []any          // the object's elements
}

// inLists excuses what is in a list of a merge patch.
func inLists(is func(patchedList) bool) func(MutationDifference) bool {
	return func(m MutationDifference) bool {
		object, _ := m.Object.(map[string]any)
		apiVersion, _ := object["apiVersion"].(string)
		group, _, grouped := strings.Cut(apiVersion, "/")
		builtin := !grouped || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
		for _, n := range m.merges() {
			if listOf(n, m.Object, builtin, is) {
				return true
			}
		}
		return false
	}
}

// listOf looks for a list below a map of a patch, beside what the object has there.
func listOf(n *policy.Node, object any, builtin bool, is func(patchedList) bool) bool {
	there, _ := object.(map[string]any)
	for _, f := range n.Fields {
		value := there[bare(f.Key)]
		if f.Value.Kind != policy.List {
			if listOf(f.Value, value, builtin, is) {
				return true
			}
			continue
		}
		l := patchedList{key: bare(f.Key), builtin: builtin, elements: f.Value.Items}
		l.there, _ = value.([]any)
		for _, e := range l.elements {
			if e.Kind == policy.Map && fieldOf(e, isAnchored) {
				l.templates = append(l.templates, e)
			}
			for _, x := range append(l.there, nil) {
				if listOf(e, x, builtin, is) {
					return true
				}
			}
		}
		if is(l) {
			return true
		}
	}
	return false
}

func isAnchored(f policy.Field) bool { return bare(f.Key) != f.Key }

func hasAnchor(f policy.Field, anchor string) bool {
	return isAnchored(f) && strings.HasPrefix(f.Key, anchor+"(")
}

// sharedTemplate: a template with keys to add, or with templates in it, and
// elements to share it.
func sharedTemplate(l patchedList) bool {
	for _, t := range l.templates {
		if len(l.there) > 1 && fieldOf(t, func(f policy.Field) bool {
			return hasAnchor(f, "+") || f.Value.Kind == policy.List && fieldOf(f.Value, isAnchored)
		}) {
			return true
		}
	}
	return false
}

func templates(l patchedList) bool { return len(l.templates) > 1 }

func namedTemplate(l patchedList) bool {
	for _, t := range l.templates {
		if t.Get("name") != nil {
			return true
		}
	}
	return false
}

// unkeyed: a template in a list that does not go by names.
func unkeyed(l patchedList) bool {
	keys := keysOf(l.key)
	return len(l.templates) > 0 && len(l.there) > 0 && (!l.builtin || len(keys) == 0 || keys[0] != "name")
}

func keylessElement(l patchedList) bool {
	keys := keysOf(l.key)
	for _, e := range l.elements {
		if !l.builtin || len(keys) == 0 || e.Kind != policy.Map || fieldOf(e, isAnchored) {
			continue
		}
		if e.Get(keys[0]) == nil && (e.Get("$patch") == nil || len(e.Fields) > 1) {
			return true
		}
	}
	return false
}

// conditionWithContent: below a condition stands a key or element without an
// anchor of its own.
func conditionWithContent(f policy.Field) bool {
	if !hasAnchor(f, "") && !hasAnchor(f, "<") {
		return false
	}
	return hasContent(f.Value)
}

func hasContent(n *policy.Node) bool {
	for _, f := range n.Fields {
		if !hasAnchor(f, "") || hasContent(f.Value) {
			return true
		}
	}
	for _, item := range n.Items {
		if item.Kind != policy.Map || hasContent(item) {
			return true
		}
	}
	return false
}

func strangeAnchor(f policy.Field) bool {
	trimmed := policy.Field{Key: strings.TrimSpace(f.Key)}
	return hasAnchor(f, "=") || hasAnchor(f, "X") || hasAnchor(f, "^") || trimmed.Key != f.Key && isAnchored(trimmed)
}

// keylessObject: a list of the object that goes by keys has an element without
// one, or with some of those of another.
func keylessObject(m MutationDifference) bool { return len(m.merges()) > 0 && keyless("", m.Object) }

func keyless(key string, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, item := range v {
			if keyless(k, item) {
				return true
			}
		}
	case []any:
		counts := map[int]bool{}
		for _, item := range v {
			m, ok := item.(map[string]any)
			if keys := keysOf(key); ok && len(keys) > 0 {
				counts[given(m, keys)] = true
			}
			if keyless("", item) {
				return true
			}
		}
		return counts[0] || len(counts) > 1
	}
	return false
}

// given counts the keys that an element has.
func given(m map[string]any, keys []string) (n int) {
	for _, key := range keys {
		if v := m[key]; v != nil && v != "" {
			n++
		}
	}
	return n
}

// keysOf are the keys by which lists of built-in kinds go, by the name of the list.
func keysOf(list string) []string {
	switch list {
	case "containers", "initContainers", "ephemeralContainers", "volumes", "env", "imagePullSecrets", "secrets", "webhooks":
		return []string{"name"}
	case "volumeMounts":
		return []string{"mountPath"}
	case "volumeDevices":
		return []string{"devicePath"}
	case "hostAliases":
		return []string{"ip"}
	case "ownerReferences":
		return []string{"uid"}
	case "conditions":
		return []string{"type"}
	case "ports":
		return []string{"containerPort", "port", "protocol"}
	case "topologySpreadConstraints":
		return []string{"topologyKey", "whenUnsatisfiable"}
	}
	return nil
}
