package scan

import (
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
)

// unreportedLabel on a policy, with whatever value, keeps its results out of reports.
const unreportedLabel = "reports.kyverno.io/disabled"

// A policy with background: false is about requests, and not about objects that were there before it.
// An object that was written since the policy is as it is got in by a request that the policy judged,
// and its rules say of the object what they said then, but for those that ask who acts.

// asks reports whether a rule is asked about objects that are there.
func (p Policies) asks(r *compile.Rule) bool {
	if !p.ForReports {
		return scannable(r)
	}
	if _, unreported := r.Policy.Labels[unreportedLabel]; unreported {
		return false
	}
	if r.Mutates() {
		return p.Mutations && !r.Policy.Invalid && !readsUser(r)
	}
	return scannable(r) || validates(r) && !r.Policy.Background && r.Policy.Admission && !readsUser(r)
}

// judged reports whether an object that was written at a time got in by a request that a policy judged.
// Times of the API server are in seconds: of the same second nothing is known.
func (p Policies) judged(by *policy.Policy, written time.Time) bool {
	since := p.Since[by]
	return !since.IsZero() && written.After(since)
}

// WrittenAt is when an object was last written, whatever subresources say since; zero where it does
// not tell.
func WrittenAt(o *unstructured.Unstructured) time.Time {
	at := o.GetCreationTimestamp().Time
	for _, f := range o.GetManagedFields() {
		if f.Subresource == "" && f.Time != nil && f.Time.After(at) {
			at = f.Time.Time
		}
	}
	return at
}

// readsUser tells whether a rule asks who acts.
func readsUser(r *compile.Rule) bool {
	asking := regexp.MustCompile(`\brequest\.(userInfo|roles|clusterRoles)\b|serviceAccountName|\bauthorizer\b`)
	if r.Source == nil { // a policy in CEL is one rule
		return r.Policy.Source.Get("spec").Mentions(asking)
	}
	if r.Source.Source.Mentions(asking) {
		return true
	}
	acts := func(f *policy.Filter) bool { return len(f.Roles)+len(f.ClusterRoles)+len(f.Subjects) > 0 }
	return slices.ContainsFunc(r.Source.Match.Filters(), acts) || slices.ContainsFunc(r.Source.Exclude.Filters(), acts)
}
