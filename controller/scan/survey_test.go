package scan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	schemaset "github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// A survey counts objects by rule, with three examples; it asks nothing of rules that
// change objects or are asked at admission only, and leaves excluded namespaces out.
func TestSurvey(t *testing.T) {
	p := policies(t)
	p.ExcludeNamespaces = []string{"kube-system"}
	s, err := NewSurvey(p, []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: team, labels: {owner: me}}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: team}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: kube-system}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: e, namespace: team, deletionTimestamp: '2026-01-01T00:00:00Z'}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: f, namespace: team}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: g, namespace: team}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}",
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.Object(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
	}
	got := map[string][]string{}
	counts := map[string]int{}
	for r, v := range s.Violations() {
		name := r.PolicyName() + "/" + r.Name()
		counts[name] = v.Count
		for _, o := range v.Examples {
			got[name] = append(got[name], o.String())
		}
	}
	if d := textdiff.Values(map[string]int{"owners/owner": 4, "owners/left": 0, "unscored/team": 5, "scan-only/tier": 0, "scan-only/host": 0}, counts); d != "" {
		t.Errorf("objects that violate each rule (-want +got):\n%s", d)
	}
	want := map[string][]string{
		"owners/owner":  {"ConfigMap team/a", "ConfigMap team/c", "ConfigMap team/f"},
		"unscored/team": {"ConfigMap team/a", "ConfigMap team/b", "ConfigMap team/c"},
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("examples (-want +got):\n%s", d)
	}
	if s.Objects != 6 {
		t.Errorf("%d objects were judged; want 6", s.Objects)
	}
}

// Of a rule with its expansions, an object counts once.
func TestSurveyCountsExpansionsOnce(t *testing.T) {
	p := policiesOf(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: pods}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: A Pod has a team., pattern: {metadata: {labels: {team: "?*"}}}}
`)
	s, err := NewSurvey(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := "spec: {containers: [{name: c, image: i}]}"
	for _, object := range []string{
		"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team}, " + pod + "}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: b, namespace: team}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, " + pod + "}}}",
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.Object(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	want := []report.Violations{{Count: 2, Examples: []report.Violator{
		{Kind: "Pod", Namespace: "team", Name: "a"}, {Kind: "Deployment", Namespace: "team", Name: "b"},
	}}}
	var got []report.Violations
	for _, v := range s.Violations() {
		for i := range v.Examples {
			v.Examples[i].Message = ""
		}
		got = append(got, v)
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// What objects that may not be read violate is not known; of other rules it is.
func TestSurveyOfWhatMayNotBeRead(t *testing.T) {
	p := policies(t)
	s, err := NewSurvey(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Unread(asked(p, resource{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "ConfigMap", true}))
	got := map[string]bool{}
	for r, v := range s.Violations() {
		got[r.PolicyName()+"/"+r.Name()] = v.Unread
	}
	if d := textdiff.Values(map[string]bool{"owners/owner": true, "owners/left": false, "unscored/team": true, "scan-only/tier": false, "scan-only/host": false}, got); d != "" {
		t.Errorf("rules about objects that may not be read (-want +got):\n%s", d)
	}
}

// TestSurveyByNobody: nobody made the objects that are there. What a rule says of users it excludes is
// about none of them, and what it says of who acts is not known, for that reason.
func TestSurveyByNobody(t *testing.T) {
	file, found := policy.Parse("p.yaml", []byte(`
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: exempt}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "request.?userInfo.username.orValue('') == 'root' || object.metadata.name == 'b'", message: wrong}]
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: asking}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "request.userInfo.username == 'root' || object.metadata.name == 'b'", message: wrong}]
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: annotated}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "namespaceObject.metadata.?annotations[?'owner'].orValue('') == 'me'", message: wrong}]
`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	schemas, err := schemaset.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	o := translate.Options{Release: cel.Latest, Schemas: schemas}
	compiled := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{Translate: o})
	s, err := NewSurvey(Policies{Compiled: compiled, Schemas: schemas}, nil)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "team"}}}
	if err := s.Object(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r, v := range s.Violations() {
		got[r.PolicyName()] = v.String()
	}
	want := map[string]string{
		"exempt":    "1 object violates it: ConfigMap team/a",
		"asking":    "unknown for 1 object: the rule reads who acts, and the request names nobody",
		"annotated": "unknown for 1 object: the Namespace team, which the rule reads, was not given (--param FILE gives what rules look up)",
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
