package migrate

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// offline are the components of a goal, by part, for a policy of a file.
func offline(t *testing.T, w PolicyState, g Goal) map[string]Component {
	t.Helper()
	moves, err := g.Moves(w)
	if err != nil {
		t.Fatal(err)
	}
	components, err := Components(w, moves)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Component{}
	for _, c := range components {
		if _, twice := out[c.Part]; twice {
			t.Errorf("%s comes twice", c.Part)
		}
		out[c.Part] = c
	}
	return out
}

func (c Component) text(name string) string {
	i := slices.IndexFunc(c.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	return string(c.Files[i].Data)
}

// Each step is a component of its own, and says no more than what it changes.
func TestComponents(t *testing.T) {
	w := PolicyState{Name: "p", Ref: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"},
		Source: &unstructured.Unstructured{Object: object(t, twoRules)}}
	enforce := Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}
	got := offline(t, w, enforce)
	native, off := got["enforce-1-native"], got["enforce-2-kyverno-off"]
	if text := native.text("source-patch.yaml"); !strings.Contains(text, "kvap.dev/mode: enforce") || strings.Contains(text, "spec:") {
		t.Errorf("the first step is\n%s", text)
	}
	if text := off.text("source-patch.yaml"); !strings.Contains(text, "admission: false") || strings.Contains(text, "rules:") || strings.Contains(text, "mode") {
		t.Errorf("the second step is\n%s", text)
	}
	if native.Policy != "clusterpolicy.p" {
		t.Errorf("the folder is %s", native.Policy)
	}
	enforce.Way = v1alpha1.WayRemove
	got = offline(t, w, enforce)
	if text := got["enforce-1-native"].text("kvap.yaml"); !strings.Contains(text, "apiVersion: kvap.dev/v1alpha1") {
		t.Errorf("the first step is\n%s", text)
	}
	if text := got["enforce-2-kyverno-off"].text("source-delete.yaml"); !strings.Contains(text, "$patch: delete") {
		t.Errorf("the second step is\n%s", text)
	}
}

// A tool that manages objects is known by its marks, and the copy in kvap's kind has
// none of them.
func TestOwnedBy(t *testing.T) {
	for tool, meta := range map[string]string{
		"Argo CD": "{name: p, annotations: {argocd.argoproj.io/tracking-id: 'x:kyverno.io/ClusterPolicy:/p'}}",
		"Flux":    "{name: p, labels: {kustomize.toolkit.fluxcd.io/name: apps}}",
		"Helm":    "{name: p, labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: r}}",
		"":        "{name: p, labels: {team: a}}",
	} {
		o := &unstructured.Unstructured{Object: object(t, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: "+meta+"}")}
		if got := OwnedBy(o); got != tool {
			t.Errorf("%s: owned by %q; want %q", meta, got, tool)
		}
		if disown(o); OwnedBy(o) != "" {
			t.Errorf("%s: it has marks still: %v %v", tool, o.GetLabels(), o.GetAnnotations())
		}
	}
}

// Argo CD tracks by a common label where it is not told otherwise; and what managed a
// policy that is gone would remove one that is made again.
func TestOwnedByWithoutItsOwnMark(t *testing.T) {
	o := &unstructured.Unstructured{Object: object(t, "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p, labels: {app.kubernetes.io/instance: policies}}}")}
	if got := OwnedBy(o); got != "Argo CD" {
		t.Errorf("owned by %q; want Argo CD", got)
	}
	w := PolicyState{Record: &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Original: keepOriginal(o, nil)}}}
	if got := w.OwnedBy(); got != "Argo CD" {
		t.Errorf("what is to be made again is owned by %q; want Argo CD", got)
	}
	if disown(o); OwnedBy(o) != "" {
		t.Errorf("it has marks still: %v", o.GetLabels())
	}
}
