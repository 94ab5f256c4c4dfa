package judge

import (
	"encoding/json"
	"maps"
	"strings"
)

// Published are the types of custom kinds as an API server publishes them, by the path at
// which it does: what apply configurations are merged by.
func Published(definitions []map[string]any) map[string][]byte {
	groups := map[string]map[string]any{}
	for _, definition := range definitions {
		spec, _ := definition["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := names["kind"].(string)
		versions, _ := spec["versions"].([]any)
		for _, one := range versions {
			version, _ := one.(map[string]any)
			name, _ := version["name"].(string)
			holder, _ := version["schema"].(map[string]any)
			written, ok := holder["openAPIV3Schema"].(map[string]any)
			if !ok || group == "" || kind == "" || name == "" {
				continue
			}
			path := "/openapi/v3/apis/" + group + "/" + name
			if groups[path] == nil {
				groups[path] = map[string]any{}
			}
			groups[path][strings.Join([]string{group, name, kind}, ".")] = publishedType(written, group, name, kind)
		}
	}
	out := map[string][]byte{}
	for path, schemas := range groups {
		text, err := json.Marshal(map[string]any{"openapi": "3.0.0", "components": map[string]any{"schemas": schemas}})
		if err == nil { // what was read from a file can be written
			out[path] = text
		}
	}
	return out
}

// publishedType is a type with what every object has.
func publishedType(written map[string]any, group, version, kind string) map[string]any {
	text := map[string]any{"type": "string"}
	texts := map[string]any{"type": "object", "additionalProperties": text}
	properties, _ := written["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	properties["apiVersion"], properties["kind"] = text, text
	properties["metadata"] = map[string]any{
		"type": "object", "properties": map[string]any{"labels": texts, "annotations": texts}, "x-kubernetes-preserve-unknown-fields": true,
	}
	out := maps.Clone(written)
	out["properties"] = properties
	out["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": group, "version": version, "kind": kind}}
	return out
}
