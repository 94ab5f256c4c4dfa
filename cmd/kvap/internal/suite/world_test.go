package suite

import (
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

// What a suite says of the cluster, of services and of registries reaches the rules
// that ask for it.
func TestWorld(t *testing.T) {
	rule := func(name, context, key, value string) string {
		return `  - name: ` + name + `
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [` + context + `]
    validate:
      message: not allowed
      deny: {conditions: {any: [{key: "` + key + `", operator: Equals, value: "` + value + `"}]}}
`
	}
	policy := `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
` + rule("call", `{name: teams, apiCall: {urlPath: /apis/acme.io/v1/teams, jmesPath: "items[].name"}}`, "{{ teams[0] }}", "blue") +
		rule("service", `{name: said, apiCall: {method: GET, service: {url: "https://teams.acme.io/all"}}}`, "{{ said.state }}", "closed") +
		rule("global", `{name: limits, globalReference: {name: limits}}`, "{{ limits.state }}", "closed") +
		rule("listed", `{name: count, apiCall: {urlPath: "/api/v1/namespaces/shop/services", jmesPath: "length(items)"}}`, "{{ count }}", "2") +
		rule("one", `{name: one, apiCall: {urlPath: "/api/v1/namespaces/shop/services/web", jmesPath: "spec.type"}}`, "{{ one }}", "NodePort") +
		rule("labels", `{name: ns, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: "metadata.labels.tier"}}`, "{{ ns }}", "gold") +
		rule("image", `{name: redis, imageRegistry: {reference: "docker.io/redis:7", jmesPath: "configData.created"}}`, "{{ redis }}", "2020-05-01")
	got := ran(t, folder(t, map[string]string{
		"policy.yaml":    policy,
		"resources.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}\n",
		"cluster.yaml": `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {type: ClusterIP}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: bank}, spec: {type: ClusterIP}}
`,
		"values.yaml": `apiVersion: cli.kyverno.io/v1alpha1
kind: Values
namespaces: [{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {tier: gold}}}]
globalContextEntries: [{name: limits, data: {state: closed}}]
`,
		"context.yaml": `apiVersion: cli.kyverno.io/v1alpha1
kind: Context
spec:
  images: [{image: "docker.io/redis:7", config: {created: "2020-05-01"}}]
  apiCallResponses: [{url: "https://teams.acme.io/all", response: {state: closed}}]
`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], clusterResources: [cluster.yaml], variables: values.yaml, context: context.yaml,
apiCallResponses: [{urlPath: /apis/acme.io/v1/teams, response: {items: [{name: blue}]}}],
results: [
  {policy: p, rule: call, kind: ConfigMap, resources: [a], result: fail},
  {policy: p, rule: service, kind: ConfigMap, resources: [a], result: fail},
  {policy: p, rule: global, kind: ConfigMap, resources: [a], result: fail},
  {policy: p, rule: listed, kind: ConfigMap, resources: [a], result: fail},
  {policy: p, rule: one, kind: ConfigMap, resources: [a], result: fail},
  {policy: p, rule: labels, kind: ConfigMap, resources: [a], result: fail},
  {policy: p, rule: image, kind: ConfigMap, resources: [a], result: fail}]}`,
	}))
	want := `call | ConfigMap/shop/a | fail | pass | Ok (webhook)
service | ConfigMap/shop/a | fail | pass | Ok (webhook)
global | ConfigMap/shop/a | fail | pass | Ok (webhook)
listed | ConfigMap/shop/a | fail | pass | Ok (webhook)
one | ConfigMap/shop/a | fail | pass | Ok (webhook)
labels | ConfigMap/shop/a | fail | pass | Ok
image | ConfigMap/shop/a | fail | pass | Ok (webhook)`
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A row may say which operation it is about.
func TestOperationOfARow(t *testing.T) {
	files := map[string]string{
		"policy.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}]}
    validate:
      message: kept
      deny: {conditions: {any: [{key: "{{ request.oldObject.metadata.name }}", operator: Equals, value: a}]}}
`,
		"resources.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], results: [
  {policy: p, rule: r, kind: ConfigMap, resources: [a], operation: DELETE, result: fail},
  {policy: p, rule: r, kind: ConfigMap, resources: [a], operation: CREATE, result: skip}]}`,
	}
	want := `r | ConfigMap/a | fail | pass | Ok
r | ConfigMap/a | skip | pass | Excluded`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	files["kyverno-test.yaml"] = `{policies: [policy.yaml], resources: [resources.yaml], results: [
  {policy: p, rule: r, kind: ConfigMap, resources: [a], operation: REMOVE, result: fail}]}`
	if _, found := Read(folder(t, files)); !found.HasErrors() {
		t.Error("an operation that does not exist is accepted")
	}
}
