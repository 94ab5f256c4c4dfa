//go:build e2e

package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// Where kvap's own kinds of policies were left out, enforce leaves a policy with Kyverno
// that would become one of them, and says so; once they are defined it goes on. Nothing
// else needs them.
func TestWithoutOwnPolicies(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, labelledPolicy+"---"+foregroundPolicy)
	c.Undefine(t)
	s := c.streamOf(t, "labelled", "foreground")
	c.control(t)
	c.migrate(t, 0, "shadow", "--all")
	enforce := []string{"enforce", "--all", "--accept", "a test", "--yes", "--settle", "2s"}
	out := c.migrate(t, 4, enforce...)
	s.check(t, "enforce without the kinds")
	if !strings.Contains(lineOf(out, "foreground"), `no matches for kind "ClusterPolicy" in version "kvap.dev/v1alpha1"`) {
		t.Errorf("it does not say what is missing:\n%s", out)
	}
	if got := c.record(t, "labelled"); got.Stage != v1alpha1.StageEnforced {
		t.Errorf("the other policy has %+v", got)
	}
	if err := c.judged(t.Context(), probe(t, "foreground", false)); err == nil || !strings.Contains(err.Error(), "kyverno.svc") {
		t.Errorf("Kyverno does not judge by it: %v", err)
	}
	c.Define(t)
	c.migrate(t, 0, enforce...)
	s.check(t, "enforce")
	if got := c.record(t, "foreground"); got.Stage != v1alpha1.StageEnforced || got.Way != v1alpha1.WayRemove {
		t.Errorf("the record has %+v", got)
	}
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	s.check(t, "rollback")
}
