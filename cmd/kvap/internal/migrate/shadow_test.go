package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
)

// Into shadow and out of it again, nothing is written but the record, whatever Kyverno is beside:
// each write of one of its policies asks its own webhook.
func TestShadowIsOfTheRecord(t *testing.T) {
	for _, closed := range []bool{false, true} {
		th := newTheatre(t, 2, v1alpha1.WayAdmission)
		if closed {
			th.closes()
		}
		for _, goal := range []Goal{{Verb: Shadow}, {Verb: Rollback, To: v1alpha1.StageNone}} {
			for range 500 {
				th.pass()
				move, err := goal.Next(th.world)
				if err != nil {
					t.Fatal(err)
				}
				if move == nil {
					break
				}
				if move.Write != nil || move.Delete != nil {
					t.Fatalf("closed %t, %s: %s", closed, goal.Verb, move.Does)
				}
				if move.Record != nil {
					th.make(move)
				}
			}
			if th.world.Stage() != goal.stage() || th.world.status().Doing != nil {
				t.Fatalf("closed %t: after %s the record has %+v", closed, goal.Verb, th.world.status())
			}
			if goal.Verb == Shadow && th.world.SourceStatus.Mode != v1alpha1.ModeShadow {
				t.Errorf("closed %t: the controller has it in the mode %q", closed, th.world.SourceStatus.Mode)
			}
		}
	}
}

// A policy that names a mode itself is not put into shadow by the record.
func TestShadowOfWhatNamesAMode(t *testing.T) {
	th := newTheatre(t, 2, v1alpha1.WayAdmission)
	annotate(th.world.Source, map[string]string{v1alpha1.ModeKey: v1alpha1.ModeOff})
	if _, err := (Goal{Verb: Shadow}).Next(th.world); err == nil || !strings.Contains(err.Error(), "kvap.dev/mode of it says off") {
		t.Errorf("%v", err)
	}
}
