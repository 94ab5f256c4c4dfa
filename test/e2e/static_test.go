//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// An API server changes Pods by static MutatingAdmissionPolicies from the moment that it serves.
func TestStaticMutations(t *testing.T) {
	shared.needMutators(t)
	file, found := policy.Parse("p.yaml", []byte(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
  - name: team
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): none}}, spec: {tolerations: [{key: spot, operator: Exists}]}}}
`))
	if found.HasErrors() {
		t.Fatal(found)
	}
	result := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{
		Translate: translate.Options{Release: shared.release, Schemas: shared.schemas(t), Mutations: true}, Emit: vap.EmitOptions{Static: true},
	})
	if len(result.Mutating) != 1 {
		t.Fatal(result.Diagnostics)
	}
	dir := t.TempDir()
	manifests, config, plugin := filepath.Join(dir, "manifests"), filepath.Join(dir, "admission.yaml"), filepath.Join(dir, "mutating.yaml")
	text, err := vap.Marshal(result.Mutating[0].All()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		filepath.Join(manifests, "labels.yaml"): string(text),
		plugin:                                  "apiVersion: apiserver.config.k8s.io/v1\nkind: MutatingAdmissionPolicyConfiguration\nstaticManifestsDir: " + manifests + "\n",
		config:                                  "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: MutatingAdmissionPolicy\n  path: " + plugin + "\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{APIServerFlags: []string{
		"--feature-gates=ManifestBasedAdmissionControlConfig=true", "--admission-control-config-file=" + config,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop()
	admin, err := dynamic.NewForConfig(plane.Config(controlplane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	pods := admin.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("default")
	pod := testcluster.Read(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec: {containers: [{name: a, image: i}]}")[0]
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // until the default account is there
		got, err := pods.Create(t.Context(), pod.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			tolerations, _, _ := unstructured.NestedSlice(got.Object, "spec", "tolerations")
			if got.GetLabels()["team"] != "none" || len(tolerations) == 0 {
				t.Errorf("the Pod is not changed: %v", got.Object)
			}
			break
		}
		if time.Now().After(deadline) || !strings.Contains(err.Error(), "serviceaccount") {
			t.Fatal(err)
		}
	}
	list, err := admin.Resource(mutators).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("what is static is no object of the cluster: %v %v", list, err)
	}
}
