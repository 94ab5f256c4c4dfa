package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// allNamespaces in place of a list of namespaces.
const allNamespaces = "*"

// An exception is a PolicyException in the cluster.
type exception struct {
	namespace, name string
	version         string
	parsed          []*policy.Exception
	expires         time.Time // zero for never
	// why it does not count; empty where it does.
	why string
}

func (l *policyLister) exception(o *unstructured.Unstructured, key string) *exception {
	if before := l.exceptions[key]; before != nil && before.version == o.GetResourceVersion() {
		return before
	}
	file, _ := policy.Parse(key, sourceText(o))
	return &exception{
		namespace: o.GetNamespace(), name: o.GetName(), version: o.GetResourceVersion(),
		parsed: file.Exceptions, expires: expiry(o),
	}
}

// ExpiresKey is the annotation of a PolicyException that says until when it counts,
// for instance 2027-01-31T00:00:00Z.
const ExpiresKey = "kvap.dev/expires-at"

// expiry is when an exception ceases to count. One with a time that nobody can read
// does not count at all: it was not meant to be for ever.
func expiry(o *unstructured.Unstructured) time.Time {
	text, ok := o.GetAnnotations()[ExpiresKey]
	if !ok {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Unix(0, 0)
	}
	return t
}

// except adds an exception, if it counts now.
func (s *policyList) except(e *exception, trusted bool, now time.Time) {
	invalid := func(p *policy.Exception) bool { return p.Invalid }
	e.why = ""
	switch {
	case !trusted:
		e.why = "exceptions of its namespace do not count (--exception-namespaces)"
	case !e.expires.IsZero() && !now.Before(e.expires):
		e.why = "it has expired (" + ExpiresKey + ")"
	case slices.ContainsFunc(e.parsed, invalid):
		e.why = "it cannot be read"
	}
	if e.why != "" {
		s.ignored = append(s.ignored, e)
		return
	}
	if !e.expires.IsZero() && (s.next.IsZero() || e.expires.Before(s.next)) {
		s.next = e.expires
	}
	s.exceptions = append(s.exceptions, e.parsed...)
}

// maxIgnored bounds what a status says of exceptions that do not count: anybody can
// make many.
const maxIgnored = 10

// ignoredFor are the exceptions that name a policy and do not count.
func ignoredFor(p *policy.Policy, ignored []*exception) []v1alpha1.IgnoredException {
	var out []v1alpha1.IgnoredException
	for _, e := range ignored {
		if p != nil && len(out) < maxIgnored && slices.ContainsFunc(e.parsed, func(x *policy.Exception) bool { return x.IsFrom(p) }) {
			out = append(out, v1alpha1.IgnoredException{Namespace: e.namespace, Name: e.name, Reason: e.why})
		}
	}
	return out
}

// sendIgnored makes an event of each exception that names the policy, does not count,
// and was not known before.
func (s *statusWriter) sendIgnored(have *v1alpha1.PolicyTranslation, ref v1alpha1.PolicyReference, ignored []v1alpha1.IgnoredException) {
	for _, e := range ignored {
		if have == nil || !slices.Contains(have.Status.IgnoredExceptions, e) {
			s.events(ref, true, "ExceptionIgnored", fmt.Sprintf("the PolicyException %s/%s does not count: %s", e.Namespace, e.Name, e.Reason))
		}
	}
}
