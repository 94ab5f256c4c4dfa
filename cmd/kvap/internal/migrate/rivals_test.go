package migrate

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A rival is one of several processes at work on the same policy. What it does next it
// has decided by what it read a while ago.
type rival struct {
	goal Goal
	read PolicyState
	next *Move
	left bool // it has reached its goal, or was refused
}

// step has a rival look and decide, or do what it had decided.
func (r *rival) step(th *theatre) {
	switch {
	case r.left:
	case r.next == nil:
		r.read = th.world
		move, err := r.goal.Next(r.read)
		if r.left = err != nil || move == nil; !r.left && !move.IsWait() {
			r.next = move
		}
	default:
		if r.upToDate(th.world) {
			th.make(r.versioned(th))
		}
		r.next = nil
	}
}

// upToDate tells that an API server would carry the move out: what it changes, or
// deletes, is still as it was read.
func (r *rival) upToDate(now PolicyState) bool {
	is, was := version(now.Source), version(r.read.Source)
	switch {
	case r.next.Record != nil:
		is, was = recordVersion(now.Record), recordVersion(r.read.Record)
	case ofKvap(r.next.Write) || ofKvap(r.next.Delete):
		is, was = version(now.Carrier), version(r.read.Carrier)
	}
	return is == was
}

func ofKvap(o *unstructured.Unstructured) bool {
	return o != nil && o.GroupVersionKind().Group == v1alpha1.Group
}

func version(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	return o.GetResourceVersion()
}

func recordVersion(m *v1alpha1.Migration) string {
	if m == nil {
		return ""
	}
	return m.ResourceVersion
}

// versioned is the move with the version that the API server gives what is written: a
// new one, where something changes.
func (r *rival) versioned(th *theatre) *Move {
	th.versions++
	v := strconv.Itoa(th.versions)
	m := *r.next
	switch {
	case m.Record != nil:
		m.Record = m.Record.DeepCopy()
		m.Record.ResourceVersion = v
	case m.Write != nil:
		is := th.world.Source
		if ofKvap(m.Write) {
			is = th.world.Carrier
		}
		m.Write = m.Write.DeepCopy()
		if is == nil || !reflect.DeepEqual(is.Object["spec"], m.Write.Object["spec"]) || !maps.Equal(is.GetAnnotations(), m.Write.GetAnnotations()) {
			m.Write.SetResourceVersion(v)
		}
	}
	return &m
}

// Of several people who lead a policy to different goals at once, each with a view that
// may be old when it acts, some are refused; at every moment somebody judges by each
// rule, and rollback leads back in the end.
func TestRivals(t *testing.T) {
	for _, way := range []v1alpha1.MigrationWay{v1alpha1.WayAdmission, v1alpha1.WayReplace, v1alpha1.WayRemove} {
		for seed := range uint64(60) {
			th := newTheatre(t, seed, way)
			th.world.Source.SetResourceVersion("0")
			digest := th.world.digest()
			enforce, back := Goal{Verb: Enforce, Way: way, Accept: "a test"}, Goal{Verb: Rollback, To: v1alpha1.StageNone}
			goals := []Goal{enforce, back, enforce, back}
			if way != v1alpha1.WayReplace {
				goals = append(goals, Goal{Verb: Adopt})
			}
			th.compete(goals, seed)
			last := &rival{goal: back}
			for i := 0; i < 500 && !last.left; i++ {
				th.pass()
				last.step(th)
			}
			if !last.left {
				t.Fatalf("%s %d: rollback does not end", way, seed)
			}
			th.isBack(digest)
		}
	}
}

// compete has rivals act in any order, and in the end those that had been waiting the
// longest.
func (th *theatre) compete(goals []Goal, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	var rivals []*rival
	for _, g := range goals {
		rivals = append(rivals, &rival{goal: g})
	}
	for range 150 {
		th.world.Now = th.world.Now.Add(time.Second)
		th.pass()
		n := random.IntN(len(rivals))
		for range random.IntN(6) { // it is fast, and the others sleep
			th.pass()
			if rivals[n].step(th); rivals[n].left {
				rivals[n] = &rival{goal: goals[n]} // somebody tries again
			}
		}
	}
	for _, r := range rivals {
		if r.next != nil {
			th.pass()
			r.step(th)
		}
	}
}
