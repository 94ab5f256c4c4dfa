package migrate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// Moves are all moves from a world to the goal, if nothing goes wrong: what is waited
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

// After is the world after moves that went well.
func (w PolicyState) After(moves []*Move) PolicyState {
	for _, m := range moves {
		w = w.after(m)
	}
	return w
}

// after is the world after a move that went well. After waiting, everybody judges by
// what is there.
func (w PolicyState) after(m *Move) PolicyState {
	switch {
	case m.Record != nil:
		w.Record = m.Record
	case m.Write != nil:
		w = w.with(m.Write, m.Write)
	case m.Delete != nil:
		w = w.with(m.Delete, nil)
	default:
		w.SourceStatus, w.CarrierStatus = seenOf(w.Source), seenOf(w.Carrier)
		w.Kyverno = Judging{Yes: w.Source != nil && !isOff(w.Source) && !w.GivenUp}
	}
	return w
}

// with has the policy of a kind replaced.
func (w PolicyState) with(of, by *unstructured.Unstructured) PolicyState {
	if of.GroupVersionKind().Group == v1alpha1.Group {
		w.Carrier = by
		return w
	}
	w.Source, w.Kyverno = by, Judging{Why: "it has just changed"}
	return w
}

func seenOf(policy *unstructured.Unstructured) ControllerStatus {
	if policy == nil {
		return ControllerStatus{}
	}
	return ControllerStatus{Exists: true, UID: policy.GetUID(), Mode: modeOf(policy), Generation: policy.GetGeneration(), Judging: Judging{Yes: true}}
}
