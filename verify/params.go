package verify

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/policy"
)

// worlds is how many sets of ConfigMaps a policy that reads some is judged with.
const worlds = 4

// madeUp is a ConfigMap that is to be made.
type madeUp struct {
	namespace, name string
	keys            []string
}

// configMaps are sets of the ConfigMaps that policies read under a constant name
// and that are not given, made by the seed. Policies that read none have one set.
func configMaps(policies []*policy.Policy, given []*unstructured.Unstructured, h *hints, seed uint64) [][]*unstructured.Unstructured {
	var missing []madeUp
	for _, p := range policies {
		for _, e := range readsOf(p) {
			namespace, name := nameOf(p, e.ConfigMap)
			at := slices.IndexFunc(missing, func(m madeUp) bool { return m.namespace == namespace && m.name == name })
			switch {
			case at >= 0:
				for _, key := range keysOf(p.Source) {
					missing[at].keys = add(missing[at].keys, key)
				}
			case !strings.Contains(namespace+name, "{{") && !holdsObject(given, namespace, name):
				missing = append(missing, madeUp{namespace, name, keysOf(p.Source)})
			}
		}
	}
	if len(missing) == 0 {
		return [][]*unstructured.Unstructured{given}
	}
	var out [][]*unstructured.Unstructured
	for i := range worlds {
		c := choose(seed + uint64(i))
		set := append([]*unstructured.Unstructured{}, given...)
		for _, m := range missing {
			set = append(set, configMap(c, h, m.namespace, m.name, m.keys))
		}
		out = append(out, set)
	}
	return out
}

// readsOf are the context entries that read ConfigMaps.
func readsOf(p *policy.Policy) []*policy.ContextEntry {
	var out []*policy.ContextEntry
	add := func(entries []*policy.ContextEntry) {
		for _, e := range entries {
			if e.ConfigMap != nil {
				out = append(out, e)
			}
		}
	}
	var loops func([]*policy.ForEach)
	loops = func(list []*policy.ForEach) {
		for _, f := range list {
			add(f.Context)
			loops(f.ForEach)
		}
	}
	for _, r := range p.Rules {
		add(r.Context)
		if r.Validate != nil {
			loops(r.Validate.ForEach)
		}
	}
	return out
}

func nameOf(p *policy.Policy, e *policy.ConfigMapEntry) (namespace, name string) {
	namespace = e.Namespace.Value
	if namespace == "" {
		namespace = "default"
		if p.Namespaced() {
			namespace = p.Namespace
		}
	}
	return namespace, e.Name.Value
}

func holdsObject(objects []*unstructured.Unstructured, namespace, name string) bool {
	for _, o := range objects {
		if o.GetKind() == "ConfigMap" && o.GetNamespace() == namespace && o.GetName() == name {
			return true
		}
	}
	return false
}

var dataKey = regexp.MustCompile(`\bdata\.(?:"([^"{}]+)"|([A-Za-z0-9_]+))`)

// keysOf are the keys of data that the policy names.
func keysOf(source *policy.Node) []string {
	var out []string
	var walk func(*policy.Node)
	walk = func(n *policy.Node) {
		for _, m := range dataKey.FindAllStringSubmatch(n.Str, -1) {
			out = add(out, m[1]+m[2])
		}
		for _, item := range n.Items {
			walk(item)
		}
		for _, f := range n.Fields {
			walk(f.Value)
		}
	}
	walk(source)
	return out
}

// configMap has most of the keys, and some that are names of other things, since a
// key may be a variable. Values are texts and, as users store them, lists of texts
// in JSON.
func configMap(c *choice, h *hints, namespace, name string, keys []string) *unstructured.Unstructured {
	data := map[string]any{}
	value := func() string {
		switch c.of(6) {
		case 0:
			return one(c, h.all.texts...)
		case 1:
			return one(c, h.all.quantities...)
		case 2:
			return one(c, h.all.texts...) + ", " + one(c, h.all.texts...)
		}
		list := []string{}
		for range c.of(4) {
			list = append(list, one(c, h.all.texts...))
		}
		text, err := json.Marshal(list)
		if err != nil {
			return "[]"
		}
		return string(text)
	}
	for _, key := range keys {
		if c.percent(90) {
			data[key] = value()
		}
	}
	for range c.of(4) {
		data[one(c, h.all.names...)] = value()
	}
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}}
	if len(data) > 0 {
		object["data"] = data
	}
	return &unstructured.Unstructured{Object: object}
}
