package migrate

import (
	"cmp"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/report"
)

// Offline is what becomes of a policy of a file, where no cluster is asked, and the
// components that lead there.
func (g Goal) Offline(w PolicyState) (report.HandedOverPolicy, []Component) {
	g.Unrecorded, g.InFiles = true, true
	out := HandedOver(w)
	left := func(err error) (report.HandedOverPolicy, []Component) {
		out.Left = err.Error()
		return out, nil
	}
	if w.Ref.Group == v1alpha1.Group {
		out.From, out.To = string(v1alpha1.StageAdopted), string(v1alpha1.StageAdopted)
		if g.Verb == Enforce {
			return out, nil
		}
		return left(errors.New("it is adopted: a policy of kvap.dev, which Kyverno does not know; kvap enforces it"))
	}
	if g.Verb == Rollback {
		w, g.Way = g.enforced(w), ""
	}
	if g.Verb == Enforce && g.Way == "" {
		way, err := g.WayFor(w)
		if err != nil {
			return left(err)
		}
		g.Way = way
	}
	moves, err := g.Moves(w)
	if err != nil {
		return left(err)
	}
	components, err := Components(w, moves)
	if err != nil {
		return left(err)
	}
	for _, m := range moves {
		if m.Record == nil {
			out.Moves = append(out.Moves, m.Told())
		}
	}
	if len(moves) > 0 {
		out.To, out.Way = EndOf(moves)
	}
	return out, components
}

// enforced is the state after the steps of enforce, where a repository has them: the
// way back begins there, and ends at what the files have. A policy that enforce leaves
// alone is where it was.
func (g Goal) enforced(w PolicyState) PolicyState {
	goal := Goal{Verb: Enforce, Way: g.Way, Apart: g.Apart, Accept: "it is enforced"}
	if goal.Way == "" {
		var err error
		if goal.Way, err = goal.WayFor(w); err != nil {
			return w
		}
	}
	moves, err := goal.Moves(w)
	if err != nil {
		return w
	}
	for _, m := range moves {
		w = w.after(m)
	}
	return w
}

// HandedOver is what is told of a policy before anything is done.
func HandedOver(w PolicyState) report.HandedOverPolicy {
	return report.HandedOverPolicy{Kind: w.Ref.Kind, Namespace: w.Ref.Namespace, Name: w.Ref.Name, From: string(w.Stage()), To: string(w.Stage())}
}

// Told is what is told of a move.
func (m *Move) Told() report.HandoverMove {
	return report.HandoverMove{Does: m.Does, Part: m.Part, Noted: m.Record != nil}
}

// EndOf is the stage to which moves lead, and the way that they take, by their last
// record.
func EndOf(moves []*Move) (stage, way string) {
	for _, m := range moves {
		if m.Record != nil {
			stage, way = string(m.Record.Status.Stage), string(m.Record.Status.Way)
		}
	}
	return stage, way
}

// Moves are all moves from a state to the goal, if nothing goes wrong: what is waited
// for comes at once. Waiting is among them, as what will be seen to.
func (g Goal) Moves(w PolicyState) ([]*Move, error) {
	const bound = 50 // a goal takes about ten
	var out []*Move
	waited := map[string]bool{}
	for range bound {
		move, err := g.Next(w)
		if err != nil || move == nil {
			return out, err
		}
		if !move.IsWait() || !waited[move.Does] {
			out = append(out, move)
		}
		waited[move.Does] = move.IsWait()
		w = w.after(move)
	}
	return nil, fmt.Errorf("%s of %s does not come to an end; this is a bug of kvap", g.Verb, w.Title())
}

// after is the state after a move that went well. After waiting, everybody judges by
// what is there.
func (w PolicyState) after(m *Move) PolicyState {
	switch {
	case m.Record != nil:
		w.Record = m.Record
	case m.IsWait():
		w.SourceStatus, w.CarrierStatus = seenOf(w.Source, w.recordedMode()), seenOf(w.Carrier, "")
		w.Kyverno = Judging{Yes: w.Source != nil && !isOff(w.Source) && !w.GivenUp}
	case cmp.Or(m.Write, m.Delete).GroupVersionKind().Group == v1alpha1.Group:
		w.Carrier = m.Write
	default:
		w.Source, w.Kyverno = m.Write, Judging{Why: "it has just changed"}
	}
	return w
}

// seenOf is what a controller says of a policy, in the given mode where it names none.
func seenOf(policy *unstructured.Unstructured, otherwise string) ControllerStatus {
	if policy == nil {
		return ControllerStatus{}
	}
	return ControllerStatus{Exists: true, UID: policy.GetUID(), Mode: cmp.Or(modeOf(policy), otherwise), Generation: policy.GetGeneration(), Judging: Judging{Yes: true}}
}
