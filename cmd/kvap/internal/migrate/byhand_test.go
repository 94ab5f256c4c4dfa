package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// taken is a closed world in which kvap has taken a policy over.
func taken(t *testing.T) *theatre {
	t.Helper()
	th := newTheatre(t, 7, v1alpha1.WayAdmission)
	th.closes()
	for _, goal := range []Goal{{Verb: Shadow}, {Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}} {
		if ended, err := th.play(goal, 500); !ended {
			t.Fatalf("%s: %v", goal.Verb, err)
		}
	}
	return th
}

func wants(t *testing.T, th *theatre, goal Goal, want string) {
	t.Helper()
	if _, err := th.play(goal, 500); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, not %q", goal.Verb, err, want)
	}
}

// Who puts a policy into shadow that kvap enforces has decided that: no verb undoes it, and
// each says how he does.
func TestStopped(t *testing.T) {
	th := taken(t)
	stopped := th.world.Carrier.DeepCopy()
	annotate(stopped, map[string]string{v1alpha1.ModeKey: v1alpha1.ModeShadow})
	th.world.Carrier, th.rules = stopped, nil
	if !th.world.Stopped() {
		t.Fatal("nobody has stopped it")
	}
	const again = "kubectl annotate --overwrite clusterpolicies.kvap.dev p kvap.dev/mode=enforce"
	wants(t, th, Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}, again)
	wants(t, th, Goal{Verb: Adopt}, again)
	wants(t, th, Goal{Verb: Rollback, To: v1alpha1.StageNone}, again)
	if modeOf(th.world.Carrier) != v1alpha1.ModeShadow {
		t.Error("it is enforced again")
	}
}

// A policy of kvap.dev that no migration has made is not put into shadow. Where it has the
// spec of Kyverno's and enforces it, as files do that were applied, enforce wants no reason
// and deletes what is left over; where it says something else, that is not lost.
func TestAppliedBeside(t *testing.T) {
	for name, same := range map[string]bool{"the same": true, "another": false} {
		th := newTheatre(t, 3, v1alpha1.WayAdmission)
		th.closes()
		carrier, err := th.world.carrier(v1alpha1.ModeEnforce)
		if err != nil {
			t.Fatal(err)
		}
		carrier.SetUID("applied")
		carrier.SetGeneration(1)
		if !same {
			rules := carrier.Object["spec"].(map[string]any)["rules"].([]any)
			carrier.Object["spec"].(map[string]any)["rules"] = rules[:1]
		}
		th.world.Carrier, th.rules = carrier, RuleNames(carrier)
		th.carrier = carrier
		wants(t, th, Goal{Verb: Shadow, Apart: true}, "shadow would end that")
		goal := Goal{Verb: Enforce, Way: v1alpha1.WayRemove}
		if !same {
			goal.Accept = "a test"
			wants(t, th, goal, "which no migration has made")
			continue
		}
		if ended, err := th.play(goal, 500); !ended || th.world.Source != nil || th.world.Stage() != v1alpha1.StageEnforced || th.world.Carrier == nil {
			t.Errorf("%s: %v; the record has %+v", name, err, th.world.status())
		}
	}
}

// In shadow, with Kyverno's policy gone, enforce leads on: with a reason, or where somebody
// has had kvap enforce it already.
func TestOutOfShadow(t *testing.T) {
	for _, byHand := range []bool{true, false} {
		th := newTheatre(t, 4, v1alpha1.WayAdmission)
		th.closes()
		th.shadowApart()
		th.world.Source, th.source = nil, nil
		goal := Goal{Verb: Enforce}
		wants(t, th, goal, "kvap migrate enforce p --accept REASON")
		wants(t, th, Goal{Verb: Adopt}, "kvap migrate enforce p")
		if byHand {
			o := th.world.Carrier.DeepCopy()
			annotate(o, map[string]string{v1alpha1.ModeKey: v1alpha1.ModeEnforce})
			th.world.Carrier = o
		} else {
			goal.Accept = "a test"
		}
		way, err := goal.WayFor(th.world)
		if err != nil {
			t.Fatal(err)
		}
		goal.Way = way
		if ended, err := th.play(goal, 500); !ended || th.world.Stage() != v1alpha1.StageEnforced || modeOf(th.world.Carrier) != v1alpha1.ModeEnforce {
			t.Errorf("by hand %t: %v; the record has %+v", byHand, err, th.world.status())
		}
	}
}
