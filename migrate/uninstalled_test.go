package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A policy that went with the definition of its kind, as when Kyverno is uninstalled, is
// not taken for one that somebody deleted: the record keeps it, and each verb says what
// comes first.
func TestKindThatIsGone(t *testing.T) {
	for _, c := range []struct {
		from Goal
		says string
	}{
		{Goal{Verb: Shadow}, "the record has the policy as it was"},
		{Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, "the record has the policy as it was"},
		{Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}, "kvap goes on enforcing"},
	} {
		th := newTheatre(t, 3, c.from.Way)
		digest := th.world.digest()
		if !th.run(c.from, 500) {
			t.Fatalf("%s does not end", c.from.Verb)
		}
		source := th.world.Source
		th.world.Source, th.world.Unserved, th.world.SourceSeen = nil, true, Seen{}
		if c.from.Way != v1alpha1.WayRemove {
			th.kyverno, th.source, th.rules = nil, nil, nil
		}
		for _, goal := range []Goal{{Verb: Shadow}, {Verb: Enforce, Way: c.from.Way, Accept: "a test"}, {Verb: Rollback, To: v1alpha1.StageNone}} {
			if goal.Verb == Enforce && c.from.Way == v1alpha1.WayRemove {
				continue // it is where it should be
			}
			move, err := goal.Next(th.world)
			if err == nil || !strings.Contains(err.Error(), "ClusterPolicy of kyverno.io") {
				t.Errorf("after %s %s, %s: %v, %v", c.from.Verb, c.from.Way, goal.Verb, move, err)
			} else if goal.Verb == Rollback && !strings.Contains(err.Error(), c.says) {
				t.Errorf("after %s %s: %v; want %q", c.from.Verb, c.from.Way, err, c.says)
			}
		}
		if way, err := WayFor(th.world); c.from.Verb == Shadow && (err == nil || !strings.Contains(err.Error(), "ClusterPolicy of kyverno.io")) {
			t.Errorf("after shadow: the way %s, %v", way, err)
		}
		th.world.Unserved = false
		if c.from.Verb == Shadow {
			th.world.Source = source // which is what was said to do
		}
		if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
			t.Fatalf("after %s %s there is no way back", c.from.Verb, c.from.Way)
		}
		th.isBack(digest)
	}
}
