package scan

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

const owners = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: owners
  annotations: {policies.kyverno.io/severity: high, policies.kyverno.io/category: Labels}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: A ConfigMap has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
    - name: left
      match: {any: [{resources: {kinds: [Secret]}}]}
      validate:
        message: The digest is not this one.
        deny: {conditions: {any: [{key: "{{ sha256('x') }}", operator: Equals, value: "{{ request.object.metadata.name }}"}]}}
    - name: mark
      match: {any: [{resources: {kinds: [Service]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {marked: "true"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unscored, annotations: {policies.kyverno.io/scored: "false"}}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: A ConfigMap has a team., pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: admission-only}
spec:
  background: false
  rules:
    - name: never
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: Nothing is good enough., deny: {}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: scan-only}
spec:
  admission: false
  rules:
    - name: tier
      match: {any: [{resources: {kinds: [PersistentVolumeClaim]}}]}
      validate: {message: A claim has a tier., pattern: {metadata: {labels: {tier: "?*"}}}}
    - name: host
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: No host., pattern: {spec: {hostNetwork: false}}}
`

func policies(t *testing.T) Policies { return policiesOf(t, owners) }

func policiesOf(t *testing.T, text string) Policies {
	t.Helper()
	types, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	f, found := policy.Parse("owners.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	return Policies{Schemas: types, Compiled: compile.Policies(compile.Input{Policies: f.Policies}, compile.Options{Translate: translate.Options{
		Release: cel.Default, Schemas: types, Pack: translate.PackMatch, Params: translate.ParamsKvap,
		Existing: translate.AllowExisting, Guard: translate.GuardAuto,
	}})}
}

// Native and remaining rules say of an object what they would say of its creation;
// rules that change objects, and policies without background scans, say nothing.
func TestObject(t *testing.T) {
	j, err := NewJudge(policies(t), []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}}})
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string][]string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}}":                                                      {"owners/owner fail", "unscored/team warn"},
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team, labels: {owner: me}}}":                                 {"owners/owner pass", "unscored/team warn"},
		"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: team}}":                                                         {"owners/left pass"},
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: team}}":                                          {"scan-only/tier fail"},
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: team}, spec: {template: {spec: {hostNetwork: true}}}}": {"scan-only/autogen-host fail"},
		"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: team}, spec: {ports: [{port: 1}]}}":                            nil,
		"{apiVersion: acme.io/v1, kind: Thing, metadata: {name: a, namespace: team}, spec: {anything: [1, {}, x]}}":                    nil,
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(object), &o.Object); err != nil {
			t.Fatal(err)
		}
		scanned, err := j.Object(t.Context(), o, nil)
		if err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		var got []string
		for _, r := range scanned.Results {
			got = append(got, fmt.Sprintf("%s/%s %s", r.Policy, r.Rule, r.Result))
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", object, got, want)
		}
	}
}

// What is read is what some rule that is scanned is about.
func TestResources(t *testing.T) {
	verbs := metav1.Verbs{"list", "watch"}
	served := []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Verbs: verbs}, {Name: "secrets", Kind: "Secret", Verbs: verbs},
			{Name: "services", Kind: "Service", Verbs: verbs}, {Name: "events", Kind: "Event", Verbs: verbs},
			{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Verbs: verbs},
			{Name: "bindings", Kind: "Binding", Verbs: metav1.Verbs{"create"}},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Verbs: verbs}}},
		{GroupVersion: "acme.io/v1", APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "Other", Verbs: verbs}}},
	}
	var got []string
	for _, r := range resourcesOf(policies(t), served) {
		got = append(got, r.Group+"/"+r.Resource)
	}
	if want := []string{"/configmaps", "/secrets", "/persistentvolumeclaims", "apps/deployments"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A rule that asks the cluster is answered by it, as in the webhook.
func TestObjectAsks(t *testing.T) {
	p := policiesOf(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: asks}
spec:
  rules:
    - name: quota
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      context: [{name: quotas, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}/resourcequotas", jmesPath: "length(items)"}}]
      validate: {message: A namespace has a quota., deny: {conditions: {any: [{key: "{{ quotas }}", operator: Equals, value: 0}]}}}
`)
	p.World = &interp.Offline{Answers: map[string][]byte{
		"/api/v1/namespaces/poor/resourcequotas": []byte(`{"items": []}`), "/api/v1/namespaces/rich/resourcequotas": []byte(`{"items": [{}]}`),
	}}
	j, err := NewJudge(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]string{"poor": "fail", "rich": "pass", "unheard": "error"} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": namespace},
		}}
		scanned, err := j.Object(t.Context(), o, nil)
		if err != nil || len(scanned.Results) != 1 || scanned.Results[0].Result != want {
			t.Errorf("%s: %+v, %v; want %s", namespace, scanned.Results, err, want)
		}
	}
}
