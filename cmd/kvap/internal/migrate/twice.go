package migrate

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
)

// actsTwice tells whether a rule may change again what it has changed, as far as its
// text shows: it adds to a list, takes from one, moves something, or makes a value of
// the value that stands there. Where Kyverno and kvap both enforce it, it may act twice.
// A precondition that what it does is not done yet cannot be seen here.
func actsTwice(r *policy.Rule) bool {
	m := r.Mutate
	return m != nil && !m.Existing && (patchesTwice(m.Patch) || loopsTwice(m.ForEach))
}

func loopsTwice(loops []*policy.MutateForEach) bool {
	return slices.ContainsFunc(loops, func(l *policy.MutateForEach) bool { return patchesTwice(l.Patch) || loopsTwice(l.ForEach) })
}

func patchesTwice(p policy.Patch) bool {
	if p.Merge != nil {
		return readsItself(p.Merge.Value(), nil)
	}
	if p.JSON == nil {
		return false
	}
	var operations []struct {
		Op, Path string
		Value    any
	}
	if err := yaml.Unmarshal([]byte(p.JSON.Value), &operations); err != nil {
		return true // variables stand where the form should: nothing is known of it
	}
	for _, o := range operations {
		path := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
		last := path[len(path)-1]
		inList := last == "-" || strings.Contains(last, "{{") || last != "" && strings.Trim(last, "0123456789") == ""
		switch {
		case o.Op == "move", inList && (o.Op == "add" || o.Op == "remove" || o.Op == "copy"), readsItself(o.Value, path):
			return true
		}
	}
	return false
}

// readsItself tells whether a text in a patch reads the field that it is put into: of the
// object, or of the element of a loop.
func readsItself(v any, path []string) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, one := range v {
			if strings.HasPrefix(key, "+(") { // which is added where nothing stands
				continue
			}
			if readsItself(one, append(slices.Clone(path), strings.Trim(key, "()"))) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return readsItself(one, path) })
	case string:
		if !strings.Contains(v, "{{") || len(path) == 0 {
			return false
		}
		last := path[len(path)-1]
		return strings.Contains(v, "request.object") && strings.Contains(v, last) || strings.Contains(v, "element") && strings.Contains(v, last) ||
			strings.Contains(v, "@")
	}
	return false
}

// twiceRules are the rules of a policy that may act twice, by their names.
func twiceRules(source *unstructured.Unstructured) (out []string) {
	for _, p := range PoliciesOf(source) {
		for _, r := range p.Rules {
			if actsTwice(r) && !slices.Contains(out, r.Name) {
				out = append(out, r.Name)
			}
		}
	}
	return out
}
