package celpolicy_test

import (
	"maps"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A GeneratingPolicy makes of an object that is there already what the rule makes of it: neither of the
// two has a request then.
func TestGenerationsOfWhatIsThere(t *testing.T) {
	for _, tt := range []struct {
		name, rule string
		made       int
	}{
		{"of namespaces", namespaces + "generate: {generateExisting: true, synchronize: true, apiVersion: v1, kind: ConfigMap, name: team, namespace: '{{request.object.metadata.name}}', data: {data: {team: '{{request.object.metadata.labels.team}}'}}}", 2},
		{"by the namespace", configMaps + "generate: {generateExisting: true, apiVersion: v1, kind: Secret, name: a, namespace: '{{request.namespace}}', data: {stringData: {a: b}}}", 4},
		{"by an old object", configMaps + "generate: {generateExisting: true, apiVersion: v1, kind: Secret, name: a, namespace: x, data: {stringData: {a: \"{{request.oldObject.metadata.name || 'none'}}\"}}}", 4},
		{"behind preconditions", configMaps + "preconditions: {all: [{key: \"{{request.object.data.count || ''}}\", operator: Equals, value: '5'}]}\ngenerate: {generateExisting: true, apiVersion: v1, kind: Secret, name: a, namespace: x, data: {stringData: {a: b}}}", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var objects []map[string]any
			if err := yaml.Unmarshal([]byte(generatingObjects), &objects); err != nil {
				t.Fatal(err)
			}
			schemas := generatingSchemas(t)
			c := regenerated(t, []byte(generateRule("ClusterPolicy", tt.rule)), schemas)
			if len(c.made) == 0 {
				t.Fatalf("%v\n%v", c.compiled.Diagnostics, c.Left)
			}
			world, made := judge.World(objects, schemas), 0
			before, _ := c.onlyGenerating()
			for _, o := range objects {
				want, got := workOf(t, before, world, thereAlready(o)), map[string]string{}
				for _, p := range c.made {
					if p.Generating.Existing {
						maps.Copy(got, workOf(t, []*policy.Policy{p}, world, thereAlready(o)).made)
					}
				}
				if !maps.Equal(want.made, got) {
					t.Errorf("of %v\n%v\nis made, and not\n%v\n%s", o, got, want.made, strings.Join(want.said, "\n"))
				}
				made += len(want.made)
			}
			if made != tt.made {
				t.Errorf("%d objects are made, want %d", made, tt.made)
			}
		})
	}
}

// thereAlready is what is known of an object without a request.
func thereAlready(o map[string]any) *interp.Request {
	group, version, grouped := strings.Cut(o["apiVersion"].(string), "/")
	if !grouped {
		group, version = "", group
	}
	a := map[string]any{"operation": "", "object": o, "kind": map[string]any{"group": group, "version": version, "kind": o["kind"]}}
	if namespace, ok := o["metadata"].(map[string]any)["namespace"].(string); ok {
		a["namespace"] = namespace
	}
	return &interp.Request{Admission: a, NamespaceLabels: map[string]string{"tier": "dev"}, Scan: true}
}
