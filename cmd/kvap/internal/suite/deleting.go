package suite

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// deletes judges a row of a DeletingPolicy: a pass is an object that it deletes, and a fail
// one that it keeps though it matches. The interpreter decides alone.
func (r *run) deletes(ctx context.Context, row Row, c *policy.Cleanup) []RowResult {
	judge := interp.NewCleanup(c, r.exceptions, r.world(r.withNamespaces()), interp.Limits{})
	said := func(resource schema.GroupVersionResource, object map[string]any) interp.RuleResult {
		out := interp.RuleResult{Rule: c.Name, Status: interp.None}
		deletes, matched, err := judge.Judge(ctx, resource, object)
		switch {
		case err != nil:
			out.Status, out.Message = interp.Error, err.Error()
		case deletes:
			out.Status = interp.Pass
		case matched:
			out.Status, out.Message = interp.Fail, "the policy keeps it"
		}
		return out
	}
	if len(r.suite.payloads()) > 0 && len(r.resources) == 0 {
		return r.overPayloads(row, func(document map[string]any) (interp.RuleResult, error) {
			return said(schema.GroupVersionResource{}, document), nil
		})
	}
	return r.over(row, func(o manifest.Object) []RowResult {
		out := RowResult{Resource: o.Title(), Kind: o.Kind()}
		admission, found := r.client().Request(o, o)
		if admission == nil {
			out.Verdict, out.Reason = NotJudged, found[len(found)-1].Message
			return []RowResult{out}
		}
		r.found = append(r.found, notes(found)...)
		resource, _ := admission["resource"].(map[string]any)
		text := func(key string) string { s, _ := resource[key].(string); return s }
		at := schema.GroupVersionResource{Group: text("group"), Version: text("version"), Resource: text("resource")}
		object, _ := admission["object"].(map[string]any)
		out.alone(row.Expected(), said(at, object), "Ok (on a schedule)")
		return []RowResult{out}
	})
}

// withNamespaces are the objects that are looked up, and behind them the namespaces of which
// the values have labels, whatever else they leave out.
func (r *run) withNamespaces() []map[string]any {
	out := slices.Clone(r.objects)
	if r.values == nil {
		return out
	}
	add := func(name string) {
		labels, _ := r.values.labels(name)
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		o.SetName(name)
		o.SetLabels(labels)
		out = append(out, o.Object)
	}
	for _, n := range r.values.Namespaces {
		add(n.Name)
	}
	for _, n := range r.values.Cluster {
		add((&unstructured.Unstructured{Object: n}).GetName())
	}
	return out
}
