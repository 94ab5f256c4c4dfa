package suite

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// deletes judges a row of a DeletingPolicy: a pass is an object that it deletes, and a fail
// one that it keeps though it matches. The interpreter decides alone.
func (r *run) deletes(ctx context.Context, row Row, c *policy.Cleanup) []Result {
	said := func(judge *interp.Cleanup, resource schema.GroupVersionResource, object map[string]any) interp.RuleResult {
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
		judge := interp.NewCleanup(c, r.exceptions, r.world(r.objects), interp.Limits{})
		return r.overPayloads(row, func(document map[string]any) (interp.RuleResult, error) {
			return said(judge, schema.GroupVersionResource{}, document), nil
		})
	}
	return r.over(row, func(o manifest.Object) []Result {
		out := Result{Resource: o.Title(), Kind: o.Kind()}
		admission, found := r.client().Request(o, o)
		if admission == nil {
			out.Verdict, out.Reason = NotJudged, found[len(found)-1].Message
			return []Result{out}
		}
		r.found = append(r.found, notes(found)...)
		resource, _ := admission["resource"].(map[string]any)
		text := func(key string) string { s, _ := resource[key].(string); return s }
		at := schema.GroupVersionResource{Group: text("group"), Version: text("version"), Resource: text("resource")}
		judge := interp.NewCleanup(c, r.exceptions, r.world(r.withNamespace(admission)), interp.Limits{})
		object, _ := admission["object"].(map[string]any)
		out.alone(row.Expected(), said(judge, at, object), "Ok (on a schedule)")
		return []Result{out}
	})
}

// withNamespace are the objects that are looked up, with the namespace of a request where
// the values have its labels alone.
func (r *run) withNamespace(admission map[string]any) []map[string]any {
	name, _ := admission["namespace"].(string)
	labels, ok := r.values.labels(name)
	if !ok || slices.ContainsFunc(r.objects, func(o map[string]any) bool {
		meta, _ := o["metadata"].(map[string]any)
		return o["kind"] == "Namespace" && meta["name"] == name
	}) {
		return r.objects
	}
	values := map[string]any{}
	for key, value := range labels {
		values[key] = value
	}
	return append(slices.Clone(r.objects), map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": values},
	})
}
