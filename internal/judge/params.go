package judge

import (
	"maps"

	"github.com/kvap/kvap/translate"
)

// mirrored are the params of kvap's own kind that stand beside the ConfigMaps among
// objects, as the controller makes them: with the same name and data, where there are
// none yet.
func mirrored(objects []map[string]any) (out []map[string]any) {
	apiVersion, kind := translate.ParamsKvap.Kind()
	given := map[[2]any]bool{}
	for _, o := range objects {
		if o["apiVersion"] == apiVersion && o["kind"] == kind {
			given[nameOf(o)] = true
		}
	}
	for _, o := range objects {
		if o["apiVersion"] != "v1" || o["kind"] != "ConfigMap" || given[nameOf(o)] {
			continue
		}
		mirror := maps.Clone(o)
		mirror["apiVersion"], mirror["kind"] = apiVersion, kind
		out = append(out, mirror)
	}
	return out
}

// nameOf is the namespace and name of an object.
func nameOf(object map[string]any) [2]any {
	meta, _ := object["metadata"].(map[string]any)
	return [2]any{meta["namespace"], meta["name"]}
}
