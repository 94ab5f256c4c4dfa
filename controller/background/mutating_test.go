package background

import (
	"strings"
	"testing"
)

// follows marks the ConfigMaps of a Namespace with its team.
const follows = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: follows}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [UPDATE]}]}
  targetMatchConstraints: {expression: 'resource.List("v1", "configmaps", object.metadata.name)'}
  targetMatchConditions: [{name: open, expression: "!has(object.immutable)"}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data/team", value: string(request.object.metadata.labels.team)}]'}
`

const (
	openMap   = `{apiVersion: v1, kind: ConfigMap, metadata: {name: open, namespace: shop, uid: c1}, data: {a: b}}`
	closedMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: closed, namespace: shop, uid: c2}, immutable: true, data: {a: b}}`
)

func (b *bench) team(name string) any {
	data, _ := b.stored("v1", "ConfigMap", "shop", name)["data"].(map[string]any)
	return data["team"]
}

// A request has the objects changed that the policy finds for it, once it is stored.
func TestMutatingPolicyTargets(t *testing.T) {
	b := start(t, follows, shop, openMap, closedMap)
	old := b.stored("v1", "Namespace", "", "shop")
	next := object(t, strings.Replace(shop, "team: a", "team: b", 1))
	names := b.asked("UPDATE", next, old)
	if len(names) != 1 {
		t.Fatal(names)
	}
	if again := b.doRequest(t.Context(), names[0]); again == 0 || b.team("open") != nil {
		t.Fatalf("again after %v: %v", again, b.cluster.log)
	}
	b.cluster.store(next)
	if again := b.doRequest(t.Context(), names[0]); again != 0 || b.team("open") != "b" || b.team("closed") != nil || len(b.told)+len(b.requests) != 0 {
		t.Errorf("again after %v: %v, %v", again, b.cluster.log, b.told)
	}
}

// A policy that finds its targets by an expression is carried out for what is there when it
// is new, and not each hour; one that does not changes what is there, whenever that is
// looked at. One that asks for the user does neither.
func TestMutatingPolicyOfWhatIsThere(t *testing.T) {
	const marks = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: marks}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  targetMatchConstraints: {objectSelector: {matchExpressions: [{key: never, operator: DoesNotExist}]}}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data/team", value: "x"}]'}
`
	for _, tt := range []struct {
		name, policy string
		first, again any
	}{
		{"an expression", follows, "a", nil},
		{"no expression", marks, "x", "x"},
		{"the user", strings.Replace(follows, "!has(object.immutable)", "request.userInfo.username != 'x'", 1), nil, nil},
	} {
		b := generatingFor(t, tt.policy, shop, openMap)
		if got := b.team("open"); got != tt.first {
			t.Errorf("%s: %v, want %v; %v %v", tt.name, got, tt.first, b.cluster.log, b.told)
		}
		b.cluster.store(object(t, openMap))
		for _, p := range b.current.Load().policies {
			b.scanAll(p, true)
		}
		b.drain()
		if got := b.team("open"); got != tt.again {
			t.Errorf("%s, looked at again: %v, want %v", tt.name, got, tt.again)
		}
	}
}

// A policy of a namespace changes nothing outside of it, whatever its expression gives.
func TestMutatingPolicyOfNamespace(t *testing.T) {
	text := strings.Replace(follows, "kind: MutatingPolicy\nmetadata: {name: follows}", "kind: NamespacedMutatingPolicy\nmetadata: {name: follows, namespace: shop}", 1)
	text = strings.Replace(text, "resources: [namespaces]", "resources: [pods]", 1)
	text = strings.Replace(text, `resource.List("v1", "configmaps", object.metadata.name)`,
		`true ? {"apiVersion": dyn("v1"), "kind": dyn("ConfigMap"), "metadata": dyn({"name": "elsewhere", "namespace": "other"}), "data": dyn({"a": "b"})} : {}`, 1)
	const elsewhere = `{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: other}, data: {a: b}}`
	pod := `{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, uid: p1, labels: {team: a}}}`
	b := start(t, text, shop, elsewhere, pod)
	old := b.stored("v1", "Pod", "shop", "web")
	next := object(t, strings.Replace(pod, "team: a", "team: b", 1))
	names := b.asked("UPDATE", next, old)
	b.cluster.store(next)
	if len(names) != 1 {
		t.Fatal(names)
	}
	b.doRequest(t.Context(), names[0])
	if len(b.cluster.log) != 0 || len(b.told) != 1 || !strings.Contains(b.told[0].Note, "not in the namespace of the policy") {
		t.Errorf("%v, %v", b.cluster.log, b.told)
	}
}
