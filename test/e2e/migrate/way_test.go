//go:build e2e

package migrate

import (
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
)

// The whole way there and back: at no moment is a bad request admitted or a good one
// denied.
func TestThereAndBack(t *testing.T) {
	c := shared
	k, _ := c.startKyverno(t)
	c.apply(t, strings.TrimSpace(policies))
	s := c.stream(t)
	c.control(t)
	c.migrateUntilKilled(t, 500*time.Millisecond, "shadow", "--all")
	c.migrate(t, 0, "shadow", "--all")
	s.check(t, "shadow")
	for name := range kinds() {
		if o := c.policyOf(t, "kyverno.io/v1", name); o != nil && (o.GetAnnotations()[v1alpha1.ModeKey] != "" || o.GetAnnotations()[v1alpha1.HistoryKey] != "") {
			t.Errorf("shadow wrote into %s: %v", name, o.GetAnnotations())
		}
	}
	c.migrate(t, 1, "enforce", "--all", "--yes") // nobody has compared
	c.migrate(t, 0, "enforce", "--all", "--accept", "a test", "--dry-run", "server")
	if got := c.record(t, "labelled"); got.Stage != v1alpha1.StageShadow || got.Doing != nil {
		t.Fatalf("a dry run left %+v", got)
	}
	c.migrate(t, 0, "enforce", "--all", "--accept", "a test", "--yes")
	s.check(t, "enforce")
	for name, way := range map[string]v1alpha1.MigrationWay{
		"labelled": v1alpha1.WayAdmission, "asks": v1alpha1.WayAdmission, "foreground": v1alpha1.WayRemove, "mixed": v1alpha1.WayReplace,
	} {
		if got := c.record(t, name); got.Stage != v1alpha1.StageEnforced || got.Way != way || got.Doing != nil {
			t.Errorf("%s: the record has %s by %s", name, got.Stage, got.Way)
		}
	}
	if c.policyOf(t, "kyverno.io/v1", "foreground") != nil || c.policyOf(t, "kvap.dev/v1alpha1", "foreground") == nil {
		t.Error("foreground is not where it should be")
	}
	time.Sleep(time.Second) // what was on its way to Kyverno
	before := k.asked.Load()
	for name := range kinds() {
		if err := c.judged(t.Context(), probe(t, name, false)); err == nil || strings.Contains(err.Error(), "kyverno.svc") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := k.asked.Load() - before; n > 0 {
		t.Errorf("Kyverno was asked %d times still", n)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes")
	s.check(t, "rollback")
	s.stop()
	for name := range kinds() {
		o := c.policyOf(t, "kyverno.io/v1", name)
		if o == nil || o.GetAnnotations()[v1alpha1.ModeKey] != "" || c.policyOf(t, "kvap.dev/v1alpha1", name) != nil {
			t.Errorf("%s is not as before: %v", name, o)
		}
		if got := c.record(t, name); got.Stage != v1alpha1.StageNone || got.Doing != nil {
			t.Errorf("%s: the record has %+v", name, got)
		}
	}
}
