package controller

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// Statuses wait for policies that change while a pass goes on, though not for ever.
func TestStatusesWaitForPolicies(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(object(t, "")).Build()
	now := time.Unix(0, 0)
	l := &policyLister{client: c, mode: "enforce"}
	p := &reconciler{policies: l, now: func() time.Time { return now }}
	shelfOf(t, l)
	if p.delaysStatuses(t.Context()) {
		t.Error("nothing has changed, and statuses wait")
	}
	o := object(t, "")
	o.SetName("another")
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !p.delaysStatuses(t.Context()) {
		t.Error("a policy has come, and statuses do not wait")
	}
	now = now.Add(longestSilence)
	if p.delaysStatuses(t.Context()) {
		t.Error("statuses wait for ever")
	}
	shelfOf(t, l)
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !p.delaysStatuses(t.Context()) {
		t.Error("a policy has gone, and statuses do not wait")
	}
}

// A record of a migration puts a policy into shadow that names no mode, and lets go of it again.
func TestRecordedMode(t *testing.T) {
	p := object(t, "")
	m := &v1alpha1.Migration{ObjectMeta: metav1.ObjectMeta{Name: TranslationName(referenceTo(p))}}
	c := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(p, m).Build()
	l := &policyLister{client: c, mode: v1alpha1.ModeOff}
	for _, step := range []struct {
		status v1alpha1.MigrationStatus
		want   string
	}{
		{v1alpha1.MigrationStatus{Stage: v1alpha1.StageNone}, v1alpha1.ModeOff},
		{v1alpha1.MigrationStatus{Doing: &v1alpha1.MigrationStep{Verb: "shadow", To: v1alpha1.StageShadow}}, v1alpha1.ModeShadow},
		{v1alpha1.MigrationStatus{Stage: v1alpha1.StageShadow}, v1alpha1.ModeShadow},
		{v1alpha1.MigrationStatus{Stage: v1alpha1.StageShadow, Doing: &v1alpha1.MigrationStep{Verb: "enforce", To: v1alpha1.StageEnforced}}, v1alpha1.ModeShadow},
		{v1alpha1.MigrationStatus{Stage: v1alpha1.StageEnforced}, v1alpha1.ModeOff},
	} {
		before := l.sources[m.Name]
		m.Status = step.status
		if err := c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if outdated := before != nil && before.mode != step.want; outdated && !l.isOutdated(t.Context()) {
			t.Errorf("%+v: nobody notices", step.status)
		}
		shelfOf(t, l)
		if got := l.sources[m.Name].mode; got != step.want {
			t.Errorf("%+v: the mode is %s, not %s", step.status, got, step.want)
		}
	}
}

// While API servers take up a change, only the policies whose objects have changed are
// not seen to be enforced.
func TestOthersStayEnforced(t *testing.T) {
	native := func(name string, generation int64) *nativePolicy {
		return &nativePolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Generation: generation, ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: Manager, Operation: metav1.ManagedFieldsOperationApply},
		}}}
	}
	at := func(generation int64) clusterState {
		return clusterState{policies: map[string]client.Object{"same": native("same", 1), "other": native("other", generation)}}
	}
	c := &canary{seen: at(1).versions()}
	o := &passResult{
		handoverResult: handoverResult{seen: errors.New("not yet"), late: map[string]bool{"other": true}}, judges: c.judges(at(2)),
		compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{}},
	}
	for i, name := range []string{"same", "other"} {
		p := &policy.Policy{Name: name}
		o.result.Objects = append(o.result.Objects, vap.Objects{Policy: native(name, 0), Draft: &vap.Draft{}})
		o.natives = nil
		o.rules[p] = []*compile.Rule{{Policy: p, Source: &policy.Rule{Name: "r"}, Target: translate.Native, Objects: []int{i}}}
		conditions := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{}).Conditions
		for _, condition := range []string{v1alpha1.ConditionEnforced, v1alpha1.ConditionSynced} {
			if got := meta.IsStatusConditionTrue(conditions, condition); got != (name == "same") {
				t.Errorf("%s: %s is %t", name, condition, got)
			}
		}
	}
}
