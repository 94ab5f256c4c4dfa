//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// mutations are mutate rules of all kinds.
func mutations() []string {
	return []string{
		`{patchStrategicMerge: {metadata: {labels: {a: b, +(team): none}, annotations: {"c/d": "e"}}}}`,
		`{patchStrategicMerge: {spec: {hostNetwork: false, +(securityContext): {runAsNonRoot: true, runAsUser: 7}}}}`,
		`{patchStrategicMerge: {spec: {nodeSelector: {+(disk): hdd, zone: z}, tolerations: [{key: k, operator: Exists}]}}}`,
		`{patchStrategicMerge: {spec: {(dnsPolicy): ClusterFirst, terminationGracePeriodSeconds: 50}}}`,
		`{patchStrategicMerge: {spec: {containers: [{(image): "*:latest", imagePullPolicy: IfNotPresent}]}}}`,
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", env: [{name: B, value: x}, {name: C, value: z}]}]}}}`,
		`{patchStrategicMerge: {spec: {containers: [{(name): "*", securityContext: {privileged: false, capabilities: {drop: [ALL]}}}]}}}`,
		`{patchStrategicMerge: {spec: {containers: [{name: side, image: s, volumeMounts: [{name: w, mountPath: /w}]}], volumes: [{name: w, emptyDir: {medium: Memory}}]}}}`,
		`{patchStrategicMerge: {spec: {imagePullSecrets: [{name: u}, {name: t}], hostAliases: [{ip: 4.3.2.1, hostnames: [c]}]}}}`,
		`{patchStrategicMerge: {metadata: {annotations: {note: null}, labels: {by: "{{ request.userInfo.username }}", of: "is-{{ request.object.metadata.name }}"}}}}`,
		`{patchesJson6902: "- {op: add, path: /spec/nodeSelector/zone, value: z}\n- {op: remove, path: /metadata/annotations/note}"}`,
		`{patchesJson6902: "- {op: add, path: /spec/tolerations/-, value: {key: k, operator: Exists}}"}`,
		`{patchesJson6902: "- {op: add, path: /spec/containers/0/env/-, value: {name: Z, value: z}}"}`,
		`{foreach: [{list: request.object.spec.containers, patchStrategicMerge: {spec: {containers: [{name: "{{ element.name }}", image: "reg/{{ element.image }}"}]}}}]}`,
		`{foreach: [{list: request.object.spec.containers, patchesJson6902: "- {op: add, path: '/spec/containers/{{elementIndex}}/tty', value: true}"}]}`,
		`{foreach: [{list: request.object.spec.containers, patchStrategicMerge: {metadata: {annotations: {"c/{{ element.name }}": v}}}}]}`,
	}
}

// mutablePods are Pods that mutations change, the last with elements of one key.
func mutablePods() []string {
	return []string{
		`spec: {containers: [{name: a, image: "i:latest"}]}`,
		`spec: {nodeSelector: {disk: ssd}, imagePullSecrets: [{name: s}, {name: t}], volumes: [{name: v, emptyDir: {}}], securityContext: {runAsUser: 5},
  containers: [{name: a, image: "i:1", env: [{name: A, value: "1"}, {name: B, value: "2"}]}, {name: side, image: "j:latest", env: [{name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}`,
		`spec: {hostAliases: [{ip: 1.2.3.4, hostnames: [a]}, {ip: 1.2.3.4, hostnames: [b]}],
  containers: [{name: a, image: "i:latest", env: [{name: A, value: "1"}, {name: A, value: "2"}], ports: [{containerPort: 80}, {containerPort: 80}]}]}`,
	}
}

// A Pod that MutatingAdmissionPolicies have changed is what the API server makes of what the
// interpreter makes of it, but for elements of one key, which stay.
func TestObjectsAreChangedAlike(t *testing.T) {
	shared.needMutators(t)
	shared.Namespace(t, "changed", nil)
	pods := shared.judged.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("changed")
	made := func(o map[string]any) (map[string]any, error) {
		u := (&unstructured.Unstructured{Object: o}).DeepCopy()
		got, err := pods.Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return nil, err
		}
		for _, field := range []string{"uid", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(got.Object, "metadata", field)
		}
		delete(got.Object, "status")
		return got.Object, nil
	}
	account := testcluster.Read(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: changed}")[0]
	_ = shared.Create(t.Context(), account) // without one, no Pod is taken
	type attempt struct {
		note         string
		object, want map[string]any
		same         bool // nothing has the same key twice
	}
	var attempts []attempt
	var objects []any
	for i, mutation := range mutations() {
		name := fmt.Sprintf("changes-%d", i)
		text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: " + name + ", annotations: {pod-policies.kyverno.io/autogen-controllers: none}}\nspec:\n  rules:\n  - name: r\n" +
			"    match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {case: \"" + name + "\"}}}}]}\n    mutate: " + mutation + "\n"
		file, found := policy.Parse("p.yaml", []byte(text))
		if found.HasErrors() {
			t.Fatal(found)
		}
		compiled := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{
			Translate: translate.Options{Release: shared.release, Schemas: shared.schemas(t), Mutations: true}, Emit: vap.EmitOptions{ExcludeNamespaces: []string{}},
		})
		if len(compiled.Mutating) != 1 {
			t.Fatalf("%s has no native form: %v", mutation, compiled.Diagnostics)
		}
		objects = append(objects, compiled.Mutating[0].All()...)
		for k, pod := range mutablePods() {
			o := testcluster.Read(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: changed, labels: {case: "+name+"}, annotations: {note: one, other: two}}\n"+pod)[0].Object
			base, err := made(o)
			if err != nil {
				t.Fatal(err)
			}
			changed := interp.New(file.Policies, nil, &interp.Offline{}, interp.Limits{}).Mutate(t.Context(), &interp.Request{Admission: map[string]any{
				"operation": "CREATE", "name": "p", "namespace": "changed", "userInfo": map[string]any{"username": "kvap-admin"},
				"kind":     map[string]any{"group": "", "version": "v1", "kind": "Pod"},
				"resource": map[string]any{"group": "", "version": "v1", "resource": "pods"}, "object": base,
			}})
			want, err := made(changed.After)
			if err != nil { // what is changed so is refused
				want = nil
			}
			attempts = append(attempts, attempt{mutation + " of " + pod, o, want, k < 2})
		}
	}
	for _, o := range objects {
		text, err := vap.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		shared.Apply(t, strings.TrimPrefix(string(text), "---\n"))
	}
	last := attempts[len(attempts)-3]
	testcluster.Soon(t, "the policies are in effect", func() bool {
		got, err := made(last.object)
		return err == nil && textdiff.Values(user(last.want), user(got)) == ""
	})
	for _, a := range attempts {
		got, err := made(a.object)
		if (err != nil) != (a.want == nil) {
			t.Errorf("%s: %v", a.note, err)
		}
		if err != nil || a.want == nil {
			continue
		}
		if d := textdiff.Values(user(a.want), user(got)); d != "" && a.same {
			t.Errorf("%s (-interpreter +native):\n%s", a.note, d)
		}
	}
	t.Logf("%d objects", len(attempts))
}

// user is an object whoever has asked.
func user(o map[string]any) map[string]any {
	out := (&unstructured.Unstructured{Object: o}).DeepCopy()
	labels := out.GetLabels()
	if labels["by"] != "" {
		labels["by"] = "somebody"
		out.SetLabels(labels)
	}
	return out.Object
}
