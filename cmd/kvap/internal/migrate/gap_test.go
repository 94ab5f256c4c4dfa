package migrate

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// sharpened is a policy that somebody has changed.
func sharpened(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.Object["spec"].(map[string]any)["failurePolicy"] = "Ignore"
	return o
}

// What is changed in a policy after one of kvap.dev was made of it is not deleted with it.
func TestChangedBeforeItIsDeleted(t *testing.T) {
	begun := func(t *testing.T, way v1alpha1.MigrationWay, goal Goal) *theatre {
		th := newTheatre(t, 3, way)
		if goal.Verb == Adopt && !th.run(Goal{Verb: Enforce, Way: way, Accept: "a test"}, 500) {
			t.Fatal("enforce does not end")
		}
		for th.world.Carrier == nil {
			th.run(goal, 1)
		}
		return th
	}
	for way, goal := range map[v1alpha1.MigrationWay]Goal{
		v1alpha1.WayRemove:    {Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"},
		v1alpha1.WayReplace:   {Verb: Enforce, Way: v1alpha1.WayReplace, Accept: "a test"},
		v1alpha1.WayAdmission: {Verb: Adopt},
	} {
		th := begun(t, way, goal)
		th.world.Source = sharpened(th.world.Source)
		if move, err := goal.Next(th.world); err == nil {
			t.Errorf("%s %s goes on with %q, though the policy has changed", goal.Verb, way, move.Does)
		}
		if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
			t.Errorf("%s %s: there is no way back", goal.Verb, way)
		}
		if th.world.Source.Object["spec"].(map[string]any)["failurePolicy"] != "Ignore" {
			t.Errorf("%s %s: the change is lost", goal.Verb, way)
		}
	}
}

// A policy that somebody changes while it is being enforced where it is, is another than
// the one that was compared: neither is Kyverno switched off for it, nor is it said to be
// done where that is off already. A comparison of what it is now leads on.
func TestChangedWhileItIsEnforced(t *testing.T) {
	for _, off := range []bool{false, true} {
		th := newTheatre(t, 11, v1alpha1.WayAdmission)
		goal := Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test", MaxAge: time.Hour}
		for modeOf(th.world.Source) != v1alpha1.ModeEnforce || isOff(th.world.Source) != off {
			th.run(goal, 1)
		}
		th.world.Source = sharpened(th.world.Source)
		for range 20 {
			th.pass()
		}
		move, err := goal.Next(th.world)
		if err == nil {
			t.Fatalf("off %v: it goes on with %q, though the policy has changed", off, move.Does)
		}
		for _, want := range []string{"has changed", "kvap migrate compare p", "kvap migrate rollback p"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("off %v: %v; want %q", off, err, want)
			}
		}
		if strings.Contains(err.Error(), "Kyverno is switched off") != off {
			t.Errorf("off %v: %v", off, err)
		}
		digest := th.world.digest()
		th.world.Record = th.world.Record.DeepCopy()
		th.world.Record.Status.Comparison = &v1alpha1.Comparison{At: metav1.NewTime(th.world.Now), Digest: digest, Clean: true}
		if !th.run(goal, 500) {
			t.Fatalf("off %v: enforce does not end, though what it is now was compared", off)
		}
		s := th.world.Record.Status
		if original, err := restored(s.Original); s.Stage != v1alpha1.StageEnforced || err != nil || original.Object["spec"].(map[string]any)["admission"] == false || s.Original.Digest != digest {
			t.Errorf("off %v: the record has %+v, %v", off, s, err)
		}
		if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
			t.Fatalf("off %v: there is no way back", off)
		}
		th.isBack(digest)
	}
}

// What was changed in a policy between enforce and adopt is there after the way back.
func TestRollbackOfAdoptKeepsChanges(t *testing.T) {
	th := newTheatre(t, 5, v1alpha1.WayAdmission)
	if !th.run(Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, 500) {
		t.Fatal("enforce does not end")
	}
	th.world.Source = sharpened(th.world.Source)
	digest := th.world.digest()
	if !th.run(Goal{Verb: Adopt}, 500) {
		t.Fatal("adopt does not end")
	}
	if !th.run(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500) {
		t.Fatal("rollback does not end")
	}
	th.isBack(digest)
}

// A policy that was moved by files of --output-dir, or whose record was deleted, is
// neither taken from kvap nor said to be back.
func TestMovedWithoutRecord(t *testing.T) {
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayReplace} {
		th := newTheatre(t, 9, way)
		if !th.run(Goal{Verb: Enforce, Way: way, Accept: "a test"}, 500) {
			t.Fatal("enforce does not end")
		}
		th.world.Record = nil
		if move, err := (Goal{Verb: Rollback, To: v1alpha1.StageNone}).Next(th.world); err == nil {
			t.Errorf("%s: rollback has the move %v, and nothing to go back to", way, move)
		}
		if way == v1alpha1.WayReplace { // a policy of kvap.dev goes on enforcing
			continue
		}
		if move, err := (Goal{Verb: Shadow}).Next(th.world); err == nil {
			t.Errorf("%s: shadow has the move %q, after which nobody judges", way, move.Does)
		}
	}
}

// Kyverno may never answer: as long as kvap holds a policy on its way back, enforce leads
// forward again, and at every moment somebody judges.
func TestForwardAgain(t *testing.T) {
	forwards := 0
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayReplace, v1alpha1.WayRemove} {
		for seed := range uint64(200) {
			th := newTheatre(t, seed, way)
			digest := Digest(th.world.Source.Object)
			enforce, back := Goal{Verb: Enforce, Way: way, Accept: "a test"}, Goal{Verb: Rollback, To: v1alpha1.StageNone}
			if !th.run(enforce, 500) {
				t.Fatalf("%s %d: enforce does not end", way, seed)
			}
			th.run(back, th.rand.IntN(12))
			if enforce.forwardAgain(th.world) {
				forwards++
				if !th.run(enforce, 500) {
					t.Fatalf("%s %d: enforce does not end after a rollback that was begun", way, seed)
				}
				if s := th.world.Record.Status; s.Stage != v1alpha1.StageEnforced || s.Doing != nil || s.Way != way {
					t.Fatalf("%s %d: the record has %+v", way, seed, s)
				}
			}
			if !th.run(back, 500) {
				t.Fatalf("%s %d: rollback does not end", way, seed)
			}
			th.isBack(digest)
		}
	}
	if forwards < 100 {
		t.Errorf("only %d went forward again", forwards)
	}
}

// The same for a policy that was adopted.
func TestAdoptedForwardAgain(t *testing.T) {
	forwards := 0
	for seed := range uint64(200) {
		th := newTheatre(t, seed, v1alpha1.WayAdmission)
		digest := Digest(th.world.Source.Object)
		adopt, back := Goal{Verb: Adopt}, Goal{Verb: Rollback, To: v1alpha1.StageNone}
		for _, goal := range []Goal{{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, adopt} {
			if !th.run(goal, 500) {
				t.Fatalf("%d: %s does not end", seed, goal.Verb)
			}
		}
		th.run(back, th.rand.IntN(12))
		if adopt.forwardAgain(th.world) {
			forwards++
			if on := th.world.WayOn(); !strings.Contains(on, "kvap migrate adopt p leads forward again") {
				t.Fatalf("%d: %q", seed, on)
			}
			if !th.run(adopt, 500) {
				t.Fatalf("%d: adopt does not end after a rollback that was begun", seed)
			}
			if s := th.world.Record.Status; s.Stage != v1alpha1.StageAdopted || s.Doing != nil || th.world.Source != nil {
				t.Fatalf("%d: the record has %+v", seed, s)
			}
		}
		if !th.run(back, 500) {
			t.Fatalf("%d: rollback does not end", seed)
		}
		th.isBack(digest)
	}
	if forwards < 50 {
		t.Errorf("only %d went forward again", forwards)
	}
}

// However long a reason is, the history fits into an annotation, and the record has it all.
func TestLongReason(t *testing.T) {
	why := strings.Repeat("because ", 100_000)
	th := newTheatre(t, 1, v1alpha1.WayAdmission)
	if !th.run(Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: why}, 500) {
		t.Fatal("enforce does not end")
	}
	if history := th.world.Source.GetAnnotations()[v1alpha1.HistoryKey]; len(history) > 500 || !strings.Contains(history, "accepted: because") {
		t.Errorf("the history has %d bytes", len(history))
	}
	if got := th.world.Record.Status.Steps[0].Why; got != why {
		t.Errorf("the record has %d bytes of the reason", len(got))
	}
}

// A message names a namespaced policy as the next command takes it.
func TestMessagesNameTheNamespace(t *testing.T) {
	th := newTheatre(t, 1, v1alpha1.WayReplace)
	th.world.Ref.Namespace, th.world.Ref.Kind = "shop", "Policy"
	if _, err := (Goal{Verb: Enforce, MaxAge: 1}).Next(th.world); err == nil || !strings.Contains(err.Error(), "kvap migrate compare shop/p,") {
		t.Errorf("%v", err)
	}
}
