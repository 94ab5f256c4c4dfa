package celpolicy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/fixtures"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// What registries and GlobalContextEntries say is read as the source reads it.
func TestOutside(t *testing.T) {
	const foreach = `foreach: [{list: request.object.spec.containers, context: [{name: data, imageRegistry: {reference: "{{ element.image }}"%s}}], deny: {conditions: %s}}]`
	const global = `deny: {conditions: %s}`
	world := &interp.Offline{
		Images: map[string]map[string]any{
			"root": about("root", `{"config": {"User": "", "Volumes": {"/data": {}}}}`, `{"layers": [{"size": 2000000000}, {"size": 500000000}]}`),
			"user": about("user", `{"config": {"User": "1000"}}`, `{"layers": [{"size": 10}, {}]}`),
			"none": about("none", `{"config": null}`, `{"layers": []}`),
			"odd":  about("odd", `{"config": {"User": 5, "Volumes": 7}}`, `{"layers": [{}]}`),
		},
		Globals: map[string]any{"known": map[string]any{"max": 2.0, "list": []any{"root", 5.0, nil}}, "list": []any{map[string]any{"n": 1.0}, map[string]any{}}, "known.max": 1.0, "null": nil},
	}
	for name, validate := range map[string]string{
		"a user":              fmt.Sprintf(foreach, "", `{all: [{key: "{{ data.configData.config.User || '' }}", operator: Equals, value: ""}, {key: "{{ data.registry }}", operator: NotEquals, value: ghcr.io}]}`),
		"volumes":             fmt.Sprintf(foreach, "", `{all: [{key: "{{ data.configData.config.Volumes || '' | length(@) }}", operator: GreaterThan, value: 0}]}`),
		"the size":            fmt.Sprintf(foreach, `, jmesPath: "to_string(sum(manifest.layers[*].size))"`, `{all: [{key: "2Gi", operator: LessThan, value: "{{ data }}"}]}`),
		"a size":              fmt.Sprintf(foreach, `, jmesPath: manifest.layers[0].size`, `{all: [{key: "{{ data }}", operator: GreaterThan, value: 100}]}`),
		"a user that must be": fmt.Sprintf(foreach, `, jmesPath: configData.config.User`, `{all: [{key: "{{ data }}", operator: Equals, value: "1000"}]}`),
		"an entry":            `context: known, ` + fmt.Sprintf(global, `{all: [{key: "{{ length(g.list) }}", operator: Equals, value: 3}]}`),
		"a projection":        `context: known.max, ` + fmt.Sprintf(global, `{all: [{key: "{{ g }}", operator: Equals, value: 1}]}`),
		"a list":              `context: list, ` + fmt.Sprintf(global, `{all: [{key: "{{ g[?n == `+"`1`"+`] | length(@) }}", operator: Equals, value: 1}]}`),
		"a key without one":   `context: known, ` + fmt.Sprintf(global, `{all: [{key: "{{ g.min }}", operator: Equals, value: 1}]}`),
		"an unknown entry":    `context: unknown, ` + fmt.Sprintf(global, `{all: [{key: "{{ length(g) }}", operator: Equals, value: 1}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			source := withRule(validate)
			c := convertFixture(t, fixtures.Fixture{Policy: []byte(source)})
			for _, r := range c.compiled.Rules {
				if len(r.Objects) == 0 {
					t.Fatalf("%s: %v", r.Reason, c.Left)
				}
			}
			file, _ := policy.Parse("policy.yaml", []byte(source))
			for _, complete := range []bool{false, true} {
				world.Complete = complete
				old, made := interp.New(file.Policies, nil, world, interp.Limits{}), interp.New(c.made, nil, world, interp.Limits{})
				for _, images := range [][]string{{"root"}, {"user"}, {"none"}, {"odd"}, {"lost"}, {"user", "root"}, {"user", "lost"}} {
					before, after := denied(t, old, images), denied(t, made, images)
					if before != after {
						t.Errorf("%v: the source denies: %v, and its form in CEL: %v", images, before, after)
					}
				}
			}
		})
	}
}

// withRule is a policy on Pods; "context: NAME, " in front of what validates is a GlobalContextEntry g.
func withRule(validate string) string {
	entries := "[]"
	if name, rest, ok := cutContext(validate); ok {
		entries, validate = "[{name: g, globalReference: {name: "+name+"}}]", rest
	}
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: outside, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [v1/Pod], operations: [CREATE]}}]}
      context: ` + entries + `
      validate: {failureAction: Enforce, message: m, ` + validate + `}
`
}

func cutContext(text string) (name, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, "context: "); !ok {
		return "", text, false
	}
	return strings.Cut(text, ", ")
}

// about is what a registry knows of an image.
func about(name, config, manifest string) map[string]any {
	read := func(text string) (v any) {
		if json.Unmarshal([]byte(text), &v) != nil {
			panic(text)
		}
		return v
	}
	return map[string]any{
		"image": name, "resolvedImage": "ghcr.io/" + name + "@sha256:0", "registry": "ghcr.io", "repository": name, "identifier": "latest",
		"configData": read(config), "manifest": read(manifest),
	}
}

// denied reports whether policies deny a Pod with images.
func denied(t *testing.T, in *interp.Interpreter, images []string) bool {
	t.Helper()
	var containers []any
	for i, image := range images {
		containers = append(containers, map[string]any{"name": fmt.Sprint("c", i), "image": image})
	}
	data, err := fixtures.Case{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "namespace": "shop"}, "spec": map[string]any{"containers": containers},
	}}.Request()
	if err != nil {
		t.Fatal(err)
	}
	admission, err := interp.ParseAdmission(data)
	if err != nil {
		t.Fatal(err)
	}
	var native admissionv1.AdmissionRequest
	if err := json.Unmarshal(data, &native); err != nil {
		t.Fatal(err)
	}
	for _, said := range in.Judge(t.Context(), judge.Recorded(&native, admission).Interp()) {
		if said.Status == interp.Fail || said.Status == interp.Error {
			return true
		}
	}
	return false
}

// Objects that are to have two values of one label are asked for by no map.
func TestLabelTwice(t *testing.T) {
	source := `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: outside}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [v1/ConfigMap], operations: [CREATE]}}]}
      context: [{name: few, apiCall: {urlPath: "/api/v1/pods?labelSelector=app=a,app=b", jmesPath: length(items)}}]
      validate: {failureAction: Enforce, message: m, deny: {conditions: {all: [{key: "{{ few }}", operator: Equals, value: 0}]}}}
`
	for _, r := range convertFixture(t, fixtures.Fixture{Policy: []byte(source)}).compiled.Rules {
		if len(r.Objects) > 0 || len(r.Codes) == 0 || r.Codes[0] != diag.OutsideData {
			t.Errorf("%v: %s", r.Codes, r.Reason)
		}
	}
}
