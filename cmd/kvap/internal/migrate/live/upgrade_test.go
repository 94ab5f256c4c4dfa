package live

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/kvap/kvap/internal/cluster"
)

// A version is read of tags as Kyverno's images have them, and of nothing else.
func TestTag(t *testing.T) {
	for text, want := range map[string]string{
		"v1.19.0": "1.19.0", "1.20.1": "1.20.1", "v1.20.0-rc.1": "1.20.0-rc.1", "v1.19": "1.19",
		"latest": "", "": "", "main-1.20": "", "1": "", "v1.x": "",
	} {
		got := ""
		if m := tag.FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Kyverno's version is told by its image, else by what its definitions bear, which is that
// of a chart where it was installed by one; its lease tells whether it is alive.
func TestUpgradeOf(t *testing.T) {
	deployment := func(image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "policies", "name": "kyverno-admission-controller", "labels": map[string]any{"app.kubernetes.io/part-of": "kyverno"}},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "kyverno", "image": image}}}}},
		}}
	}
	definition := func(version string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "clusterpolicies.kyverno.io", "labels": map[string]any{"app.kubernetes.io/version": version}},
		}}
	}
	lease := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"namespace": "policies", "name": "kyverno-health", "annotations": map[string]any{"kyverno.io/last-request-time": "2020-01-01T00:00:00Z"}},
	}}
	for name, one := range map[string]struct {
		has     []runtime.Object
		version string
		silent  bool
	}{
		"by its image, of a mirror and with a digest": {[]runtime.Object{deployment("mirror.example:5000/kyverno/kyverno:v1.20.1@sha256:00"), definition("v1.19.0")}, "1.20.1", false},
		"by its manifests":                            {[]runtime.Object{deployment("mirror.example/kyverno:latest"), definition("v1.19.0")}, "1.19.0", false},
		"by its chart, and silent":                    {[]runtime.Object{definition("3.5.0"), lease}, "that of the chart 3.5.0", true},
		"by nothing":                                  {[]runtime.Object{deployment("example/kyvernopre:v1.20.1")}, "", false},
	} {
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[apischema.GroupVersionResource]string{
			{Group: "apps", Version: "v1", Resource: "deployments"}:                               "DeploymentList",
			{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}: "CustomResourceDefinitionList",
			{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}:                     "LeaseList",
		}, one.has...)
		got, err := UpgradeOf(t.Context(), &cluster.Connection{Dynamic: client}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Version != one.version || (got.Silent != "") != one.silent || (got.Seen == "") != (one.version == "") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got, err := UpgradeOf(t.Context(), answering(forbidden, "*", kind("apps", "v1", "Deployment"), kind("coordination.k8s.io", "v1", "Lease"), kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")), nil)
	if err != nil || got.Version != "" || len(got.Unknown) != 1 {
		t.Errorf("where nothing may be read: %+v, %v", got, err)
	}
}
