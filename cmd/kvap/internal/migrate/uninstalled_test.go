package migrate

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
		th.world.Source, th.world.Unserved, th.world.SourceStatus = nil, true, ControllerStatus{}
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
		if way, err := (Goal{}).WayFor(th.world); c.from.Verb == Shadow && (err == nil || !strings.Contains(err.Error(), "ClusterPolicy of kyverno.io")) {
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

// What kvap enforces still of a policy that went with the definition of its kind becomes a
// policy of kvap.dev, by the record.
func TestAdoptOfWhatIsGone(t *testing.T) {
	th := newTheatre(t, 3, v1alpha1.WayAdmission)
	if !th.run(Goal{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, 500) {
		t.Fatal("enforce does not end")
	}
	th.world.Source, th.world.Unserved, th.kyverno = nil, true, nil // the controller keeps what it read
	for range 100 {
		move, err := (Goal{Verb: Adopt}).Next(th.world)
		if err != nil {
			t.Fatal(err)
		}
		if move == nil {
			break
		}
		if move.IsWait() {
			th.world.CarrierStatus = seenOf(th.world.Carrier, "")
			th.source, th.carrier, th.world.SourceStatus = nil, th.world.Carrier, ControllerStatus{}
			continue
		}
		th.make(move)
	}
	if s := th.world.Record.Status; s.Stage != v1alpha1.StageAdopted || th.world.Carrier == nil || !has(th.world.Carrier, "made") {
		t.Errorf("the record has %+v, and kvap.dev %v", s, th.world.Carrier)
	}
}

// Policies in CEL hang by Kyverno's definitions as others do, and become policies of
// kvap.dev: no kind that kvap enforces has to stay.
func TestAdoptExpressed(t *testing.T) {
	for _, kind := range []string{"ValidatingPolicy", "NamespacedValidatingPolicy"} {
		th := newTheatre(t, 3, v1alpha1.WayAdmission)
		o := object(t, `apiVersion: policies.kyverno.io/v1
kind: `+kind+`
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "has(object.data)", message: no data}]
`)
		th.world.Source = &unstructured.Unstructured{Object: o}
		th.world.Ref.Group, th.world.Ref.Kind = ExceptingGroup, kind
		th.kyverno, th.rules = th.world.Source, nil
		for _, goal := range []Goal{{Verb: Enforce, Way: v1alpha1.WayAdmission, Accept: "a test"}, {Verb: Adopt}} {
			if !th.run(goal, 500) {
				t.Fatalf("%s of a %s does not end", goal.Verb, kind)
			}
		}
		if c := th.world.Carrier; th.world.Source != nil || c == nil || c.GetAPIVersion() != "kvap.dev/v1alpha1" || c.GetKind() != kind || isOff(c) {
			t.Errorf("%s: Kyverno has %v, and kvap.dev %v", kind, th.world.Source, c)
		}
	}
}
