package compare

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
