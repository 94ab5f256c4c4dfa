package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
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
	watched    map[string]schema.GroupVersionKind // as they were read
	// remembered is the text of the last good version of a policy, as an earlier
	// process noted it.
	remembered func(context.Context, v1alpha1.PolicyReference) ([]byte, error)
}

// A policyList is what a policyLister has read at a time, in a fixed order.
type policyList struct {
	sources    []*policySource
	exceptions []*policy.Exception
	ignored    []*exception // those that do not count now
	next       time.Time    // when an exception expires, zero for never
	// taken are names of native objects that somebody else made.
	taken []string
}

// read reads all objects of the kinds that are watched.
func (l *policyLister) read(ctx context.Context, watched map[string]schema.GroupVersionKind, now time.Time) (policyList, error) {
	var out policyList
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
				trusted := slices.Contains(l.trusted, allNamespaces) || slices.Contains(l.trusted, o.GetNamespace())
				out.except(exceptions[key], trusted, now)
				continue
			}
			if sources[key], err = l.source(ctx, o, key); err != nil {
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
		sources[translationName(s.ref)] = s
		out.sources = append(out.sources, s)
	}
	l.sources, l.exceptions, l.watched = sources, exceptions, maps.Clone(watched)
	return out, nil
}

// isOutdated tells that policies have come, gone or changed since they were read.
func (l *policyLister) isOutdated(ctx context.Context) bool {
	n := 0
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
			if s := l.sources[translationName(referenceTo(&objects[i]))]; s == nil || s.version != objects[i].GetResourceVersion() {
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

func (l *policyLister) list(ctx context.Context, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
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
func (l *policyLister) source(ctx context.Context, o *unstructured.Unstructured, key string) (*policySource, error) {
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
