package migrate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// A Move is one thing to do: write, delete, record or wait. Whoever makes it reads
// the PolicyState anew and asks for the next.
type Move struct {
	// Does says what it does, in words.
	Does string
	// Part names it among the moves of its verb, for instance enforce-1-native. Only
	// what is written to policies, or deleted, has one.
	Part string
	// Write is a policy as it is to be: changed where it has a resource version,
	// otherwise made.
	Write *unstructured.Unstructured
	// Delete is the policy to delete.
	Delete *unstructured.Unstructured
	// Record is the record to write.
	Record *v1alpha1.Migration
	// Wait tells that there is nothing to do but wait, and why.
	Wait string
	// Optional tells that one may go on without what is waited for, after a while.
	Optional bool
}

// IsWait tells that there is nothing to do but wait.
func (m *Move) IsWait() bool { return m.Write == nil && m.Delete == nil && m.Record == nil }

// Releases tells that one of two that judge by the policy is let go.
func (m *Move) Releases() bool {
	return m.Part == "enforce-2-kyverno-off" || m.Part == "rollback-2-native-off"
}

func wait(does, why string) *Move { return &Move{Does: does, Wait: why} }

// annotated is a move that sets annotations of a policy; nil where they are as
// wanted. history is written with the others, but is not a reason to write.
func annotated(policy *unstructured.Unstructured, part, does, history string, values map[string]string) *Move {
	same := true
	have := policy.GetAnnotations()
	for key, value := range values {
		same = same && have[key] == value
	}
	if same {
		return nil
	}
	o := policy.DeepCopy()
	annotate(o, values)
	annotate(o, map[string]string{v1alpha1.HistoryKey: history})
	return &Move{Does: does, Part: part, Write: o}
}

// noteUnderWay has the policy that will be left standing say what is under way, before another
// one is deleted or let go; nil where it does. Somebody may have decided before that to
// delete this one, and be slow: what is deleted must be as it was read, so he is refused.
func (w PolicyState) noteUnderWay(policy *unstructured.Unstructured, part string) *Move {
	if policy.GetAnnotations()[v1alpha1.HistoryKey] == w.history() {
		return nil
	}
	o := policy.DeepCopy()
	annotate(o, map[string]string{v1alpha1.HistoryKey: w.history()})
	return &Move{Does: "note in it what is under way", Part: part, Write: o}
}
