package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

const two = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, uid: u, resourceVersion: "1", generation: 1}
spec:
  validationFailureAction: Enforce
  rules:
  - {name: a, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {metadata: {labels: {a: "?*"}}}}}
  - {name: b, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {metadata: {labels: {b: "?*"}}}}}
`

// object is a policy of the cluster, with something replaced.
func object(t *testing.T, version string, replace ...string) *unstructured.Unstructured {
	t.Helper()
	text := strings.NewReplacer(replace...).Replace(two)
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetResourceVersion(version)
	return o
}

func nothing() []byte { return nil }

// What is worse than the version before does not count: not a broken rule, nor a
// broken policy. What is no worse does, and so does what mends it.
func TestLastGoodVersion(t *testing.T) {
	good := readSource(object(t, "1"), "enforce", nil, nothing)
	broken := readSource(object(t, "2", "a: \"?*\"}}}}", "a: \"?*\"}}}, oops: 1}"), "enforce", good, nothing)
	if !broken.lastOne || broken.policy != good.policy || errorsOf(broken.found) == "" {
		t.Errorf("a broken rule: %+v", broken)
	}
	mended := readSource(object(t, "3", "?*", "x"), "enforce", broken, nothing)
	if mended.lastOne || mended.policy == good.policy {
		t.Errorf("mended: %+v", mended)
	}
	// In a new process the text that was noted stands for the version before.
	again := readSource(object(t, "2", "rules:", "rulez:"), "enforce", nil, func() []byte { return good.text })
	if !again.lastOne || again.policy == nil || len(again.policy.Rules) != 2 {
		t.Errorf("in a new process: %+v", again)
	}
	// A policy that began broken in one rule goes on with its other rule.
	first := readSource(object(t, "1", "a: \"?*\"}}}}", "a: \"?*\"}}}, oops: 1}"), "enforce", nil, nothing)
	next := readSource(object(t, "2", "a: \"?*\"}}}}", "a: \"?*\"}}}, oops: 1}", "b: \"?*\"", "b: x"), "enforce", first, nothing)
	if first.lastOne || next.lastOne || next.policy == first.policy {
		t.Errorf("no worse than before: %+v", next)
	}
}

// A write that changes nothing of what a policy says leaves it the same value, by
// which what was compiled of it is known.
func TestSamePolicyStaysTheSame(t *testing.T) {
	before := readSource(object(t, "1"), "shadow", nil, nothing)
	after := readSource(object(t, "2", "generation: 1", "generation: 1, managedFields: []"), "shadow", before, nothing)
	if after.policy != before.policy {
		t.Error("the policy was read anew")
	}
}

// Since when a policy is what it is, by which reports know what it judged, changes with what it says:
// not with its status, nor with the mode for all.
func TestSinceWhen(t *testing.T) {
	at := func(generation, time string) []string {
		return []string{"generation: 1", "generation: " + generation + ", creationTimestamp: \"2026-01-01T10:00:00Z\", managedFields: [" +
			"{manager: a, time: \"" + time + "\"}, {manager: b, subresource: status, time: \"2026-01-02T00:00:00Z\"}]"}
	}
	first := readSource(object(t, "1", at("1", "2026-01-01T11:00:00Z")...), "shadow", nil, nothing)
	again := readSource(object(t, "2", at("1", "2026-01-01T12:00:00Z")...), "enforce", first, nothing)
	other := readSource(object(t, "3", append(at("2", "2026-01-01T13:00:00Z"), "a: \"?*\"", "a: x")...), "enforce", again, nothing)
	for name, c := range map[string]struct {
		s    *policySource
		want int
	}{"at first": {first, 11}, "in another mode": {again, 11}, "with other rules": {other, 13}} {
		if got := c.s.since.UTC().Hour(); got != c.want {
			t.Errorf("%s: since %v, want %d o'clock", name, c.s.since.UTC(), c.want)
		}
	}
}

// The mode is what the policy says, or what is said for all; kvap's own kinds are
// enforced. In shadow everything is audited.
func TestMode(t *testing.T) {
	for _, c := range []struct {
		replace   []string
		otherwise string
		want, bad string
	}{
		{nil, "shadow", "shadow", ""},
		{nil, "enforce", "enforce", ""},
		{[]string{"uid: u", "uid: u, labels: {kvap.dev/mode: enforce}"}, "shadow", "enforce", ""},
		{[]string{"uid: u", "uid: u, annotations: {kvap.dev/mode: \"off\"}, labels: {kvap.dev/mode: enforce}"}, "shadow", "off", ""},
		{[]string{"uid: u", "uid: u, labels: {kvap.dev/mode: of}"}, "shadow", "shadow", "of"},
		{[]string{"kyverno.io/v1", "kvap.dev/v1alpha1"}, "shadow", "enforce", ""},
	} {
		s := readSource(object(t, "1", c.replace...), c.otherwise, nil, nothing)
		if s.mode != c.want || s.badMode != c.bad {
			t.Errorf("%v: %s, %q", c.replace, s.mode, s.badMode)
		}
		switch {
		case c.want == v1alpha1.ModeOff && s.policy != nil:
			t.Errorf("%v: it is left alone, and read", c.replace)
		case c.want == v1alpha1.ModeShadow && s.policy.Action != policy.Audit:
			t.Errorf("%v: %s", c.replace, s.policy.Action)
		case c.want == v1alpha1.ModeEnforce && s.policy.Action != policy.Enforce:
			t.Errorf("%v: %s", c.replace, s.policy.Action)
		}
	}
}

// The webhook judges in shadow by the actions as they are written, which tell what
// would be denied; native policies have the action Audit.
func TestRemainingInShadow(t *testing.T) {
	s := readSource(object(t, "1"), "shadow", nil, nothing)
	got, ok := s.remaining()
	if !ok || !got.Shadow || got.Policy.Action != policy.Enforce || s.policy.Action != policy.Audit {
		t.Errorf("%t, %+v", ok, got)
	}
	for _, again := range []struct {
		mode string
		want bool
	}{{"enforce", true}, {"off", false}} {
		if got, ok := readSource(object(t, "1"), again.mode, nil, nothing).remaining(); ok != again.want || got.Shadow {
			t.Errorf("%s: %t, %+v", again.mode, ok, got)
		}
	}
}

// What processes have said in shadow is kept while it is about the policy as it is, of
// the last few processes only.
func TestKeptShadow(t *testing.T) {
	s := readSource(object(t, "1"), "shadow", nil, nothing)
	have := &v1alpha1.PolicyTranslation{Spec: v1alpha1.PolicyTranslationSpec{Source: s.ref}}
	for i := range maxShadow + 2 {
		have.Status.Shadow = append(have.Status.Shadow, v1alpha1.ShadowStatus{
			By: fmt.Sprint(i), Generation: s.generation, Until: metav1.NewTime(time.Unix(int64(i), 0)),
		})
	}
	have.Status.Shadow = append(have.Status.Shadow, v1alpha1.ShadowStatus{By: "before", Generation: s.generation - 1})
	nobody := func(string) bool { return false }
	got := keptShadow(s, have, nobody)
	if len(got) != maxShadow || got[0].By != "2" {
		t.Errorf("%+v", got)
	}
	for _, one := range keptShadow(s, have, func(by string) bool { return by == "7" }) {
		if one.By == "7" {
			t.Error("it is kept of a process that is gone")
		}
	}
	if s.mode = v1alpha1.ModeEnforce; keptShadow(s, have, nobody) != nil {
		t.Error("it is kept of a policy that is in shadow no longer")
	}
}
