package scan

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
)

// A trace is what is kept of an object, or of a report.
type trace struct {
	metav1.ObjectMeta        // where it is, its version and generation; nothing else
	digest            uint64 // of its other metadata; of what a report says
	about             task   // the object of a report
}

// GetObjectKind implements runtime.Object: the kind is that of the informer.
func (*trace) GetObjectKind() apischema.ObjectKind { return apischema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nothing of a trace is changed.
func (t *trace) DeepCopyObject() runtime.Object { return t }

func newTrace(o metav1.Object) *trace {
	return &trace{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Generation: o.GetGeneration(),
	}}
}

// traceOf is the trace of an object of which the metadata is given, or of a report.
func traceOf(o any) (any, error) {
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		t := newTrace(o)
		t.digest = digest([]any{o.Labels, o.Annotations, o.OwnerReferences, o.Finalizers, o.DeletionTimestamp})
		return t, nil
	case *unstructured.Unstructured:
		t := newTrace(o)
		t.digest = digestOfReport(o.Object)
		at := func(key string) string {
			text, _, _ := unstructured.NestedString(o.Object, "scope", key)
			return text
		}
		kind := apischema.FromAPIVersionAndKind(at("apiVersion"), at("kind")).GroupKind()
		t.about = task{kind, o.GetNamespace(), at("name"), types.UID(o.GetName())}
		return t, nil
	}
	return o, nil // a trace, or what is left of one that is gone
}

// digest tells apart what JSON says. 0 is of nothing.
func digest(value any) uint64 {
	text, err := json.Marshal(value)
	if err != nil { // what was read as JSON can be written
		return 1
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	return max(h.Sum64(), 1)
}

// digestOfReport tells apart what reports say, but for the times.
func digestOfReport(o map[string]any) uint64 {
	if o == nil {
		return 0
	}
	results, _ := o["results"].([]any)
	said := []any{o["scope"], o["summary"], o["source"]}
	for _, r := range results {
		if one, ok := r.(map[string]any); ok {
			one = maps.Clone(one)
			delete(one, "timestamp")
			said = append(said, one)
		}
	}
	return digest(said)
}

// digestOfObject tells apart objects of which rules can say other things. whole is for rules
// that read what a controller writes into the object, too.
func digestOfObject(o *unstructured.Unstructured, namespace map[string]any, whole bool) uint64 {
	around, _ := namespace["metadata"].(map[string]any)
	if whole {
		return digest([]any{o.Object, around["labels"], around["annotations"]})
	}
	judged := maps.Clone(o.Object)
	delete(judged, "status")
	meta, _ := judged["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for _, key := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(meta, key)
	}
	judged["metadata"] = meta
	return digest([]any{judged, around["labels"], around["annotations"]})
}

// readsWhole tells whether a rule reads the status of an object, or other things that change
// without the object becoming another one, or hands the object on as it is.
func readsWhole(rules []*compile.Rule) bool {
	return mention(rules, regexp.MustCompile(`status|resourceVersion|managedFields|generation\b|\brequest\.object\s*(\}|\||\)|,|=|$)|^\s*object\s*$|\bobject\s*(\)|,|=|!)`))
}

// mention tells whether the text of a policy matches.
func mention(rules []*compile.Rule, text *regexp.Regexp) bool {
	return slices.ContainsFunc(policiesOfRules(rules), func(p *policy.Policy) bool { return p.Source.Get("spec").Mentions(text) })
}

func policiesOfRules(rules []*compile.Rule) (out []*policy.Policy) {
	for _, r := range rules {
		if !slices.Contains(out, r.Policy) {
			out = append(out, r.Policy)
		}
	}
	return out
}

// fingerprint tells apart what rules say of objects. The same rules may have been compiled again.
func (p Policies) fingerprint(rules []*compile.Rule) uint64 {
	said := []any{p.ExcludeNamespaces}
	for _, r := range rules {
		said = append(said, r.PolicyName(), r.Name(), r.Target, r.Reaches)
	}
	for _, one := range policiesOfRules(rules) {
		said = append(said, one.Labels, one.Annotations, one.Source.Get("spec").Value())
		if !one.Background {
			said = append(said, p.Since[one])
		}
	}
	for _, e := range p.Exceptions {
		said = append(said, e.Namespace, e.Name, e.Source.Get("spec").Value())
	}
	return digest(said)
}
