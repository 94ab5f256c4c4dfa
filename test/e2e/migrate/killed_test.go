//go:build e2e

package migrate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// However often `kvap migrate` is killed, every request is judged as before, the record
// says where each policy stands, and the same verb goes on from there.
func TestKilled(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, strings.TrimSpace(policies))
	s := c.stream(t)
	c.control(t)
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	soonDead := func() time.Duration { return time.Duration(100+random.IntN(2500)) * time.Millisecond }
	for range 2 {
		for range 3 {
			c.migrateUntilKilled(t, soonDead(), "enforce", "--all", "--accept", "a test", "--yes", "--settle", "1s")
			s.check(t, "enforce was killed")
		}
		for range 2 {
			c.migrateUntilKilled(t, soonDead(), "rollback", "--all", "--yes", "--settle", "2s")
			s.check(t, "rollback was killed")
		}
		c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
		c.migrateUntilKilled(t, soonDead(), "enforce", "--all", "--accept", "a test", "--yes", "--settle", "1s")
		c.migrate(t, 0, "enforce", "--all", "--accept", "a test", "--yes", "--settle", "1s")
		s.check(t, "enforce went on")
		for name := range kinds() {
			if got := c.record(t, name); got.Stage != v1alpha1.StageEnforced || got.Doing != nil {
				t.Errorf("%s: the record has %+v", name, got)
			}
		}
	}
	c.migrateUntilKilled(t, soonDead(), "adopt", "labelled", "asks", "foreground", "--yes")
	c.migrate(t, 0, "adopt", "labelled", "asks", "foreground", "--yes", "--settle", "2s")
	s.check(t, "adopt")
	for _, name := range []string{"labelled", "asks", "foreground"} {
		if c.policyOf(t, "kyverno.io/v1", name) != nil || c.policyOf(t, "kvap.dev/v1alpha1", name) == nil {
			t.Errorf("%s is not adopted", name)
		}
	}
	if out := c.migrate(t, 1, "finish"); !strings.Contains(out, "Kyverno has rules left in it: signed") {
		t.Errorf("finish does not say what is left")
	}
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	s.check(t, "rollback")
	s.stop()
	for name := range kinds() {
		if o := c.policyOf(t, "kyverno.io/v1", name); o == nil || len(o.GetAnnotations()) > 0 || c.policyOf(t, "kvap.dev/v1alpha1", name) != nil {
			t.Errorf("%s is not as before: %v", name, o)
		}
	}
}

// What was deleted while kvap enforced it is made again from the record, and what a
// GitOps controller manages is left to its repository.
func TestDeletedAndOwned(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, strings.TrimSpace(policies))
	c.control(t)
	c.migrate(t, 0, "enforce", "labelled", "--accept", "a test", "--yes", "--settle", "1s")
	if err := c.Delete(t.Context(), c.policyOf(t, "kyverno.io/v1", "labelled")); err != nil {
		t.Fatal(err)
	}
	c.migrate(t, 0, "rollback", "labelled", "--yes", "--settle", "1s")
	testcluster.Soon(t, "Kyverno judges by what was made again, and kvap no longer does", func() bool {
		err := c.judged(t.Context(), probe(t, "labelled", false))
		return err != nil && strings.Contains(err.Error(), "kyverno.svc")
	})
	o := c.policyOf(t, "kyverno.io/v1", "asks")
	o.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "policies:kyverno.io/ClusterPolicy:/asks"})
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	c.migrate(t, 0, "shadow", "asks") // which writes nothing into it
	if out := c.migrate(t, 1, "enforce", "asks", "--accept", "a test", "--yes"); !strings.Contains(out, "Argo CD manages it") || !strings.Contains(out, "--output-dir") {
		t.Error("Argo CD would undo it, and that was not said")
	}
}
