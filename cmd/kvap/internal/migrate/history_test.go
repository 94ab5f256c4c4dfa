package migrate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
)

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// What a migration writes into a policy does not make it another one.
func TestDigest(t *testing.T) {
	of := func(text string) string { return Digest(object(t, text)) }
	plain := of("{metadata: {name: a}, spec: {background: true, rules: []}}")
	for name, text := range map[string]string{
		"annotated":   "{metadata: {name: a, annotations: {kvap.dev/mode: shadow}}, spec: {background: true, rules: []}}",
		"defaulted":   "{metadata: {name: a}, spec: {admission: true, background: true, rules: []}}",
		"switchedOff": "{metadata: {name: a, annotations: {kvap.dev/kyverno: 'off'}}, spec: {admission: false, background: true, rules: []}}",
	} {
		if got := of(text); got != plain {
			t.Errorf("%s: %s; want %s", name, got, plain)
		}
	}
	for name, text := range map[string]string{
		"changed": "{metadata: {name: a}, spec: {background: false, rules: []}}",
		"off":     "{metadata: {name: a}, spec: {admission: false, background: true, rules: []}}",
	} {
		if got := of(text); got == plain {
			t.Errorf("%s: the digest is that of another policy", name)
		}
	}
	if of("{spec: {evaluation: {admission: {enabled: false}}}, metadata: {annotations: {kvap.dev/kyverno: 'off'}}}") != of("{spec: {}}") {
		t.Error("a ValidatingPolicy that was switched off is another one")
	}
}

func TestSpeaks(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	good := v1alpha1.Comparison{At: metav1.NewTime(now.Add(-time.Hour)), Digest: "d", Clean: true}
	with := func(change func(*v1alpha1.Comparison)) *v1alpha1.Comparison {
		c := good
		change(&c)
		return &c
	}
	if err := Speaks(&good, "d", now, 24*time.Hour); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]*v1alpha1.Comparison{
		"none":    nil,
		"changed": with(func(c *v1alpha1.Comparison) { c.Digest = "e" }),
		"old":     with(func(c *v1alpha1.Comparison) { c.At = metav1.NewTime(now.Add(-25 * time.Hour)) }),
		"future":  with(func(c *v1alpha1.Comparison) { c.At = metav1.NewTime(now.Add(2 * time.Hour)) }),
		"differs": with(func(c *v1alpha1.Comparison) { c.Clean = false }),
	} {
		if Speaks(c, "d", now, 24*time.Hour) == nil {
			t.Errorf("%s: it speaks for the policy", name)
		}
	}
}

func TestNoteForgetsTheOldest(t *testing.T) {
	m := NewRecord("r", v1alpha1.PolicyReference{})
	for i := range maxSteps + 5 {
		Note(m, v1alpha1.MigrationStep{Verb: "shadow", At: metav1.NewTime(time.Unix(int64(i), 0))})
	}
	if len(m.Status.Steps) != maxSteps || m.Status.Steps[0].At.Unix() != 5 {
		t.Errorf("%d steps, the first of %d", len(m.Status.Steps), m.Status.Steps[0].At.Unix())
	}
}

// What the controller says of an earlier policy of the same name is not about this one.
func TestSeenOfAnEarlierPolicy(t *testing.T) {
	policy := &unstructured.Unstructured{}
	policy.SetUID("now")
	seen := ControllerStatus{Exists: true, UID: "earlier", Mode: v1alpha1.ModeEnforce, Judging: Judging{Yes: true}}
	if got := seen.as(v1alpha1.ModeEnforce, policy); got.Yes || got.Why != "the controller speaks of an earlier policy of this name" {
		t.Errorf("it counts: %+v", got)
	}
	seen.UID = "now"
	if got := seen.as(v1alpha1.ModeEnforce, policy); !got.Yes {
		t.Errorf("it does not count: %+v", got)
	}
}

// A comparison is about all that decides what a policy says: its spec, for which
// controllers its rules are, its exceptions, and what its rules read.
func TestComparedDigest(t *testing.T) {
	made := func(annotations map[string]any, around ...map[string]any) string {
		return ComparedDigest(map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"a": "b"}}, around)
	}
	object := func(name, value string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "resourceVersion": value}, "data": map[string]any{"v": value}}
	}
	touched := object("c", "1")
	touched["metadata"].(map[string]any)["resourceVersion"] = "7"
	if made(nil) != made(map[string]any{"other": "x"}) || made(nil, object("c", "1")) != made(nil, touched) {
		t.Error("what decides nothing counts")
	}
	seen := map[string]string{}
	for name, digest := range map[string]string{
		"plain": made(nil), "autogen": made(map[string]any{autogenKey: "none"}), "another autogen": made(map[string]any{autogenKey: "Job"}),
		"an object": made(nil, object("c", "1")), "changed": made(nil, object("c", "2")), "another": made(nil, object("d", "1")),
	} {
		if seen[digest] != "" {
			t.Errorf("%s is taken for %s", name, seen[digest])
		}
		seen[digest] = name
	}
}
