package scan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// What admission alone judges by is reported of the objects that it judged: those that were written
// since the policy is as it is. Rules that ask who acts, and policies that are labelled so, are not.
func TestReportsOfAdmission(t *testing.T) {
	p := policiesOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: admission}
spec:
  background: false
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      reportProperties: {operation: "{{ request.operation }}", kind: "{{ request.object.kind }}", unknown: "{{ request.object.data.none }}"}
      validate: {message: m, pattern: {metadata: {labels: {owner: "?*"}}}}
    - name: user
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, deny: {conditions: {any: [{key: "{{ request.userInfo.username }}", operator: Equals, value: ""}]}}}
    - name: subject
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      exclude: {any: [{subjects: [{kind: User, name: admin}]}]}
      validate: {message: m, pattern: {metadata: {labels: {owner: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: undated}
spec:
  background: false
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {owner: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unreported, labels: {reports.kyverno.io/disabled: ""}}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: m, pattern: {metadata: {labels: {owner: "?*"}}}}
`)
	since := time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)
	for _, r := range p.Compiled.Rules {
		if r.PolicyName() == "admission" {
			p.Since = map[*policy.Policy]time.Time{r.Policy: since}
		}
	}
	for name, want := range map[string]struct {
		written    string
		forReports bool
		results    []string
	}{
		"before the policy":        {"2026-01-01T10:00:00Z", true, nil},
		"within the same second":   {"2026-01-01T11:00:00Z", true, nil},
		"since":                    {"2026-01-01T11:00:01Z", true, []string{"owner fail"}},
		"of what is there at all":  {"2026-01-01T11:00:01Z", false, []string{"unreported owner fail"}},
		"its status alone changed": {"2026-01-01T10:30:00Z", true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p.ForReports = want.forReports
			j, err := NewJudge(p, nil)
			if err != nil {
				t.Fatal(err)
			}
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "a", "creationTimestamp": "2026-01-01T08:00:00Z", "managedFields": []any{
					map[string]any{"manager": "kubectl", "operation": "Update", "time": want.written},
					map[string]any{"manager": "other", "operation": "Update", "subresource": "status", "time": "2026-01-02T00:00:00Z"},
				},
			}}}
			scanned, err := j.Object(t.Context(), o, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range scanned.Results {
				text := r.Rule + " " + r.Result
				if r.Policy != "admission" {
					text = r.Policy + " " + text
				} else if len(r.Properties) != 2 || r.Properties["operation"] != "CREATE" || r.Properties["kind"] != "ConfigMap" || !r.Admission {
					t.Errorf("%s: %+v", text, r)
				}
				got = append(got, text)
			}
			if !slices.Equal(got, want.results) {
				t.Errorf("got %v, want %v", got, want.results)
			}
		})
	}
}

// A policy in CEL that has no native form is asked about the objects that it matches, and, where these
// are Pods, about their controllers.
func TestCELWithoutNativeForm(t *testing.T) {
	p := policiesOf(t, `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: counted}
spec:
  evaluation: {admission: {enabled: false}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "object.spec.hostNetwork != true", message: no host}]
`)
	for _, r := range p.Compiled.Rules {
		if r.Target == translate.Native {
			t.Fatal("the policy is native")
		}
	}
	verbs := metav1.Verbs{"list", "watch"}
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Verbs: verbs}, {Name: "pods", Kind: "Pod", Verbs: verbs}}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Verbs: verbs}, {Name: "controllerrevisions", Kind: "ControllerRevision", Verbs: verbs}}},
	}
	var about []string
	for _, r := range resourcesOf(p, served) {
		about = append(about, r.Resource)
	}
	if want := []string{"pods", "deployments"}; !slices.Equal(about, want) {
		t.Errorf("it is about %v, want %v", about, want)
	}
	j, err := NewJudge(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	pod := map[string]any{"hostNetwork": true, "containers": []any{map[string]any{"name": "c", "image": "i"}}}
	for _, o := range []map[string]any{
		{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "team"}, "spec": pod},
		{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "a", "namespace": "team"}, "spec": map[string]any{"template": map[string]any{"spec": pod}}},
	} {
		scanned, err := j.Object(t.Context(), &unstructured.Unstructured{Object: o}, nil)
		if err != nil || len(scanned.Results) != 1 || scanned.Results[0].Result != "fail" || scanned.Results[0].Message != "no host" {
			t.Errorf("%v: %+v, %v", o["kind"], scanned.Results, err)
		}
	}
}

// A rule that changes objects passes where an object is as the rule makes it; else it says nothing, for
// nobody knows what became of the object since. An exception skips it.
func TestReportsOfMutations(t *testing.T) {
	p := policiesOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  rules:
    - name: add
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      preconditions: {all: [{key: "{{ request.object.metadata.name }}", operator: NotEquals, value: other}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {team: a}}}}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: in-cel}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'a'}}}"}}]
`)
	f, found := policy.Parse("exception.yaml", []byte(`
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: spared, namespace: team}
spec:
  exceptions: [{policyName: labels, ruleNames: [add]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [spared]}}]}
`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	p.Exceptions, p.ForReports, p.Mutations = f.Exceptions, true, true
	j, err := NewJudge(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		labels  map[string]any
		results []string
	}{
		"a":      {map[string]any{"team": "a"}, []string{"add pass []", "in-cel pass []"}},
		"b":      {map[string]any{"team": "b"}, nil},
		"other":  {map[string]any{"team": "a"}, []string{"in-cel pass []"}},
		"spared": {map[string]any{"team": "b"}, []string{"add skip [spared]"}},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "team", "labels": want.labels},
		}}
		scanned, err := j.Object(t.Context(), o, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range scanned.Results {
			got = append(got, fmt.Sprintf("%s %s %v", r.Rule, r.Result, r.Exceptions))
		}
		if !slices.Equal(got, want.results) {
			t.Errorf("%s: got %v, want %v", name, got, want.results)
		}
	}
}
