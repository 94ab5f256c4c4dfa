package live

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/report"
)

// Whatever kvap enforces by a policy of Kyverno's kind hangs by the definition, which goes
// with Kyverno: such a policy has to be adopted first. A policy that was moved by files has
// no record.
func TestFinishWithoutRecord(t *testing.T) {
	off := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "spec": map[string]any{"admission": false},
		"metadata": map[string]any{"name": "p", "annotations": map[string]any{v1alpha1.KyvernoKey: v1alpha1.KyvernoOff, v1alpha1.ModeKey: v1alpha1.ModeEnforce}},
	}}
	on := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "p"}}}
	enforced := migrate.ControllerStatus{Exists: true, Mode: v1alpha1.ModeEnforce, Judging: migrate.Judging{Yes: true}}
	record := &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced}}
	kept := &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced, Original: &v1alpha1.LastGood{Policy: "{}"}}}
	back := &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced, Doing: &v1alpha1.MigrationStep{Verb: migrate.Rollback}}}
	for name, one := range map[string]struct {
		source *unstructured.Unstructured
		seen   migrate.ControllerStatus
		record *v1alpha1.Migration
		keeps  int
		want   string
	}{
		"by files":            {off, enforced, nil, 1, "adopt -f"},
		"recorded":            {off, enforced, record, 1, "migrate adopt p"},
		"uninstalled":         {nil, enforced, kept, 1, "enforces it as it read it last: kvap migrate adopt p"},
		"uninstalled, alone":  {nil, enforced, nil, 1, "apply it as a policy of kvap.dev"},
		"by nobody":           {off, migrate.ControllerStatus{}, nil, 1, "nobody is seen to enforce it"},
		"recorded, by nobody": {off, migrate.ControllerStatus{Exists: true, Mode: v1alpha1.ModeShadow}, record, 1, "nobody is seen to enforce it"},
		"not moved":           {on, migrate.ControllerStatus{}, nil, 1, "Kyverno enforces it"},
		"no Kyverno":          {on, migrate.ControllerStatus{}, nil, 1, "nobody enforces it, as far as is seen (it is away): kvap migrate enforce p"},
		"made again":          {on, migrate.ControllerStatus{}, record, 1, "it is there again"},
		"on its way back":     {on, migrate.ControllerStatus{}, back, 1, "kvap migrate rollback p goes on"},
	} {
		w := migrate.PolicyState{Ref: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}, Source: one.source, SourceStatus: one.seen, Record: one.record,
			Kyverno: migrate.Judging{Yes: name != "no Kyverno", Why: "it is away"}}
		if next, keeps := nextFor(w, 0); keeps != one.keeps || !strings.Contains(next, one.want) {
			t.Errorf("%s: %q, and %d keep Kyverno; want %q and %d", name, next, keeps, one.want, one.keeps)
		}
	}
}

// A policy of kvap.dev in shadow, of which Kyverno's is gone, is enforced by nobody: that is
// no end, and enforce says what to do.
func TestStrandedInShadow(t *testing.T) {
	carrier := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kvap.dev/v1alpha1", "kind": "ClusterPolicy",
		"metadata": map[string]any{"name": "p", "annotations": map[string]any{v1alpha1.ModeKey: v1alpha1.ModeShadow, v1alpha1.HistoryKey: "h"}},
	}}
	w := migrate.PolicyState{
		Ref: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}, Carrier: carrier,
		Record: &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageShadow}},
	}
	const want = "kvap migrate enforce p --accept REASON"
	if next, keeps := nextFor(w, 0); keeps != 1 || !strings.Contains(next, want) {
		t.Errorf("finish: %q, and %d keep Kyverno", next, keeps)
	}
	if _, err := (migrate.Goal{Verb: migrate.Enforce}).Next(w); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("enforce: %v", err)
	}
	carrier.SetAnnotations(map[string]string{v1alpha1.ModeKey: v1alpha1.ModeEnforce, v1alpha1.HistoryKey: "h"})
	if w.Stranded() {
		t.Error("it is enforced")
	}
}

// What somebody has stopped, and rules that nobody carries out, are named; the one is no
// end, the other was accepted.
func TestFinishNamesWhatNobodyEnforces(t *testing.T) {
	policy := func(group, mode string, rules ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": group, "kind": "ClusterPolicy", "spec": map[string]any{"rules": rules},
			"metadata": map[string]any{"name": "p", "annotations": map[string]any{v1alpha1.ModeKey: mode, v1alpha1.HistoryKey: "h"}},
		}}
	}
	one, two := map[string]any{"name": "one"}, map[string]any{"name": "two"}
	record := &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageAdopted, Original: &v1alpha1.LastGood{}}}
	text, err := policy("kyverno.io/v1", "", one, two).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	record.Status.Original.Policy = string(text)
	ref := v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}
	for mode, want := range map[string]string{
		v1alpha1.ModeEnforce: "nobody carries out two",
		v1alpha1.ModeShadow:  "kubectl annotate --overwrite clusterpolicies.kvap.dev p kvap.dev/mode=enforce",
	} {
		w := migrate.PolicyState{Ref: ref, Carrier: policy("kvap.dev/v1alpha1", mode, one), Record: record}
		next, keeps := nextFor(w, 0)
		if !strings.Contains(next, want) || (keeps == 1) != w.Stopped() {
			t.Errorf("%s: %q, and %d keep Kyverno", mode, next, keeps)
		}
	}
}

// What could not be counted is not taken for nothing, where it would need Kyverno.
func TestFinishOfWhatMayNotBeListed(t *testing.T) {
	for next, want := range map[string]bool{"its objects need Kyverno": false, notCounted: true} {
		if got := needsKyverno(report.LeftPart{Owner: notRead, Next: next}); got != want {
			t.Errorf("%s: %v; want %v", next, got, want)
		}
	}
	exceptions := report.LeftPart{Name: "policyexceptions.kyverno.io", Owner: "Kyverno", Next: notCounted}
	if steps := finishSteps(report.Finish{Parts: []report.LeftPart{exceptions}}, ""); len(steps) != 1 || !strings.Contains(steps[0], "Keep the definition policyexceptions") {
		t.Errorf("%v", steps)
	}
	r := &Reader{Connection: answering(forbidden, "clustercleanuppolicies", kind("kyverno.io", "v2", "ClusterCleanupPolicy"))}
	if keep, err := r.leftCleanups(t.Context(), &report.Finish{}, 0); err != nil || keep != 1 {
		t.Errorf("%d keep Kyverno, %v: there may be cleanup policies", keep, err)
	}
}

// Entries of the global context are read by kvap: they need no Kyverno, and have to stay
// while rules read them.
func TestFinishOfGlobalContextEntries(t *testing.T) {
	owner, next := ownerOf("kyverno.io", "GlobalContextEntry")
	part := report.LeftPart{Name: "globalcontextentries.kyverno.io", Owner: owner, Next: next, Objects: 2}
	if needsKyverno(part) {
		t.Errorf("they need Kyverno: %s, %s", owner, next)
	}
	if steps := finishSteps(report.Finish{Parts: []report.LeftPart{part}}, ""); len(steps) != 1 || !strings.Contains(steps[0], "Keep the definition globalcontextentries") {
		t.Errorf("with entries: %v", steps)
	}
	part.Objects = 0
	if steps := finishSteps(report.Finish{Parts: []report.LeftPart{part}}, ""); len(steps) != 0 {
		t.Errorf("without entries: %v", steps)
	}
}

// What first may not be done is said first: while Kyverno runs, a policy takes along what its
// rules have generated.
func TestFinishTakesAlong(t *testing.T) {
	quota := report.LeftPolicy{Kind: "Policy", Namespace: "shop", Name: "quota", Next: "Kyverno enforces it: kvap migrate enforce shop/quota", TakesAlong: []string{"made"}}
	steps := finishSteps(report.Finish{Policies: []report.LeftPolicy{quota}}, "kyverno")
	if len(steps) != 2 || !strings.Contains(steps[0], "Remove no policy of Kyverno's by hand") || !strings.Contains(steps[0], "shop/quota/made") {
		t.Errorf("%q", steps)
	}
}

// Kyverno goes by commands in an order: what makes webhook configurations before them, and
// the definitions last, but for those whose objects are read.
func TestFinishUninstalls(t *testing.T) {
	f := report.Finish{Done: true, Parts: []report.LeftPart{
		{Kind: "ValidatingWebhookConfiguration", Name: "a", Owner: "Kyverno"}, {Kind: "MutatingWebhookConfiguration", Name: "b", Owner: "Kyverno"},
		{Kind: "CustomResourceDefinition", Name: "clusterpolicies.kyverno.io", Owner: "Kyverno"},
		{Kind: "CustomResourceDefinition", Name: "cleanuppolicies.kyverno.io", Owner: "Kyverno", Next: keptForCleanup, Objects: 1},
		{Kind: "CustomResourceDefinition", Name: "policies.kyverno.io", Owner: "Kyverno", Next: notCounted},
		{Kind: "CustomResourceDefinition", Name: "policyreports.wgpolicyk8s.io", Owner: "shared"},
	}}
	steps := finishSteps(f, "kyverno")
	want := []string{"Keep the definitions of cleanup policies", "kubectl scale deployment -n kyverno ", "(there are 2)", "helm uninstall kyverno -n kyverno", "kubectl delete crd clusterpolicies.kyverno.io takes"}
	if len(steps) != len(want) {
		t.Fatalf("%q", steps)
	}
	for i := range want {
		if !strings.Contains(steps[i], want[i]) {
			t.Errorf("step %d is %q; want %q", i+1, steps[i], want[i])
		}
	}
	f.Done = false
	if steps := finishSteps(f, "kyverno"); len(steps) != 1 {
		t.Errorf("Kyverno is needed still, and goes: %q", steps)
	}
}
