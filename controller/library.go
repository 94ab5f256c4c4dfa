package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
)

// A library has the policies and exceptions of the cluster, read and parsed. What
// has not changed stays the same value from pass to pass.
type library struct {
	client     client.Reader
	mode       string
	sources    map[string]*policySource
	exceptions map[string]*exception
	// remembered is the text of the last good version of a policy, as an earlier
	// process noted it.
	remembered func(context.Context, v1alpha1.PolicyReference) ([]byte, error)
}

// An exception is a PolicyException in the cluster.
type exception struct {
	version string
	parsed  []*policy.Exception
	expires time.Time // zero for never
}

// A shelf is what a library has at a time, in a fixed order.
type shelf struct {
	sources    []*policySource
	exceptions []*policy.Exception
	next       time.Time // when an exception expires, zero for never
}

// read reads all objects of the kinds that are watched.
func (l *library) read(ctx context.Context, watched map[string]schema.GroupVersionKind, now time.Time) (shelf, error) {
	var out shelf
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
			key := translationName(referenceTo(o))
			if kind.exception {
				exceptions[key] = l.exception(o, key)
				out.except(exceptions[key], now)
				continue
			}
			if sources[key], err = l.source(ctx, o, key); err != nil {
				return out, err
			}
			out.sources = append(out.sources, sources[key])
		}
	}
	l.sources, l.exceptions = sources, exceptions
	return out, nil
}

func (l *library) list(ctx context.Context, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
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
func (l *library) source(ctx context.Context, o *unstructured.Unstructured, key string) (*policySource, error) {
	before := l.sources[key]
	if before != nil && before.ref.UID != o.GetUID() {
		before = nil
	}
	var err error
	s := readSource(o, l.mode, before, func() (text []byte) {
		text, err = l.remembered(ctx, referenceTo(o))
		return text
	})
	return s, err
}

func (l *library) exception(o *unstructured.Unstructured, key string) *exception {
	if before := l.exceptions[key]; before != nil && before.version == o.GetResourceVersion() {
		return before
	}
	file, _ := policy.Parse(key, sourceText(o))
	return &exception{version: o.GetResourceVersion(), parsed: file.Exceptions, expires: expiry(o)}
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
func (s *shelf) except(e *exception, now time.Time) {
	if !e.expires.IsZero() {
		if !now.Before(e.expires) {
			return
		}
		if s.next.IsZero() || e.expires.Before(s.next) {
			s.next = e.expires
		}
	}
	s.exceptions = append(s.exceptions, e.parsed...)
}
