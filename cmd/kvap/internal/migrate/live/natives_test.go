package live

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A status that was written before the controller ended says nothing of what is there.
func TestNativesAreLookedAt(t *testing.T) {
	status := v1alpha1.PolicyTranslationStatus{Mode: v1alpha1.ModeEnforce, Rules: []v1alpha1.RuleStatus{
		{Rule: "labelled", Target: "native", Objects: []string{"a", "b"}, Action: "Deny"},
		{Rule: "asks", Target: "webhook", Action: "Deny"},
	}}
	mutating := v1alpha1.PolicyTranslationStatus{Mode: v1alpha1.ModeEnforce, Rules: []v1alpha1.RuleStatus{
		{Rule: "stamp", Type: "mutate", Target: "native", Objects: []string{"a"}},
	}}
	validates := func(name string) nativeName { return nativeName{false, name} }
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	denying := func(at time.Time) boundNative { return boundNative{since: at, actions: []string{"Deny"}} }
	for name, c := range map[string]struct {
		there natives
		want  string
	}{
		"none":           {natives{}, "native policy a of the rule labelled is not there"},
		"one":            {natives{validates("a"): denying(noon)}, "native policy b of the rule labelled is not there"},
		"one audits":     {natives{validates("a"): denying(noon), validates("b"): {since: noon, actions: []string{"Audit"}}}, "b of the rule labelled does not deny"},
		"all":            {natives{validates("a"): denying(noon), validates("b"): denying(noon.Add(time.Minute))}, ""},
		"and one beside": {natives{validates("a"): denying(noon), validates("b"): denying(noon.Add(time.Minute)), validates("c"): denying(noon.Add(time.Hour))}, ""},
	} {
		since, missing := c.there.of(status)
		if c.want == "" && (missing != "" || !since.Equal(noon.Add(time.Minute))) {
			t.Errorf("%s: %q, since %s", name, missing, since)
		}
		if !strings.Contains(missing, c.want) {
			t.Errorf("%s: %q, want %q", name, missing, c.want)
		}
	}
	if _, missing := (natives{validates("a"): denying(noon)}).of(mutating); !strings.Contains(missing, "native policy a of the rule stamp is not there") {
		t.Errorf("one that validates counts as one that mutates, of the same name: %q", missing)
	}
	if _, missing := (natives{{true, "a"}: {since: noon}}).of(mutating); missing != "" {
		t.Errorf("one that mutates: %q", missing)
	}
}

// A status that speaks of an earlier policy of the same name counts for nothing.
func TestSeenIsOfOnePolicy(t *testing.T) {
	r := &Reader{}
	of := v1alpha1.PolicyTranslation{Spec: v1alpha1.PolicyTranslationSpec{Source: v1alpha1.PolicyReference{UID: types.UID("earlier")}}}
	if got := r.seen(of, true).UID; got != "earlier" {
		t.Errorf("it is about %q", got)
	}
}

// New native policies are given a moment before Kyverno is switched off for them. In
// shadow nothing depends on it, and nobody waits.
func TestOnlyEnforcingGivesAMoment(t *testing.T) {
	for mode, want := range map[string]bool{v1alpha1.ModeShadow: true, v1alpha1.ModeEnforce: false} {
		r := &Reader{settle: time.Hour, since: map[string]time.Time{}, natives: natives{{false, "a"}: {since: time.Now(), actions: []string{"Deny"}}}}
		of := v1alpha1.PolicyTranslation{Status: v1alpha1.PolicyTranslationStatus{Mode: mode, Rules: []v1alpha1.RuleStatus{
			{Rule: "labelled", Target: "native", Objects: []string{"a"}, Action: "Deny"},
		}}}
		for _, name := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionSynced, v1alpha1.ConditionParamsResolved, v1alpha1.ConditionEnforced, v1alpha1.ConditionFallbackActive} {
			of.Status.Conditions = append(of.Status.Conditions, metav1.Condition{Type: name, Status: "True"})
		}
		if got := r.seen(of, true).Judging; got.Yes != want {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}
