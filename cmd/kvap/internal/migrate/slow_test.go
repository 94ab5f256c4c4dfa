package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// Somebody decides to write a policy, sleeps while a rollback begins and ends, and then
// acts, and is no more. Either he is refused, or a rollback finds what he left: kvap does
// not go on beside Kyverno with a record that knows of nothing.
func TestSlowBehindRollback(t *testing.T) {
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayReplace, v1alpha1.WayRemove} {
		for _, to := range []v1alpha1.MigrationStage{v1alpha1.StageNone, v1alpha1.StageShadow} {
			th := newTheatre(t, 1, way)
			th.world.Source.SetResourceVersion("0")
			digest := th.world.digest()
			slow := &rival{goal: Goal{Verb: Enforce, Way: way, Accept: "a test"}}
			for slow.next == nil || slow.next.Write == nil {
				slow.step(th)
			}
			th.untilLeft(Goal{Verb: Rollback, To: to})
			before := th.world
			slow.step(th)
			if th.world.Source != before.Source {
				t.Errorf("%s, rollback to %s: the policy has now %v", way, to, th.world.Source.GetAnnotations())
			}
			th.untilLeft(Goal{Verb: Rollback, To: v1alpha1.StageNone})
			th.isBack(digest)
		}
	}
}

// untilLeft has somebody lead a policy to a goal, to the end.
func (th *theatre) untilLeft(goal Goal) {
	th.t.Helper()
	r := &rival{goal: goal}
	for range 500 {
		th.pass()
		if r.step(th); r.left {
			if _, err := goal.Next(th.world); err != nil {
				th.t.Fatalf("%s: %v", goal.Verb, err)
			}
			return
		}
	}
	th.t.Fatalf("%s does not end", goal.Verb)
}

// What a slow enforce has left behind is not said to be somebody else's.
func TestEnforceFindsWhatWasLeftBehind(t *testing.T) {
	th := newTheatre(t, 1, v1alpha1.WayRemove)
	goal := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}
	for th.world.Carrier == nil {
		th.run(goal, 1)
	}
	th.world.Record = nil
	if move, err := goal.Next(th.world); err == nil || !strings.Contains(err.Error(), "kvap migrate rollback p") {
		t.Errorf("%v, %v", move, err)
	}
}
