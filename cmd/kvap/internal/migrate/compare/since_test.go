package compare

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
)

// What a log says from before a native policy was seen to be judged by is held against
// nobody: it is seen later than it is written.
func TestSince(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	enforced := func(status metav1.ConditionStatus, since time.Time, object string) v1alpha1.PolicyTranslation {
		return v1alpha1.PolicyTranslation{Status: v1alpha1.PolicyTranslationStatus{
			Rules:      []v1alpha1.RuleStatus{{Rule: "r", Objects: []string{object}}},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionEnforced, Status: status, LastTransitionTime: metav1.NewTime(since)}},
		}}
	}
	s := &Setting{seen: map[string]time.Time{}}
	s.seeEnforced(enforced(metav1.ConditionTrue, at(7), "shared"))
	s.seeEnforced(enforced(metav1.ConditionTrue, at(9), "shared"))
	s.seeEnforced(enforced(metav1.ConditionUnknown, at(9), "unseen"))
	for _, c := range []struct {
		name    string
		written []time.Time
		want    time.Time
	}{
		{"shared", []time.Time{at(2), at(3)}, at(10)},
		{"shared", []time.Time{at(2), at(30)}, at(30).Add(takesUp)}, // its binding was written after that
		{"unseen", []time.Time{at(2)}, at(2).Add(takesUp)},
		{"of a file", []time.Time{{}}, time.Time{}},
	} {
		if got := s.since(c.name, c.written...); !got.Equal(c.want) {
			t.Errorf("%s, written at %v: since %v, want %v", c.name, c.written, got, c.want)
		}
	}
}

// Kyverno has a policy since it said so after the spec was written; what is written into its
// metadata, as kvap's mode, is nothing to it.
func TestKyvernoSince(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0).UTC() }
	policy := func(ready time.Time, writes map[string]time.Time) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": ready.Format(time.RFC3339)},
		}}}}
		o.SetCreationTimestamp(metav1.NewTime(at(0)))
		var fields []metav1.ManagedFieldsEntry
		for what, when := range writes {
			fields = append(fields, metav1.ManagedFieldsEntry{Time: &metav1.Time{Time: when}, FieldsV1: metav1.NewFieldsV1(`{"f:` + what + `":{}}`)})
		}
		o.SetManagedFields(fields)
		return o
	}
	for name, c := range map[string]struct {
		policy *unstructured.Unstructured
		want   time.Time
	}{
		"ready":             {policy(at(2), map[string]time.Time{"spec": at(1)}), at(3)},
		"changed since":     {policy(at(2), map[string]time.Time{"spec": at(5)}), at(5).Add(takesUp)},
		"annotated since":   {policy(at(2), map[string]time.Time{"spec": at(1), "metadata": at(9)}), at(3)},
		"nobody knows when": {&unstructured.Unstructured{Object: map[string]any{}}, time.Time{}},
	} {
		if got := kyvernoSince(c.policy); !got.Equal(c.want) {
			t.Errorf("%s: since %v, want %v", name, got, c.want)
		}
	}
}
