package compare

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/api/v1alpha1"
)

// takesUp is how long API servers are given to judge by what was written, where nobody says
// that they were seen to.
const takesUp = 20 * time.Second

// readSeen reads since when the controller has seen API servers judge by native policies.
func (c *Comparing) readSeen(ctx context.Context, s *Setting, _ *strings.Builder) error {
	s.seen = map[string]time.Time{}
	return c.eachOf(ctx, []string{v1alpha1.Group, "PolicyTranslation", v1alpha1.Version}, func(u unstructured.Unstructured) error {
		t := v1alpha1.PolicyTranslation{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &t); err != nil {
			return err
		}
		s.seeEnforced(t)
		return nil
	})
}

// seeEnforced takes what a PolicyTranslation says of its native policies: the last of those
// that share one counts.
func (s *Setting) seeEnforced(t v1alpha1.PolicyTranslation) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionEnforced)
	if c == nil || c.Status != metav1.ConditionTrue {
		return
	}
	for _, row := range t.Status.Rules {
		for _, name := range row.Objects {
			if at := c.LastTransitionTime.Time; at.After(s.seen[name]) {
				s.seen[name] = at
			}
		}
	}
}

// since is when a native policy, of objects that were written at some times, was seen to be
// judged by: by the controller after the last of them, else a while after that. Before,
// somebody else alone has judged. Times in a cluster leave out the fraction of a second.
func (s *Setting) since(name string, written ...time.Time) time.Time {
	var last time.Time
	for _, at := range written {
		if at.After(last) {
			last = at
		}
	}
	switch seen := s.seen[name]; {
	case seen.After(last):
		return seen.Add(time.Second)
	case last.IsZero(): // nobody knows, as of what comes from files
		return last
	}
	return last.Add(takesUp)
}

// lastWritten is when the spec of an object was written last, as far as its managed fields
// tell; zero where they do not.
func lastWritten(o metav1.Object) time.Time {
	last := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}
