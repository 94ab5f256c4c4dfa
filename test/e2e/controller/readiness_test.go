//go:build e2e

package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// wanting is a policy of kvap.dev that wants a label on ConfigMaps, as JSON.
func wanting(kind, namespace, name, label string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "kvap.dev/v1alpha1", "kind": %q, "metadata": {"name": %q, "namespace": %q}, "spec": {"background": false, "rules": [{
		"name": "want", "match": {"any": [{"resources": {"kinds": ["ConfigMap"]}}]},
		"validate": {"failureAction": "Enforce", "message": "no label", "pattern": {"metadata": {"labels": {%q: "?*"}}}}}]}}`, kind, name, namespace, label)
}

// columns are what kubectl shows of the objects of a resource, by the names of the columns.
func (c *cluster) columns(t *testing.T, resource, name string) map[string]string {
	t.Helper()
	kube, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		t.Fatal(err)
	}
	data, err := kube.RESTClient().Get().AbsPath("/apis/kvap.dev/v1alpha1/"+resource).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range table.Rows {
		if row.Cells[0] != name {
			continue
		}
		for i, column := range table.ColumnDefinitions {
			out[column.Name] = fmt.Sprint(row.Cells[i])
		}
	}
	return out
}

// A policy of kvap.dev says itself whether it is ready: not from an edit on until what was edited
// is enforced. Nobody else's fields are written, and at rest nothing is.
func TestPolicySaysThatItIsReady(t *testing.T) {
	options, passes := counting()
	shared.control(t, options)
	user := []client.PatchOption{client.FieldOwner("user"), client.ForceOwnership}
	apply := func(o client.Object, data []byte) {
		t.Helper()
		if err := shared.Patch(t.Context(), o, client.RawPatch(types.ApplyPatchType, data), user...); err != nil {
			t.Fatal(err)
		}
	}
	p := &v1alpha1.ClusterPolicy{ObjectMeta: metav1.ObjectMeta{Name: "says"}}
	local := &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "says-too", Namespace: "default"}}
	apply(p, wanting("ClusterPolicy", "", "says", "owner"))
	t.Cleanup(func() { shared.remove(t, p) })
	apply(local, wanting("Policy", "default", "says-too", "other"))
	t.Cleanup(func() { shared.remove(t, local) })
	ready := func(o client.Object, of *v1alpha1.Readiness) metav1.Condition {
		t.Helper()
		if err := shared.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if c := meta.FindStatusCondition(of.Conditions, v1alpha1.ConditionReady); c != nil {
			return *c
		}
		return metav1.Condition{}
	}
	isReady := func(o client.Object, of *v1alpha1.Readiness) bool {
		c := ready(o, of)
		return c.Status == metav1.ConditionTrue && c.ObservedGeneration == o.GetGeneration()
	}
	testcluster.Soon(t, "the policies are ready", func() bool { return isReady(p, &p.Status) && isReady(local, &local.Status) })
	for resource, name := range map[string]string{"clusterpolicies": "says", "policies": "says-too"} {
		if got := shared.columns(t, resource, name); got["READY"] != "True" || got["AGE"] == "" {
			t.Errorf("columns of %s: %v", resource, got)
		}
	}

	apply(p, wanting("ClusterPolicy", "", "says", "team"))
	edited := false
	for deadline := time.Now().Add(time.Minute); !isReady(p, &p.Status); time.Sleep(5 * time.Millisecond) {
		c := ready(p, &p.Status)
		edited = edited || c.Status == metav1.ConditionUnknown && c.Reason == "Edited" && c.ObservedGeneration == p.Generation
		if time.Now().After(deadline) {
			t.Fatalf("not ready again: %+v", c)
		}
	}
	if err := shared.tryCreate(t.Context(), map[string]string{"owner": "a", "other": "b"}); err == nil || !strings.Contains(err.Error(), "no label") {
		t.Errorf("the policy is ready and what was edited not enforced: %v", err)
	}
	if !edited {
		t.Error("the policy was ready until it was ready again")
	}

	for _, f := range p.ManagedFields {
		if fields := f.FieldsV1.GetRawString(); f.Manager == controller.Manager && (f.Subresource != "status" || strings.Contains(fields, "f:spec") || strings.Contains(fields, "f:metadata")) {
			t.Errorf("the controller has written %s", fields)
		}
	}
	awaitRest(passes)
	before := shared.writes(t)
	shared.nudged(t, 20, passes)
	if after := shared.writes(t); len(after) > len(before) {
		t.Errorf("%d writes at rest, such as %s", len(after)-len(before), after[len(after)-1])
	}

	other := p.DeepCopy() // who writes something else into it is put right
	other.Status.Conditions = slices.DeleteFunc(other.Status.Conditions, func(metav1.Condition) bool { return true })
	if err := shared.Status().Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the policy says again that it is ready", func() bool { return isReady(p, &p.Status) })
}
