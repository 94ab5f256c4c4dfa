package compare

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/migrate"
	"github.com/kvap/kvap/migrate/evidence"
	"github.com/kvap/kvap/migrate/live"
)

// takesUp is how long API servers are given to judge by what was written, where nobody says
// that they were seen to.
const takesUp = 20 * time.Second

// readSeen reads since when the controller has seen API servers judge by native policies.
func (c *Comparing) readSeen(ctx context.Context, s *Setting, _ *strings.Builder) error {
	s.seen = map[string]time.Time{}
	return live.EachTranslation(ctx, c.Cluster, c.leave, s.seeEnforced)
}

// seeEnforced takes what a PolicyTranslation says of its native policies: the last of those
// that share one counts.
func (s *Setting) seeEnforced(t v1alpha1.PolicyTranslation) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionEnforced)
	if c == nil || c.Status != metav1.ConditionTrue {
		return
	}
	s.seen[policyKey(strings.TrimPrefix(t.Spec.Source.Namespace+"/"+t.Spec.Source.Name, "/"))] = c.LastTransitionTime.Time
	for _, row := range t.Status.Rules {
		for _, name := range row.Objects {
			if at := c.LastTransitionTime.Time; at.After(s.seen[name]) {
				s.seen[name] = at
			}
		}
	}
}

// policyKey is where the time of a policy is, beside those of native ones.
func policyKey(name string) string { return "of " + name }

// times are since when both sides judge by the policies of a cluster.
func (s *Setting) times() map[string]evidence.Times {
	out := map[string]evidence.Times{}
	for _, p := range s.compared {
		one := evidence.Times{Webhook: s.since(policyKey(p.name), evidence.LastWritten(&p.object))}
		group, kind := p.object.GroupVersionKind().Group, p.object.GetKind()
		if group == v1alpha1.Group { // Kyverno's is gone, or was written before
			group, _, _ = strings.Cut(v1alpha1.KyvernoAPIVersion(kind), "/")
		} else {
			one.Kyverno = kyvernoSince(&p.object)
		}
		if migrate.IsLegacy(v1alpha1.PolicyReference{Group: group, Kind: kind}) {
			one.Never = s.givenUp
		}
		out[p.name] = one
	}
	return out
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

// kyvernoSince is when Kyverno has taken a policy up: when it said so after the spec was
// written last, else a while after that.
func kyvernoSince(policy *unstructured.Unstructured) time.Time {
	written := policy.GetCreationTimestamp().Time
	for _, f := range policy.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(written) && (f.FieldsV1 == nil || strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`)) {
			written = f.Time.Time
		}
	}
	if written.IsZero() { // nobody knows
		return written
	}
	for _, at := range live.ReadySince(policy) {
		if !at.Before(written) {
			return at.Add(time.Second)
		}
	}
	return written.Add(takesUp)
}
