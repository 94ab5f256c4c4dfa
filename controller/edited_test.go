package controller

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kvap/kvap/api/v1alpha1"
)

// marked is what becomes of a PolicyTranslation about the policy `was` when `now` is heard of.
func marked(t *testing.T, was, now *unstructured.Unstructured) metav1.Condition {
	t.Helper()
	read := readSource(was, v1alpha1.ModeEnforce, nil, nothing)
	have := &v1alpha1.PolicyTranslation{
		ObjectMeta: metav1.ObjectMeta{Name: TranslationName(read.ref)}, Spec: v1alpha1.PolicyTranslationSpec{Source: read.ref},
	}
	have.Status = (&passResult{}).statusOf(read, v1alpha1.PolicyTranslationStatus{})
	meta.SetStatusCondition(&have.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(have).WithStatusSubresource(have).Build()
	m := newEditMarker(c, func(string) {})
	m.changed(now)
	if _, err := m.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(have)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(have), have); err != nil {
		t.Fatal(err)
	}
	if want := m.heard[have.Name] != versionOf(was); m.outdates(read) != want {
		t.Errorf("what was read is outdated: %t, want %t", !want, want)
	}
	return *meta.FindStatusCondition(have.Status.Conditions, v1alpha1.ConditionReady)
}

// A policy that was edited is not ready from the moment on that the edit is heard of, be it by
// its annotations, or in the place of another. What others write into it is no edit.
func TestEditedIsNotReady(t *testing.T) {
	for name, tt := range map[string]struct {
		replace []string
		edited  bool
	}{
		"as it was":         {nil, false},
		"written by others": {[]string{"generation: 1}", "generation: 1, managedFields: []}\nstatus: {ready: true}"}, false},
		"another spec":      {[]string{"generation: 1", "generation: 2", "?*", "x"}, true},
		"another mode":      {[]string{"generation: 1", "generation: 1, annotations: {kvap.dev/mode: shadow}"}, true},
		"another policy":    {[]string{"uid: u", "uid: other"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ready := marked(t, object(t, "1"), object(t, "2", tt.replace...))
			if got := ready.Status == metav1.ConditionUnknown && ready.Reason == reasonEdited; got != tt.edited {
				t.Errorf("%+v", ready)
			}
		})
	}
}

// A pass that has read a PolicyTranslation before it was marked does not overwrite the mark.
func TestMarkIsKept(t *testing.T) {
	read := readSource(object(t, "1"), v1alpha1.ModeEnforce, nil, nothing)
	first := &v1alpha1.PolicyTranslation{
		ObjectMeta: metav1.ObjectMeta{Name: TranslationName(read.ref)}, Spec: v1alpha1.PolicyTranslationSpec{Source: read.ref},
	}
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(first).WithStatusSubresource(first).Build()
	have, marked := &v1alpha1.PolicyTranslation{}, &v1alpha1.PolicyTranslation{}
	for _, o := range []client.Object{have, marked} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(first), o); err != nil {
			t.Fatal(err)
		}
	}
	meta.SetStatusCondition(&marked.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: reasonEdited})
	if err := c.Status().Update(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.PolicyTranslation{ObjectMeta: metav1.ObjectMeta{Name: first.Name}, Spec: first.Spec}
	meta.SetStatusCondition(&want.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"})
	s := &statusWriter{writer: &writer{client: c, direct: c, tell: func(string) {}}, events: func(v1alpha1.PolicyReference, bool, string, string) {}}
	if err := s.writeOne(t.Context(), have, want); !apierrors.IsConflict(err) {
		t.Errorf("the status of an earlier version: %v, want a conflict", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(first), have); err != nil || meta.FindStatusCondition(have.Status.Conditions, v1alpha1.ConditionReady).Reason != reasonEdited {
		t.Errorf("the mark is overwritten: %v, %v", have.Status.Conditions, err)
	}
}

// kstatus reads a PolicyTranslation as it is meant: what is about an earlier generation, or may
// come by waiting, is in progress, and what somebody has to change has failed.
func TestKstatus(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	for name, tt := range map[string]struct {
		condition  metav1.Condition
		generation int64
		want       status.Status
	}{
		"all is well":              {condition(v1alpha1.ConditionCompiled, metav1.ConditionTrue, "Compiled"), 3, status.CurrentStatus},
		"of an earlier generation": {condition(v1alpha1.ConditionCompiled, metav1.ConditionTrue, "Compiled"), 2, status.InProgressStatus},
		"not seen":                 {condition(v1alpha1.ConditionEnforced, metav1.ConditionUnknown, reasonNotSeen), 3, status.InProgressStatus},
		"a ConfigMap is missing":   {condition(v1alpha1.ConditionParamsResolved, metav1.ConditionFalse, "Missing"), 3, status.InProgressStatus},
		"a kind is not served":     {condition(v1alpha1.ConditionKindsServed, metav1.ConditionFalse, "NotServed"), 3, status.InProgressStatus},
		"not reached":              {condition(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, "NotReached"), 3, status.InProgressStatus},
		"no webhook":               {condition(v1alpha1.ConditionFallbackActive, metav1.ConditionFalse, reasonNoWebhook), 3, status.FailedStatus},
		"not heard of":             {condition(v1alpha1.ConditionCompiled, metav1.ConditionUnknown, reasonUnheard), 3, status.InProgressStatus},
		"not valid":                {condition(v1alpha1.ConditionCompiled, metav1.ConditionFalse, "Invalid"), 3, status.FailedStatus},
		"refused":                  {condition(v1alpha1.ConditionSynced, metav1.ConditionFalse, reasonRefused), 3, status.FailedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			m := &conditionSet{conditions: []metav1.Condition{tt.condition}}
			m.ready()
			o := &v1alpha1.PolicyTranslation{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 3}}
			o.Status.Conditions = m.conditions
			o.Status.Observe(tt.generation)
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := status.Compute(&unstructured.Unstructured{Object: fields})
			if err != nil || got.Status != tt.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
