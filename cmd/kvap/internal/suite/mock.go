package suite

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// Mocked values reach the judges in three ways. Those under request become part of
// the request, and a service account's name becomes its user's. Those that name
// what a rule loads from a ConfigMap of a fixed name become that ConfigMap. Both
// judges see these. All others take the place of the context entry that they name,
// which only the interpreter can do: the rule is then not the one that the API
// server has.

// A mocking is a policy with mocked values.
type mocking struct {
	policy *policy.Policy
	// objects are the ConfigMaps that hold mocked values.
	objects []map[string]any
	// replaced tells which rules, as written, had context entries replaced, and by
	// what.
	replaced map[string][]string
	// requests are the values of the request, by rule as written.
	requests map[string]map[string]any
}

// mock gives a policy the values for a resource.
func mock(p *policy.Policy, v *values, resource string) (mocking, error) {
	m := mocking{policy: p, replaced: map[string][]string{}, requests: map[string]map[string]any{}}
	shared := v.forResource(p.Name, resource)
	var rules []any
	if p.Source.Get("spec").Get("rules") != nil {
		rules, _ = p.Source.Get("spec").Get("rules").Value().([]any)
	}
	changed := false
	for i, r := range p.Rules {
		if i >= len(rules) {
			break
		}
		own := v.forRule(p.Name, r.Name)
		of, request := splitRequest(shared, own.Values)
		m.requests[r.Name] = request
		source, ok := rules[i].(map[string]any)
		if !ok {
			continue
		}
		of = m.configMaps(p, r, of)
		if edited := m.replace(r, source, of, own.ForEach); edited != nil {
			rules[i], changed = edited, true
		}
	}
	if !changed {
		return m, nil
	}
	return m, m.reread(rules)
}

// splitRequest parts the values of the request from all others. Those of the rule
// win.
func splitRequest(shared, own map[string]any) (others, request map[string]any) {
	others, request = map[string]any{}, map[string]any{}
	for _, values := range []map[string]any{shared, own} {
		for name, v := range values {
			switch splitPath(name)[0] {
			case "request", "serviceAccountName", "serviceAccountNamespace":
				request[name] = v
			default:
				others[name] = v
			}
		}
	}
	return others, request
}

// tree puts values under their names.
func tree(values map[string]any) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = put(out, splitPath(name), values[name])
	}
	return out
}

// configMaps makes ConfigMaps of the values that a rule loads from ones of a fixed
// name, and returns the values that are left.
func (m *mocking) configMaps(p *policy.Policy, r *policy.Rule, values map[string]any) map[string]any {
	roots := tree(values)
	for _, e := range r.Context {
		root, mocked := roots[e.Name].(map[string]any)
		if e.ConfigMap == nil || !mocked || strings.Contains(e.ConfigMap.Name.Value+e.ConfigMap.Namespace.Value, "{{") {
			continue
		}
		data, ok := texts(root["data"])
		if !ok || len(root) != 1 {
			continue
		}
		namespace := e.ConfigMap.Namespace.Value
		switch {
		case namespace != "":
		case p.Namespaced():
			namespace = p.Namespace
		default:
			namespace = "default"
		}
		m.objects = append(m.objects, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": e.ConfigMap.Name.Value, "namespace": namespace}, "data": data,
		})
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(name string, _ any) bool { return splitPath(name)[0] == e.Name })
	}
	return values
}

// texts is the data of a ConfigMap, if a value can be that.
func texts(v any) (map[string]any, bool) {
	m, ok := v.(map[string]any)
	for _, value := range m {
		if _, isText := value.(string); !isText {
			return nil, false
		}
	}
	return m, ok
}

// replace is the source of a rule with mocked entries in the place of its own; nil
// where nothing is to be replaced. As on the Kyverno command line, an entry that
// is a variable itself is evaluated after all, and wins.
func (m *mocking) replace(r *policy.Rule, source map[string]any, values map[string]any, loops map[string][]any) map[string]any {
	roots := tree(values)
	edit := &edit{roots: roots, loops: loops, text: string(policy.Marshal(r.Source))}
	out := maps.Clone(source)
	for _, key := range []string{"validate", "mutate"} {
		body, _ := source[key].(map[string]any)
		edit.inner = append(edit.inner, loopNames(body["foreach"])...)
	}
	out["context"] = edit.entries(out["context"], true)
	for _, key := range []string{"validate", "mutate"} {
		if body, ok := out[key].(map[string]any); ok {
			body = maps.Clone(body)
			body["foreach"] = edit.foreach(body["foreach"])
			if body["foreach"] == nil {
				delete(body, "foreach")
			}
			out[key] = body
		}
	}
	if len(edit.used) == 0 {
		return nil
	}
	if entries, _ := out["context"].([]any); len(entries) == 0 {
		delete(out, "context")
	}
	slices.Sort(edit.used)
	m.replaced[r.Name] = slices.Compact(edit.used)
	return out
}

// An edit replaces the context entries of one rule.
type edit struct {
	roots map[string]any
	loops map[string][]any
	text  string   // of the rule
	inner []string // names that entries of loops define
	used  []string
}

// entries are the entries of one context. In the context of the rule, values that
// no entry names are defined too, if the rule speaks of them.
func (e *edit) entries(context any, top bool) any {
	old, _ := context.([]any)
	var out []any
	named := map[string]bool{}
	for _, item := range old {
		entry, _ := item.(map[string]any)
		name, _ := entry["name"].(string)
		named[name] = true
		value, mocked := e.roots[name]
		_, isVariable := entry["variable"]
		if !mocked || isVariable {
			out = append(out, item)
			continue
		}
		e.used = append(e.used, name)
		out = append(out, variable(name, value))
	}
	if !top {
		return out
	}
	var more []any
	for _, name := range slices.Sorted(maps.Keys(e.roots)) {
		if !named[name] && strings.Contains(e.text, name) && !slices.Contains(e.inner, name) {
			e.used = append(e.used, name)
			more = append(more, variable(name, e.roots[name]))
		}
	}
	return append(more, out...)
}

// loopNames are the names that the entries of loops define.
func loopNames(foreach any) (names []string) {
	loops, _ := foreach.([]any)
	for _, item := range loops {
		loop, _ := item.(map[string]any)
		entries, _ := loop["context"].([]any)
		for _, e := range entries {
			entry, _ := e.(map[string]any)
			if name, ok := entry["name"].(string); ok {
				names = append(names, name)
			}
		}
		names = append(names, loopNames(loop["foreach"])...)
	}
	return names
}

func variable(name string, value any) map[string]any {
	return map[string]any{"name": name, "variable": map[string]any{"value": value}}
}

// foreach edits the contexts of loops. The values of foreachValues are one for each
// element.
func (e *edit) foreach(list any) any {
	loops, ok := list.([]any)
	if !ok {
		return list
	}
	out := make([]any, len(loops))
	for i, item := range loops {
		loop, ok := item.(map[string]any)
		if !ok {
			out[i] = item
			continue
		}
		loop = maps.Clone(loop)
		entries, _ := e.entries(loop["context"], false).([]any)
		for _, name := range slices.Sorted(maps.Keys(e.loops)) {
			if strings.Contains(e.text, splitPath(name)[0]) {
				e.used = append(e.used, splitPath(name)[0])
				entries = e.perElement(entries, name)
			}
		}
		if len(entries) > 0 {
			loop["context"] = entries
		}
		if inner := e.foreach(loop["foreach"]); inner != nil {
			loop["foreach"] = inner
		}
		out[i] = loop
	}
	return out
}

// perElement defines a variable that has another value for each element.
func (e *edit) perElement(entries []any, name string) []any {
	at := splitPath(name)
	list := make([]any, len(e.loops[name]))
	for i, v := range e.loops[name] {
		list[i] = v
		if len(at) > 1 {
			list[i] = put(nil, at[1:], v)
		}
	}
	entries = slices.DeleteFunc(entries, func(item any) bool {
		entry, _ := item.(map[string]any)
		return entry["name"] == at[0]
	})
	return append(entries, map[string]any{"name": at[0], "variable": map[string]any{
		"value": list, "jmesPath": "[{{ elementIndex }}]",
	}})
}

// reread parses the policy with other rules.
func (m *mocking) reread(rules []any) error {
	source, _ := m.policy.Source.Value().(map[string]any)
	spec, _ := source["spec"].(map[string]any)
	source, spec = maps.Clone(source), maps.Clone(spec)
	spec["rules"] = rules
	source["spec"] = spec
	text, err := json.Marshal(source)
	if err != nil {
		return err
	}
	f, _ := policy.Parse(m.policy.Pos.File, text)
	if len(f.Policies) != 1 {
		return errors.New("the policy cannot be read with its mocked values")
	}
	m.policy = f.Policies[0]
	return nil
}
