package controller

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A policyLister reads and parses the policies and exceptions of the cluster. What has not
// changed stays the same value from pass to pass.
type policyLister struct {
	client client.Reader
	direct client.Reader // with no cache
	mode   string
	// trusted are the namespaces whose exceptions count; allNamespaces means all. Else whoever
	// may make an exception in a namespace of his own could switch off the policies of the
	// whole cluster.
	trusted    []string
	sources    map[string]*policySource
	exceptions map[string]*exception
	watched    map[string]apischema.GroupVersionKind // as they were read
	// remembered is the text of the last good version of a policy, as an earlier
	// process noted it.
	remembered func(context.Context, v1alpha1.PolicyReference) ([]byte, error)
}

// A policyList is what a policyLister has read at a time, in a fixed order.
type policyList struct {
	sources    []*policySource
	exceptions []*policy.Exception
	counting   []*exception // the same
	ignored    []*exception // those that do not count now
	next       time.Time    // when an exception expires, zero for never
	// taken are names of native objects that somebody else made.
	taken []string
}

// read reads all objects of the kinds that are watched.
func (l *policyLister) read(ctx context.Context, watched map[string]apischema.GroupVersionKind, now time.Time) (policyList, error) {
	var out policyList
	modes, err := l.recordedModes(ctx)
	if err != nil {
		return out, err
	}
	sources, exceptions := map[string]*policySource{}, map[string]*exception{}
	for _, kind := range sourceKinds() {
		gvk, ok := watched[kind.definition()]
		if !ok {
			continue
		}
		objects, err := l.list(ctx, gvk)
		if err != nil {
			return out, err
		}
		for i := range objects {
			o := &objects[i]
			key := TranslationName(referenceTo(o))
			if kind.exception {
				exceptions[key] = l.exception(o, key)
				trusted := slices.Contains(l.trusted, allNamespaces) || slices.Contains(l.trusted, o.GetNamespace())
				out.except(exceptions[key], trusted, now)
				continue
			}
			if sources[key], err = l.source(ctx, o, key, l.modeOf(o, modes)); err != nil {
				return out, err
			}
			out.sources = append(out.sources, sources[key])
		}
	}
	kept, err := l.uninstalled(ctx, sources)
	if err != nil {
		return out, err
	}
	for _, s := range kept {
		sources[TranslationName(s.ref)] = s
		out.sources = append(out.sources, s)
	}
	l.sources, l.exceptions, l.watched = sources, exceptions, maps.Clone(watched)
	return out, nil
}

// isOutdated tells that policies have come, gone or changed since they were read.
func (l *policyLister) isOutdated(ctx context.Context) bool {
	n := 0
	modes, err := l.recordedModes(ctx)
	if err != nil {
		return false // who reads next will say so
	}
	for _, kind := range sourceKinds() {
		gvk, ok := l.watched[kind.definition()]
		if !ok || kind.exception {
			continue
		}
		objects, err := l.list(ctx, gvk)
		if err != nil {
			return false // who reads next will say so
		}
		n += len(objects)
		for i := range objects {
			o := &objects[i]
			if s := l.sources[TranslationName(referenceTo(o))]; s == nil || !s.says(o) || s.otherwise != l.modeOf(o, modes) {
				return true
			}
		}
	}
	for _, s := range l.sources {
		if s.uninstalled {
			n++
		}
	}
	return n != len(l.sources)
}

// recordedModes are the modes that records of migrations give policies, by the name of the record.
func (l *policyLister) recordedModes(ctx context.Context) (map[string]string, error) {
	var list v1alpha1.MigrationList
	if err := l.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for i := range list.Items {
		if m := &list.Items[i]; m.Status.Shadows() {
			out[m.Name] = v1alpha1.ModeShadow
		}
	}
	return out, nil
}

// modeOf is the mode of a policy that says none itself: the record of a migration goes before
// the flag.
func (l *policyLister) modeOf(o *unstructured.Unstructured, recorded map[string]string) string {
	return cmp.Or(recorded[TranslationName(referenceTo(o))], l.mode)
}

func (l *policyLister) list(ctx context.Context, gvk apischema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := l.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return list.Items, nil
}

// source reads a policy. Where its last good version cannot be asked for, nothing is
// known of it, which is not the same as that there is none.
func (l *policyLister) source(ctx context.Context, o *unstructured.Unstructured, key, otherwise string) (*policySource, error) {
	before := l.sources[key]
	if before != nil && before.ref.UID != o.GetUID() {
		before = nil
	}
	var err error
	s := readSource(o, otherwise, before, func() (text []byte) {
		text, err = l.remembered(ctx, referenceTo(o))
		return text
	})
	return s, err
}

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
	file, _ := policy.Parse(key, SourceText(o))
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
	s.exceptions, s.counting = append(s.exceptions, e.parsed...), append(s.counting, e)
}

// maxActive bounds what a status says of exceptions that count.
const maxActive = 50

// activeFor are the exceptions from a policy that count.
func activeFor(p *policy.Policy, counting []*exception) (out []v1alpha1.ActiveException) {
	for _, e := range counting {
		for _, x := range e.parsed {
			if p == nil || len(out) == maxActive || !x.IsFrom(p) {
				continue
			}
			one := v1alpha1.ActiveException{Namespace: e.namespace, Name: e.name, Rules: x.RulesOf(p)}
			if !e.expires.IsZero() {
				at := metav1.NewTime(e.expires.UTC())
				one.Expires = &at
			}
			out = append(out, one)
		}
	}
	return out
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

// reasonUninstalled is the reason of Compiled where the definition of a policy's kind was
// removed, and the policy with it.
const reasonUninstalled = "SourceUninstalled"

// uninstalled are the policies that went with the definition of their kind, as when
// Kyverno is uninstalled. Nobody has said that they are not wanted any more, so what is
// enforced of them stays enforced: by the text that their PolicyTranslations keep, in the
// next process too, until there is a policy of the name again, in kvap's kind or in theirs,
// or somebody deletes the PolicyTranslation. have are the policies that are there.
func (l *policyLister) uninstalled(ctx context.Context, have map[string]*policySource) ([]*policySource, error) {
	var list v1alpha1.PolicyTranslationList
	if err := l.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.PolicyTranslation) int { return strings.Compare(a.Name, b.Name) })
	var out []*policySource
	for i := range list.Items {
		t := &list.Items[i]
		kind, ok := sourceKindOf(t.Spec.Source.Group, t.Spec.Source.Kind)
		ok = ok && !kind.exception && kind.group != v1alpha1.Group // whoever takes kvap's own definitions away uninstalls kvap
		carrier := t.Spec.Source                                   // the policy of kvap.dev that carries it on
		carrier.Group, carrier.UID = v1alpha1.Group, ""
		if have[t.Name] != nil || have[TranslationName(carrier)] != nil || !ok ||
			t.Labels[vap.ManagedByLabel] != Manager || t.DeletionTimestamp != nil || t.Status.Mode != v1alpha1.ModeEnforce {
			continue
		}
		before := l.sources[t.Name]
		if before != nil && before.ref.UID != t.Spec.Source.UID {
			before = nil
		}
		said := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionCompiled)
		if (before == nil || !before.uninstalled) && (said == nil || said.Reason != reasonUninstalled) {
			if gone, err := l.isGone(ctx, kind); err != nil || !gone {
				if err != nil {
					return nil, err
				}
				continue // the policy was deleted, and its kind is there
			}
		}
		s, err := l.keep(ctx, t, before)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// keep is a policy as it was, by its text.
func (l *policyLister) keep(ctx context.Context, t *v1alpha1.PolicyTranslation, before *policySource) (*policySource, error) {
	if before != nil && before.uninstalled {
		return before, nil
	}
	s := &policySource{ref: t.Spec.Source, generation: t.Status.SourceGeneration, digest: t.Status.SourceDigest, mode: v1alpha1.ModeEnforce, uninstalled: true}
	if before != nil {
		s.text = before.text
	} else {
		var err error
		if s.text, err = l.remembered(ctx, s.ref); err != nil {
			return nil, err
		}
	}
	if s.text != nil {
		s.policy, s.found = parsePolicy(s.ref, s.text)
	}
	s.act(before)
	return s, nil
}

// isGone asks the API server, and no cache, whether a definition is being deleted, or is
// not there: its objects are deleted after that.
func (l *policyLister) isGone(ctx context.Context, kind sourceKind) (bool, error) {
	list := definitionsList()
	if err := l.direct.List(ctx, list, client.MatchingFields{"metadata.name": kind.definition()}); err != nil {
		return false, fmt.Errorf("whether %s is there: %w", kind.definition(), err)
	}
	return !slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
		return o.Name == kind.definition() && o.DeletionTimestamp == nil
	}), nil
}
