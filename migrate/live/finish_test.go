package live

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/report"
)

// A policy that was moved by files has no record; it needs Kyverno no more where kvap is
// seen to enforce it, and is told of where nobody does.
func TestFinishWithoutRecord(t *testing.T) {
	off := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "spec": map[string]any{"admission": false},
		"metadata": map[string]any{"name": "p", "annotations": map[string]any{v1alpha1.KyvernoKey: v1alpha1.KyvernoOff, v1alpha1.ModeKey: v1alpha1.ModeEnforce}},
	}}
	on := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "p"}}}
	enforced := migrate.Seen{Exists: true, Mode: v1alpha1.ModeEnforce, Judging: migrate.Judging{Yes: true}}
	record := &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced}}
	back := &v1alpha1.Migration{Status: v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced, Doing: &v1alpha1.MigrationStep{Verb: migrate.Rollback}}}
	for name, one := range map[string]struct {
		source *unstructured.Unstructured
		seen   migrate.Seen
		record *v1alpha1.Migration
		keeps  int
		want   string
	}{
		"by files":            {off, enforced, nil, 0, "adopt -f"},
		"recorded":            {off, enforced, record, 0, "migrate adopt p"},
		"by nobody":           {off, migrate.Seen{}, nil, 1, "nobody is seen to enforce it"},
		"recorded, by nobody": {off, migrate.Seen{Exists: true, Mode: v1alpha1.ModeShadow}, record, 1, "nobody is seen to enforce it"},
		"not moved":           {on, migrate.Seen{}, nil, 1, "Kyverno enforces it"},
		"made again":          {on, migrate.Seen{}, record, 1, "it is there again"},
		"on its way back":     {on, migrate.Seen{}, back, 1, "kvap migrate rollback p goes on"},
	} {
		w := migrate.World{Ref: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}, Source: one.source, SourceSeen: one.seen, Record: one.record}
		if next, keeps := nextFor(w, 0); keeps != one.keeps || !strings.Contains(next, one.want) {
			t.Errorf("%s: %q, and %d keep Kyverno; want %q and %d", name, next, keeps, one.want, one.keeps)
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
