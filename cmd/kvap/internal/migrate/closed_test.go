package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// denied is what the API server says beside a Kyverno 1.20.
const denied = "clusterpolicies.kyverno.io is closed"

// closes has Kyverno's successor take its place: it judges by nothing, and the API server
// denies what makes or changes its policies.
func (th *theatre) closes() {
	th.world.Closed, th.kyverno, th.world.Kyverno = denied, nil, Judging{Why: "Kyverno has registered no webhook"}
	th.rules = nil // nobody judges by them until kvap does
}

// play is run on a closed world: nothing is written to Kyverno's policy, Kyverno never
// judges, and once kvap has judged by a rule it goes on to.
func (th *theatre) play(g Goal, moves int) (bool, error) {
	th.t.Helper()
	for range moves {
		th.pass()
		th.kyverno, th.world.Kyverno = nil, Judging{Why: "Kyverno has registered no webhook"}
		if len(th.rules) == 0 && th.carrier != nil && modeOf(th.carrier) == v1alpha1.ModeEnforce {
			th.rules = RuleNames(th.carrier)
		}
		move, err := g.Next(th.world)
		if err != nil || move == nil {
			return err == nil, err
		}
		if move.IsWait() {
			continue
		}
		if move.Write != nil && move.Write.GroupVersionKind().Group == kyvernoGroup {
			th.t.Fatalf("%s: it writes to Kyverno's policy: %s", g.Verb, move.Does)
		}
		if move.Delete != nil && move.Delete.GroupVersionKind().Group == kyvernoGroup && (len(th.rules) == 0 || th.world.Record.Status.Original == nil) {
			th.t.Fatalf("%s: it deletes what nobody judges by yet, or nobody has recorded", g.Verb)
		}
		th.make(move)
		th.judged()
	}
	return false, nil
}

// Beside a Kyverno 1.20 a policy goes to kvap.dev wherever a run is killed, from wherever
// it was when that came; and rollback says that there is no way back, and loses nothing.
func TestClosed(t *testing.T) {
	for seed := range uint64(400) {
		th := newTheatre(t, seed, v1alpha1.WayAdmission)
		digest := Digest(th.world.Source.Object)
		before := []Goal{{Verb: Shadow}, {Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, {Verb: Rollback, To: v1alpha1.StageNone}}
		for _, goal := range before[:th.rand.IntN(4)] {
			th.run(goal, th.rand.IntN(25))
			if d := th.world.status().Doing; d != nil && d.Verb != goal.Verb {
				break // it was killed, and this verb refused
			}
			if th.world.status().Doing != nil {
				break
			}
		}
		was := th.world.Source
		enforced := isOff(was)
		th.closes()
		if enforced {
			th.rules = []string{"labelled", "made"}
		}
		goals := []Goal{{Verb: Shadow}, {Verb: Rollback, To: v1alpha1.StageNone}, {Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}, {Verb: Adopt}}
		for range 4 {
			_, _ = th.play(goals[th.rand.IntN(4)], th.rand.IntN(20))
		}
		// from wherever it is now, the verbs that it names lead on
		if _, err := th.play(Goal{Verb: Shadow}, 500); err != nil && th.world.status().Doing == nil && th.world.Stage() == v1alpha1.StageNone {
			t.Fatalf("%d: shadow: %v", seed, err)
		}
		ended, err := th.play(Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}, 500)
		if ended || th.world.Stage() == v1alpha1.StageEnforced || th.world.Stage() == v1alpha1.StageAdopted {
			ended, err = th.play(Goal{Verb: Adopt}, 500)
		}
		w := th.world
		if !ended || w.Source != nil || w.Carrier == nil || modeOf(w.Carrier) != v1alpha1.ModeEnforce || w.Stage() != v1alpha1.StageAdopted {
			t.Fatalf("%d: it does not come to kvap.dev: %v; the record has %+v; source %v", seed, err, w.status(), w.Source)
		}
		if kept, err := restored(w.status().Original); err != nil || Digest(kept.Object) != digest || Digest(w.Carrier.Object) != digest {
			t.Fatalf("%d: the body is lost: %v", seed, err)
		}
		for _, to := range []v1alpha1.MigrationStage{v1alpha1.StageNone, v1alpha1.StageShadow} {
			if _, err := th.play(Goal{Verb: Rollback, To: to}, 100); err == nil || !strings.Contains(err.Error(), "kvap goes on enforcing") || !strings.Contains(err.Error(), "kubectl annotate") {
				t.Fatalf("%d: rollback: %v", seed, err)
			}
		}
	}
}

// shadowApart has a policy of kvap.dev judge in shadow, as the steps of a repository do.
func (th *theatre) shadowApart() {
	th.t.Helper()
	th.world.SourceStatus = ControllerStatus{} // a controller that goes by no record
	moves, err := Goal{Verb: Shadow, Apart: true}.Moves(th.world)
	if err != nil {
		th.t.Fatal(err)
	}
	for _, m := range moves {
		th.make(m)
	}
	th.carrier = th.world.Carrier
	th.world.CarrierStatus = seenOf(th.carrier, "")
	if th.carrier == nil || modeOf(th.carrier) != v1alpha1.ModeShadow || th.world.Stage() != v1alpha1.StageShadow {
		th.t.Fatalf("shadow: %+v", th.world.status())
	}
}

// In shadow nothing is at stake, and rollback takes kvap's part away again.
func TestClosedShadow(t *testing.T) {
	th := newTheatre(t, 5, v1alpha1.WayAdmission)
	th.closes()
	th.shadowApart()
	if ended, err := th.play(Goal{Verb: Rollback, To: v1alpha1.StageNone}, 500); !ended || th.world.Carrier != nil || th.world.Stage() != v1alpha1.StageNone {
		t.Fatalf("rollback: %v; %+v", err, th.world.status())
	}
	th.shadowApart()
	th.world.Carrier = th.world.Carrier.DeepCopy()
	th.world.Carrier.SetGeneration(2)
	if _, err := th.play(Goal{Verb: Enforce, Way: v1alpha1.WayRemove, Accept: "a test"}, 10); err == nil || !strings.Contains(err.Error(), "no longer the same") {
		t.Errorf("somebody has changed what was in shadow, and it was enforced: %v", err)
	}
}

// What nobody carries out any more is not lost in silence: enforce wants a reason, and the
// record has all of it.
func TestClosedRulesThatStay(t *testing.T) {
	th := newTheatre(t, 9, v1alpha1.WayReplace)
	th.closes()
	if way, err := (Goal{}).WayFor(th.world); way != v1alpha1.WayRemove || err != nil {
		t.Errorf("the way %s, %v", way, err)
	}
	th.world.Record = NewRecord("p", th.world.Ref)
	goal := Goal{Verb: Enforce, Way: v1alpha1.WayRemove, MaxAge: 1}
	if _, err := goal.Next(th.world); err == nil || !strings.Contains(err.Error(), "nobody does") {
		t.Errorf("enforce: %v", err)
	}
	goal.Accept = "a test"
	if ended, err := th.play(goal, 500); !ended || !has(th.world.Carrier, "labelled") || has(th.world.Carrier, "made") {
		t.Fatalf("enforce: %v, %v", err, th.world.Carrier)
	}
	if kept, err := restored(th.world.status().Original); err != nil || !has(kept, "made") {
		t.Errorf("the record has %v, %v", kept, err)
	}
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayReplace} {
		th := newTheatre(t, 9, way)
		th.closes()
		if _, err := (Goal{Verb: Enforce, Way: way, Accept: "a test"}).Next(th.world); err == nil || !strings.Contains(err.Error(), "the way is remove") {
			t.Errorf("%s: %v", way, err)
		}
	}
}

// A policy of which Kyverno had a rest when it was closed is adopted like others.
func TestClosedRest(t *testing.T) {
	th := newTheatre(t, 11, v1alpha1.WayReplace)
	if !th.run(Goal{Verb: Enforce, Way: v1alpha1.WayReplace, Accept: "a test"}, 500) {
		t.Fatal("enforce does not end")
	}
	th.closes()
	th.rules = []string{"labelled"}
	if ended, err := th.play(Goal{Verb: Enforce, Way: v1alpha1.WayReplace, Accept: "a test"}, 100); !ended {
		t.Errorf("enforce, which it is: %v", err)
	}
	if ended, err := th.play(Goal{Verb: Adopt}, 500); !ended || th.world.Source != nil {
		t.Fatalf("adopt: %v", err)
	}
	if kept, err := restored(th.world.status().Original); err != nil || !has(kept, "made") {
		t.Errorf("the record has %v, %v", kept, err)
	}
}
