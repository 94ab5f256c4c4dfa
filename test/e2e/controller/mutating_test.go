//go:build e2e

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// marks are versions of a policy that all mark ConfigMaps alike, each by other objects.
func marks(version int) string {
	more := []string{"", `
  - name: other
    match: {any: [{resources: {kinds: [Secret]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {marked: "no"}}}}
`, ""}[version%3]
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: marks}
spec:
  failurePolicy: %s
  rules:
  - name: mark
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {marked: "yes", +(version): kept}}, data: {by: "{{ request.userInfo.username }}"}}}
%s`, []string{"Fail", "Fail", "Ignore"}[version%3], more)
}

// mutators are the names of the MutatingAdmissionPolicies that the controller has made.
func (c *cluster) mutators(t *testing.T) []string {
	t.Helper()
	return c.made(t, &admissionregistrationv1.MutatingAdmissionPolicyList{})
}

// marking asks again and again for ConfigMaps, and counts those that are not marked.
func (c *cluster) marking(t *testing.T) (end func()) {
	t.Helper()
	var asked, unmarked atomic.Int64
	var other atomic.Value
	stop := testcluster.Repeat(t, func(ctx context.Context) {
		o := configMap("probe", nil)
		err := c.Create(ctx, o, client.DryRunAll)
		asked.Add(1)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			other.Store(err.Error())
		case o.GetLabels()["marked"] != "yes" || o.GetLabels()["version"] != "kept":
			unmarked.Add(1)
		}
	})
	return func() {
		t.Helper()
		stop()
		t.Logf("%d requests", asked.Load())
		if n := unmarked.Load(); n > 0 {
			t.Errorf("%d of %d ConfigMaps were not marked", n, asked.Load())
		}
		if err := other.Load(); err != nil {
			t.Errorf("an answer: %v", err)
		}
	}
}

// A policy that mutates moves between objects; what somebody else changes is restored, what is
// not wanted any more is removed, and at every moment objects are changed.
func TestMutators(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, marks(0))
	shared.awaitReady(t, "ClusterPolicy", "", "marks")
	end := shared.marking(t)
	for version, want := range [][]string{{"marks"}, {"marks-mark", "marks-other"}, {"marks"}, {"marks"}, {"marks-mark", "marks-other"}} {
		shared.apply(t, marks(version))
		shared.awaitReady(t, "ClusterPolicy", "", "marks")
		testcluster.Soon(t, "the objects are those that are wanted", func() bool { return slices.Equal(slices.Sorted(slices.Values(shared.mutators(t))), want) })
	}
	end()
	status := shared.translation(t, "marks.clusterpolicies.kyverno.io").Status
	if status.Native != 2 || !slices.Equal(status.Rules[0].Objects, []string{"marks-mark"}) || status.Rules[0].Target != "native" {
		t.Errorf("the status is %+v", status)
	}

	name := client.ObjectKey{Name: "marks-mark"}
	p := &admissionregistrationv1.MutatingAdmissionPolicy{}
	if err := shared.Get(t.Context(), name, p); err != nil {
		t.Fatal(err)
	}
	text := p.Spec.Mutations[0].ApplyConfiguration.Expression
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := shared.Get(t.Context(), name, p); err != nil {
			return err
		}
		p.Spec.Mutations[0].ApplyConfiguration.Expression = "Object{}"
		p.Spec.MatchConditions = append(p.Spec.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
		return shared.Update(t.Context(), p)
	}); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "what was edited is restored", func() bool {
		if err := shared.Get(t.Context(), name, p); err != nil {
			t.Fatal(err)
		}
		return p.Spec.Mutations[0].ApplyConfiguration.Expression == text && len(p.Spec.MatchConditions) == 0
	})
	b := &admissionregistrationv1.MutatingAdmissionPolicyBinding{}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := shared.Get(t.Context(), name, b); err != nil {
			return err
		}
		b.Spec.MatchResources.ExcludeResourceRules = p.Spec.MatchConstraints.ResourceRules
		b.Spec.ParamRef = &admissionregistrationv1.ParamRef{Name: "nobody", ParameterNotFoundAction: new(admissionregistrationv1.AllowAction)}
		return shared.Update(t.Context(), b)
	}); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "a binding that was edited is restored", func() bool {
		if err := shared.Get(t.Context(), name, b); err != nil {
			t.Fatal(err)
		}
		return len(b.Spec.MatchResources.ExcludeResourceRules) == 0 && b.Spec.ParamRef == nil
	})
	for _, o := range []client.Object{&admissionregistrationv1.MutatingAdmissionPolicyBinding{}, &admissionregistrationv1.MutatingAdmissionPolicy{}} {
		o.SetName(name.Name)
		uid := ""
		if err := shared.Get(t.Context(), name, o); err == nil {
			uid = string(o.GetUID())
		}
		shared.remove(t, o)
		testcluster.Soon(t, "what was deleted is restored", func() bool { return shared.Get(t.Context(), name, o) == nil && string(o.GetUID()) != uid })
	}
	foreign := &admissionregistrationv1.MutatingAdmissionPolicy{}
	foreign.Name, foreign.Spec = "not-kvaps", *p.Spec.DeepCopy()
	if err := shared.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shared.remove(t, foreign) })

	gone := &unstructured.Unstructured{}
	gone.SetAPIVersion("kyverno.io/v1")
	gone.SetKind("ClusterPolicy")
	gone.SetName("marks")
	shared.remove(t, gone)
	testcluster.Soon(t, "nothing is left", func() bool { return len(shared.mutators(t)) == 0 })
	if err := shared.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Errorf("what is not kvap's: %v", err)
	}
	var o corev1.ConfigMap
	o.Namespace, o.Name = "default", "after"
	testcluster.Soon(t, "objects stay as they are", func() bool {
		one := o.DeepCopy()
		return shared.Create(t.Context(), one, client.DryRunAll) == nil && one.Labels["marked"] == ""
	})
}

// In shadow nothing is changed, and the status says why.
func TestNoMutatorInShadow(t *testing.T) {
	shared.control(t, controller.Options{Mode: "shadow"})
	shared.apply(t, marks(0))
	testcluster.Soon(t, "a status", func() bool {
		s := shared.translation(t, "marks.clusterpolicies.kyverno.io").Status
		return s.Mode == "shadow" && len(s.Rules) > 0
	})
	if row := shared.translation(t, "marks.clusterpolicies.kyverno.io").Status.Rules[0]; row.Target != "webhook" || len(shared.mutators(t)) > 0 {
		t.Errorf("the row is %+v", row)
	}
}

// Killed before each step, while a policy moves between objects, the controller leaves a
// cluster in which each object is changed, and the next one brings it to where it should be.
func TestMutatorsKilledAtEachStep(t *testing.T) {
	for step := controller.StepRead; step <= controller.StepStatus; step++ {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			stop := shared.control(t, enforcing())
			shared.apply(t, marks(0))
			shared.awaitReady(t, "ClusterPolicy", "", "marks")
			stop()
			end := shared.marking(t)
			shared.apply(t, marks(1))
			shared.diesBefore(t, step)
			shared.control(t, enforcing())
			shared.awaitReady(t, "ClusterPolicy", "", "marks")
			want := []string{"marks-mark", "marks-other"}
			testcluster.Soon(t, "the objects are those that are wanted", func() bool { return slices.Equal(slices.Sorted(slices.Values(shared.mutators(t))), want) })
			end()
		})
	}
}

// A MutatingPolicy is a MutatingAdmissionPolicy in a cluster that serves these. What it patches
// is patched in the kinds that have it, and other objects are made all the same.
func TestMutatingPolicy(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: waits}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], resources: [deployments, statefulsets, replicasets], operations: [CREATE, UPDATE]}
    - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]}
  matchConditions: [{name: waits, expression: "object.metadata.name.startsWith('waits')"}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/minReadySeconds", value: 7}]'}
`)
	shared.awaitReady(t, "MutatingPolicy", "", "waits")
	if got := shared.mutators(t); !slices.Equal(got, []string{"waits"}) {
		t.Errorf("the objects are %q", got)
	}
	pod := map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
	labels := map[string]any{"app": "waits"}
	for kind, spec := range map[string]map[string]any{
		"v1/Pod":             pod,
		"apps/v1/Deployment": {"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		at := strings.LastIndex(kind, "/")
		o.SetAPIVersion(kind[:at])
		o.SetKind(kind[at+1:])
		o.SetNamespace("default")
		o.SetName("waits")
		if err := shared.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		seconds, _, _ := unstructured.NestedInt64(o.Object, "spec", "minReadySeconds")
		if want := map[string]int64{"v1/Pod": 0, "apps/v1/Deployment": 7}[kind]; seconds != want {
			t.Errorf("%s: %d seconds, want %d", kind, seconds, want)
		}
	}
}
