package interp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/jsonpatch"
	"github.com/kvap/kvap/policy"
)

// FuzzMutate pins that mutating never crashes, always ends, changes nothing that it
// is given, makes the same twice, and that its patch makes what it says.
func FuzzMutate(f *testing.F) {
	for _, body := range []string{
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", +(tty): true, env: [{(name): "A*", value: "1"}]}, {<(image): "x*"}]}}}`,
		`{patchStrategicMerge: {metadata: {finalizers: [x], labels: {+(a): "{{ request.object.spec.x }}"}}, spec: {(x): "?*", =(m): {y: null}, l: [{$patch: replace}, {z: 1}]}}}`,
		`{patchStrategicMerge: {spec: {containers: [{name: a, ports: [{containerPort: 1, protocol: TCP}, {(name): p, hostPort: 2}], $patch: delete}]}}}`,
		`{patchesJson6902: "- {op: add, path: /spec/l/-, value: {{ request.object.spec }}}\n- {op: move, from: /spec/x, path: /spec/l/0/y}\n- {op: copy, from: /spec, path: /spec/q}\n- {op: test, path: /spec/z, value: null}\n- {op: remove, path: /spec/l/-1}\n- {op: replace, path: /metadata/name, value: b}"}`,
		`{foreach: [{list: "request.object.spec.l || ` + "`[1,2]`" + `", patchStrategicMerge: {spec: {"{{ elementIndex }}": "{{ element }}{{ request.object.spec.x }}"}}}, {list: "request.object.spec", order: Descending, foreach: [{list: "keys(element)", patchesJson6902: "[{\"op\":\"add\",\"path\":\"/a/{{element}}/-1/b\",\"value\":{{elementIndex}}}]"}]}]}`,
	} {
		f.Add(body, `{"metadata": {"name": "a", "namespace": "b", "finalizers": ["q", "q"]}, "spec": {"x": "5", "l": [{"k": "x"}, null], "m": {"y": 1}, "containers": [{"name": "a", "image": "xx", "env": [{"name": "AB"}]}, {"name": "b", "ports": [{"containerPort": 1, "name": "p"}]}, {}]}}`)
	}
	f.Fuzz(func(t *testing.T, body, object string) {
		file, ds := policy.Parse("policy.yaml", []byte(strings.ReplaceAll(widgetPolicy("mutate: "+body), "[Widget]", "[Widget, Pod]")))
		var o map[string]any
		if ds.HasErrors() || kjson.Unmarshal([]byte(object), &o) != nil || o == nil {
			return
		}
		o["apiVersion"], o["kind"] = "v1", "Pod"
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		in := New(file.Policies, nil, &Offline{Time: time.Unix(0, 0)}, Limits{})
		for _, request := range []map[string]any{create(o), admissionRequest("DELETE", nil, o)} {
			before := mustMarshal(t, request)
			first := in.Mutate(ctx, &Request{Admission: request})
			second := in.Mutate(ctx, &Request{Admission: request})
			if after := mustMarshal(t, request); after != before {
				t.Fatalf("the request was changed:\n%s", textdiff.Values(before, after))
			}
			for i, r := range first.Rules {
				if strings.HasPrefix(r.Message, errPanic.Error()) {
					t.Fatalf("crashed: %s", r.Message)
				}
				if r.Status != second.Rules[i].Status || !sameObject(r.After, second.Rules[i].After) {
					t.Fatalf("mutated twice:\n%s", textdiff.Values(r, second.Rules[i]))
				}
			}
			if first.After == nil {
				continue
			}
			got, _, err := jsonpatch.Patch(first.Patch()).Apply(first.Before)
			if err != nil || !datum.Equal(got, first.After) {
				t.Fatalf("its patch makes another object: %v\n%s", err, textdiff.Values(first.After, got))
			}
		}
	})
}

func mustMarshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
