package translate_test

import (
	"strings"
	"testing"
)

// What an API server makes an error of, or another object than Kyverno, stays with the webhook:
// it writes no part of an object, decodes strictly what was patched, and reads the object anew
// between two mutations.
func TestMutatingTraps(t *testing.T) {
	t.Parallel()
	const head = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: p}
spec:
  autogen: {podControllers: {controllers: []}}
  matchConstraints: {resourceRules: [{apiGroups: [GROUP], apiVersions: [v1], resources: [RESOURCES], operations: [CREATE, UPDATE]}]}
  matchConditions: [{name: c, expression: 'has(object.metadata.name)'}]
  `
	patch := func(expressions ...string) string {
		var out []string
		for _, e := range expressions {
			out = append(out, "{patchType: JSONPatch, jsonPatch: {expression: '"+e+"'}}")
		}
		return "mutations: [" + strings.Join(out, ", ") + "]"
	}
	add := func(path, value string) string {
		return `JSONPatch{op: "add", path: ` + path + `, value: ` + value + `}`
	}
	one := func(path, value string) string { return patch("[" + add(path, value) + "]") }
	apply := func(expression string) string {
		return "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: '" + expression + "'}}]"
	}
	for name, tt := range map[string]struct{ resources, spec, want string }{
		// Parts of an object.
		"elements by their indexes":        {"pods", one(`"/spec/containers"`, `object.spec.containers.transformList(i, c, c)`), "webhook"},
		"labels of any kind":               {"'*'", one(`"/metadata/annotations"`, `object.metadata.labels`), "webhook"},
		"a label of any kind":              {"'*'", one(`"/metadata/annotations"`, `{"a": object.metadata.name}`), "native"},
		"distinct elements":                {"pods", one(`"/spec/containers"`, `object.spec.containers.distinct()`), "webhook"},
		"a part in a list that is made":    {"pods", one(`"/metadata/annotations"`, `[object.metadata.labels][0]`), "webhook"},
		"a part in a map that is made":     {"pods", one(`"/metadata/annotations"`, `{"a": object.metadata.labels}.a`), "webhook"},
		"a part behind a choice":           {"pods", one(`"/metadata/annotations"`, `(object.metadata.name == "p" ? object.metadata : object.metadata).labels`), "webhook"},
		"the groups of a user":             {"pods", one(`"/metadata/finalizers"`, `request.userInfo.groups`), "webhook"},
		"the name of a user":               {"pods", one(`"/metadata/annotations"`, `{"by": request.userInfo.username}`), "native"},
		"distinct elements to be applied":  {"pods", apply(`Object{spec: Object.spec{volumes: object.spec.?volumes.orValue([]).distinct()}}`), "webhook"},
		"an element as it is, or one made": {"pods", apply(`Object{spec: Object.spec{containers: object.spec.containers.map(c, c.name == "a" ? Object.spec.containers{name: "a", tty: true} : c)}}`), "webhook"},
		"elements that are made, added":    {"pods", apply(`Object{spec: Object.spec{containers: [Object.spec.containers{name: "a", tty: true}] + [Object.spec.containers{name: "b", tty: true}]}}`), "native"},
		"texts in a list":                  {"pods", one(`"/metadata/finalizers"`, `["a/b", "c/d"].map(x, x + "e")`), "native"},
		"paths of a list":                  {"pods", patch(`["a", "b"].map(k, ` + add(`"/metadata/labels/" + k`, `k`) + `)`), "native"},
		// Fields that the kind does not have.
		"a field of what is scaled":          {"replicationcontrollers/scale", one(`"/spec/minReadySeconds"`, `1`), "webhook"},
		"an unknown field in an object":      {"pods", one(`"/spec/securityContext"`, `Object.spec.securityContext{runAsNonRoot: true, allowPrivilegeEscalation: false}`), "webhook"},
		"known fields in an object":          {"pods", one(`"/spec/securityContext"`, `Object.spec.securityContext{runAsNonRoot: true}`), "native"},
		"an unknown field in a map":          {"pods", one(`"/spec/containers/0/securityContext"`, `{"fsGroup": 1}`), "webhook"},
		"known fields in a map":              {"pods", one(`"/spec/containers/0/securityContext"`, `{"runAsUser": 1}`), "native"},
		"an unknown field in a list":         {"pods", one(`"/spec/tolerations"`, `[{"op": "Exists"}]`), "webhook"},
		"a text for a number":                {"pods", one(`"/spec/activeDeadlineSeconds"`, `"1"`), "webhook"},
		"a map for a list":                   {"pods", one(`"/spec/tolerations"`, `{"key": "a"}`), "webhook"},
		"an unknown field of elements":       {"pods", patch(`object.spec.containers.map(c, ` + add(`"/spec/containers/" + string(object.spec.containers.indexOf(c)) + "/hostPID"`, `true`) + `)`), "webhook"},
		"a field of elements":                {"pods", patch(`object.spec.containers.map(c, ` + add(`"/spec/containers/" + string(object.spec.containers.indexOf(c)) + "/tty"`, `true`) + `)`), "native"},
		"a path that a variable is":          {"pods", `variables: [{name: base, expression: 'has(object.spec.nodeName) ? "/spec/a" : "/spec/b"'}]` + "\n  " + one(`variables.base + "/c"`, `true`), "webhook"},
		"a path that is joined":              {"pods", one(`["", "spec", "nope"].join("/")`, `true`), "webhook"},
		"a field of metadata":                {"pods", one(`"/metadata/label"`, `{"a": "b"}`), "webhook"},
		"what is copied":                     {"pods", patch(`[JSONPatch{op: "copy", from: "/metadata", path: "/spec/securityContext"}]`), "webhook"},
		"a number that is copied to a label": {"pods", patch(`[JSONPatch{op: "copy", from: "/spec/activeDeadlineSeconds", path: "/metadata/labels/a"}]`), "webhook"},
		"no operation":                       {"pods", patch(`[JSONPatch{path: "/spec/hostNetwork", value: true}]`), "webhook"},
		"no path":                            {"pods", patch(`[JSONPatch{op: "remove"}]`, `[JSONPatch{op: "remove"}]`), "webhook"},
		"an empty path":                      {"pods", patch(`[JSONPatch{op: "remove", path: ""}]`, `[`+add(`"/"`, `"a"`)+`]`), "webhook"},
		"a text with dyn":                    {"pods", one(`"/spec/activeDeadlineSeconds"`, `dyn("1")`), "webhook"},
		"a part behind orValue()":            {"pods", apply(`Object{spec: Object.spec{volumes: object.spec.?volumes.orValue()}}`), "webhook"},
		"a map of nothing":                   {"pods", patch(`object.spec.containers.map().map(c, ` + add(`"/metadata/labels/a"`, `"b"`) + `)`), "webhook"},
		"a sum of lists of objects":          {"pods", apply(`Object{spec: Object.spec{volumes: object.spec.?volumes.orValue([]) + oldObject.spec.?volumes.orValue([])}}`), "webhook"},
		"picked elements under a name":       {"pods", apply(`[object.spec.containers.filter(v, v.name != "a")].map(vs, Object{spec: Object.spec{containers: vs}})[0]`), "webhook"},
		"what only some kinds have, read":    {"'*'", patch(`object.spec.nodeName == "a" ? [` + add(`"/spec/nope"`, `true`) + `] : []`), "webhook"},
		// What the object is between two mutations.
		"an empty list before another":   {"pods", patch(`[`+add(`"/spec/volumes"`, `[]`)+`]`, `[`+add(`"/spec/volumes/-"`, `{"name": "cache"}`)+`]`), "webhook"},
		"an empty variable":              {"pods", `variables: [{name: m, expression: '{}'}]` + "\n  " + patch(`[`+add(`"/metadata/labels"`, `variables.m`)+`]`, `[`+add(`"/metadata/labels/x"`, `"y"`)+`]`), "webhook"},
		"the last label":                 {"pods", patch(`[JSONPatch{op: "remove", path: "/metadata/labels/app"}]`, `[`+add(`"/metadata/labels/x"`, `"y"`)+`]`), "webhook"},
		"a container, and all":           {"pods", patch(`[`+add(`"/spec/containers/-"`, `{"name": "s", "image": "s"}`)+`]`, `object.spec.containers.filter(c, !has(c.resources)).map(c, `+add(`"/spec/containers/0/tty"`, `true`)+`)`), "webhook"},
		"false, and whether it is there": {"pods", patch(`[`+add(`"/spec/hostNetwork"`, `false`)+`]`, `has(object.spec.hostNetwork) ? [`+add(`"/metadata/labels/x"`, `"y"`)+`] : []`), "webhook"},
		"a quantity":                     {"pods", patch(`[`+add(`"/spec/overhead"`, `{"cpu": "0.5"}`)+`]`, `object.spec.overhead["cpu"] == "0.5" ? [`+add(`"/metadata/labels/x"`, `"y"`)+`] : []`), "webhook"},
		"labels, one by one":             {"pods", patch(`has(object.metadata.labels) ? [] : [`+add(`"/metadata/labels"`, `{"a": "b"}`)+`]`, `[`+add(`"/metadata/labels/x"`, `"y"`)+`]`), "native"},
		"texts in a list, one by one":    {"pods", patch(`[`+add(`"/spec/containers/0/args"`, `["a"]`)+`]`, `object.spec.containers[0].args.exists(x, x == "a") ? [`+add(`"/spec/containers/0/args/-"`, `"b"`)+`] : []`), "native"},
		"a probe":                        {"pods", patch(`[`+add(`"/spec/containers/0/livenessProbe"`, `{"httpGet": {"path": "/", "port": 80}}`)+`]`, `has(object.spec.containers[0].livenessProbe.periodSeconds) ? [] : [`+add(`"/metadata/labels/x"`, `"y"`)+`]`), "webhook"},
		"made elements":                  {"pods", `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{initContainers: ["a"].map(n, Object.spec.initContainers{name: "x", image: "y"})}}'}}, {patchType: JSONPatch, jsonPatch: {expression: 'object.spec.?initContainers.orValue([]).exists(c, has(c.imagePullPolicy)) ? [] : [` + add(`"/metadata/labels/x"`, `"y"`) + `]'}}]`, "webhook"},
		"other places":                   {"pods", patch(`[`+add(`"/spec/hostNetwork"`, `false`)+`]`, `has(object.spec.hostPID) ? [`+add(`"/metadata/labels/x"`, `"y"`)+`] : []`), "native"},
	} {
		group := "''"
		p := translateText(t, strings.NewReplacer("GROUP", group, "RESOURCES", tt.resources).Replace(head)+tt.spec+"\n", setting{release: 36, mutations: true})
		got, _, _ := strings.Cut(p.targets(), " ")
		if got != tt.want || strings.Contains(p.targets(), "KV216") {
			t.Errorf("%s: %s, want %s: %v", name, got, tt.want, p.result.Diagnostics)
			continue
		}
		if got == "native" {
			bothMutate(t, name, p.result, nil, podRequest)
		}
	}
}
