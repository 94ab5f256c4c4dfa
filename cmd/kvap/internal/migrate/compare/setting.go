package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/evidence"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/live"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A Setting is what is compared, as of one moment: policies, the native
// objects in their place, and what both look up.
type Setting struct {
	Policies   []*policy.Policy
	Exceptions []*policy.Exception
	Found      diag.List // of reading them
	Deployed   judge.Deployed
	Mutations  judge.DeployedMutations
	Known      []map[string]any
	Schemas    *schema.Set

	elsewhere []*policy.Policy // of other namespaces, where none was named

	inForce  map[types.NamespacedName]bool // exceptions that the controller counts
	natives  []evidence.Native
	seen     map[string]time.Time // since when native policies were seen to be judged by, by name
	compared []comparedPolicy     // those of a cluster
	silent   string               // since when Kyverno is, where it is not alive
	givenUp  string               // why it judges by none of kyverno.io
	whole    bool                 // no policy that changes objects was left out
	mark     strings.Builder      // another one where policies or native objects are others
}

// A comparedPolicy is a policy of a cluster whose comparison is recorded.
type comparedPolicy struct {
	name   string // with its namespace
	object unstructured.Unstructured
	digest string // of it, and of what is around it
	unread error  // why the latter is not known
}

// judges compiles what is compared.
func (s *Setting) judges(o Options) (*judge.Judges, error) {
	o.Rewrite(s.Policies)
	return judge.Compile(compile.Input{Policies: s.Policies, Exceptions: s.Exceptions, Found: s.Found},
		compile.Options{Translate: o.Translate}, judge.ClusterState{Objects: s.Known, Deployed: s.Deployed, Mutations: s.Mutations})
}

func labelsOf(p *policy.Policy) labels.Set {
	out := labels.Set{}
	values, _ := p.Source.Get("metadata").Get("labels").Value().(map[string]any)
	for key, value := range values {
		out[key], _ = value.(string)
	}
	return out
}

// limit leaves only the policies of a selection, and their native objects.
func (s *Setting) limit(to live.Selection) error {
	for _, name := range to.Names {
		if !slices.ContainsFunc(s.Policies, func(p *policy.Policy) bool { return to.Means(name, p.Within(), p.Name) }) {
			return fmt.Errorf("there is no policy %s; policies are named as NAME or NAMESPACE/NAME", name)
		}
	}
	kept := map[string]bool{}
	s.whole = true
	every := to
	every.Every = true
	s.Policies = slices.DeleteFunc(s.Policies, func(p *policy.Policy) bool {
		taken := to.Takes(p.Within(), p.Name, labelsOf(p))
		if !taken && every.Takes(p.Within(), p.Name, labelsOf(p)) {
			s.elsewhere = append(s.elsewhere, p)
		}
		kept[p.FullName()] = kept[p.FullName()] || taken
		// Kyverno may change objects by it in a way that no rule which is compared explains:
		// it gives images their digests.
		unexplained := func(r *policy.Rule) bool { return r.Mutate != nil && !taken || r.VerifyImages != nil }
		if p.PinsImages() && p.InCEL() || slices.ContainsFunc(p.Rules, unexplained) {
			s.whole = false
		}
		return !taken
	})
	s.compared = slices.DeleteFunc(s.compared, func(p comparedPolicy) bool { return !kept[p.name] })
	if len(s.Policies) == 0 {
		return errors.New("no policy is chosen; -A takes those of all namespaces")
	}
	return nil
}

// ownNatives leaves only native objects that were made from the policies: those of
// others have nothing to be held against. They are kept as natives, for the log speaks
// of what is in the cluster.
func (s *Setting) ownNatives() {
	var own judge.Deployed
	for _, p := range s.Deployed.Policies {
		written := []time.Time{evidence.LastWritten(p)}
		var bound judge.Deployed
		for _, b := range s.Deployed.Bindings {
			if b.Spec.PolicyName == p.Name {
				bound.Bindings = append(bound.Bindings, b)
				written = append(written, evidence.LastWritten(b))
			}
		}
		native := evidence.Native{Policy: p, LeftOut: s.Deployed.LeftOut(p.Name), Since: s.since(p.Name, written...)}
		s.natives = append(s.natives, native)
		if !slices.ContainsFunc(s.Policies, func(source *policy.Policy) bool { return slices.Contains(s.Deployed.Sources(p), source.FullName()) }) {
			continue
		}
		own.Policies, own.Bindings = append(own.Policies, p), append(own.Bindings, bound.Bindings...)
	}
	s.Deployed = own
}

// takesUp is how long API servers are given to judge by what was written, where nobody says
// that they were seen to.
const takesUp = 20 * time.Second

// readSeen reads since when the controller has seen API servers judge by native policies.
func (c *Comparing) readSeen(ctx context.Context, s *Setting) error {
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
	last := slices.MaxFunc(written, time.Time.Compare)
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
