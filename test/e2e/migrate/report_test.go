//go:build e2e

package migrate

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// report writes what Kyverno's background scan finds in the objects of the namespace
// shop, as reports of a group, in place of those of before.
func (k *kyverno) report(t *testing.T, group string) {
	t.Helper()
	sources, err := k.sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var policies []*policy.Policy
	for _, o := range sources {
		p, err := k.read(o)
		if err != nil {
			t.Fatal(err)
		}
		if p.Background {
			policies = append(policies, p)
		}
	}
	engine := interp.New(policies, nil, k.world, interp.Limits{})
	for _, kind := range []string{"ConfigMap", "Secret"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind(kind + "List")
		if err := k.List(t.Context(), list, client.InNamespace("shop")); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			k.write(t, group, o, results(t, engine, o))
		}
	}
}

// results are what rules say of an object, as a report has it.
func results(t *testing.T, engine *interp.Interpreter, o *unstructured.Unstructured) []any {
	gvk := o.GroupVersionKind()
	kind := map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
	request := map[string]any{
		"uid": "scan", "operation": "CREATE", "kind": kind, "requestKind": kind, "namespace": o.GetNamespace(), "object": o.Object,
	}
	var out []any
	for _, r := range engine.Judge(t.Context(), &interp.Request{Admission: request}) {
		if r.Status != interp.None {
			out = append(out, map[string]any{
				"source": "kyverno", "policy": r.Policy, "rule": r.Rule, "message": r.Message, "result": string(r.Status), "scored": true,
				"timestamp": map[string]any{"seconds": time.Now().Unix(), "nanos": int64(0)}, "properties": map[string]any{"process": "background scan"},
			})
		}
	}
	return out
}

// write writes a report, or removes it where there is nothing to report, and the one
// of the other group.
func (k *kyverno) write(t *testing.T, group string, o *unstructured.Unstructured, results []any) {
	t.Helper()
	for _, of := range [][]string{{"wgpolicyk8s.io", "v1alpha2", "PolicyReport"}, {"openreports.io", "v1alpha1", "Report"}} {
		r := &unstructured.Unstructured{Object: map[string]any{}}
		r.SetAPIVersion(of[0] + "/" + of[1])
		r.SetKind(of[2])
		r.SetNamespace(o.GetNamespace())
		r.SetName(string(o.GetUID()))
		if err := k.Delete(t.Context(), r); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		if of[0] != group || len(results) == 0 {
			continue
		}
		r.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "kyverno"})
		r.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID()}})
		r.Object["scope"] = map[string]any{
			"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "namespace": o.GetNamespace(), "name": o.GetName(), "uid": string(o.GetUID()),
		}
		if group == "openreports.io" {
			for _, one := range results {
				row := one.(map[string]any)
				row["description"] = row["message"]
				delete(row, "message")
			}
		}
		r.Object["results"] = results
		if err := k.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}
