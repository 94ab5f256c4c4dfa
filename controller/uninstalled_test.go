package controller

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// defining is an API server with the definition of ClusterPolicies, or without.
type defining struct {
	client.Reader
	there, going bool
}

func (d defining) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if !d.there {
		return nil
	}
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "clusterpolicies.kyverno.io"}}
	if d.going {
		o.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{o}
	return nil
}

// translationOf is what a controller has written of a policy that it judges by.
func translationOf(o *unstructured.Unstructured, mode string) *v1alpha1.PolicyTranslation {
	t := &v1alpha1.PolicyTranslation{}
	t.Name, t.Labels = TranslationName(referenceTo(o)), map[string]string{vap.ManagedByLabel: Manager}
	t.Spec.Source, t.Status.Mode = referenceTo(o), mode
	return t
}

// A policy that goes while the definition of its kind goes stays in force, in the next
// process too, until somebody decides: nothing else keeps one that was deleted.
func TestSourceUninstalled(t *testing.T) {
	policyText, err := json.Marshal(object(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	carrier := object(t, "", "kyverno.io/v1", "kvap.dev/v1alpha1")
	said := translationOf(object(t, ""), v1alpha1.ModeEnforce)
	meta.SetStatusCondition(&said.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionCompiled, Status: metav1.ConditionFalse, Reason: reasonUninstalled})
	foreign := translationOf(object(t, ""), v1alpha1.ModeEnforce)
	foreign.Labels = nil
	for name, one := range map[string]struct {
		direct  defining
		written *v1alpha1.PolicyTranslation
		carrier client.Object
		keeps   bool
	}{
		"the definition is gone":            {defining{}, translationOf(object(t, ""), v1alpha1.ModeEnforce), nil, true},
		"the definition is going":           {defining{there: true, going: true}, translationOf(object(t, ""), v1alpha1.ModeEnforce), nil, true},
		"it is there, and said so before":   {defining{there: true}, said, nil, true},
		"somebody deleted the policy":       {defining{there: true}, translationOf(object(t, ""), v1alpha1.ModeEnforce), nil, false},
		"it enforced nothing":               {defining{}, translationOf(object(t, ""), v1alpha1.ModeShadow), nil, false},
		"somebody else wrote what it says":  {defining{}, foreign, nil, false},
		"kvap has a policy of the name":     {defining{}, translationOf(object(t, ""), v1alpha1.ModeEnforce), carrier, false},
		"the PolicyTranslation was deleted": {defining{}, nil, nil, false},
	} {
		b := fake.NewClientBuilder().WithScheme(testScheme(t))
		kinds := watchedKinds()
		if one.written != nil {
			b = b.WithObjects(one.written)
		}
		if one.carrier != nil {
			b = b.WithObjects(one.carrier)
			for _, k := range sourceKinds() {
				if k.group == v1alpha1.Group && k.kind == "ClusterPolicy" {
					kinds[k.definition()] = k.at(k.versions[0])
				}
			}
		}
		l := &policyLister{client: b.Build(), direct: one.direct, mode: v1alpha1.ModeEnforce,
			remembered: func(context.Context, v1alpha1.PolicyReference) ([]byte, error) { return policyText, nil }}
		for range 2 { // the second goes by the first
			in, err := l.read(t.Context(), kinds, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(in.sources, func(s *policySource) bool { return s.uninstalled })
			if (i >= 0) != one.keeps {
				t.Fatalf("%s: kept %t", name, i >= 0)
			}
			if i >= 0 && (in.sources[i].policy == nil || in.sources[i].mode != v1alpha1.ModeEnforce) {
				t.Errorf("%s: it is kept as %+v", name, in.sources[i])
			}
		}
	}
}

// What stays in force so is told: by the conditions, of which kvap status and alerts know,
// and by a metric.
func TestUninstalledIsTold(t *testing.T) {
	s := &policySource{ref: v1alpha1.PolicyReference{Group: "kyverno.io", Kind: "ClusterPolicy", Name: "p"}, policy: &policy.Policy{Name: "p"}, mode: v1alpha1.ModeEnforce, uninstalled: true}
	o := &passResult{}
	status := o.statusOf(s, v1alpha1.PolicyTranslationStatus{})
	compiled := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionCompiled)
	if compiled.Status != metav1.ConditionFalse || compiled.Reason != "SourceUninstalled" || !strings.Contains(compiled.Message, "kvap migrate adopt") {
		t.Errorf("Compiled is %+v", compiled)
	}
	if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) {
		t.Error("it is ready, as if all was well")
	}
	register := prometheus.NewRegistry()
	m, err := newMetrics(register, "v0")
	if err != nil {
		t.Fatal(err)
	}
	m.passed(time.Second, policyList{sources: []*policySource{s}}, o, []v1alpha1.PolicyTranslationStatus{status})
	families, err := register.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "kvap_uninstalled_policies" && f.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("the metric says %v", f.GetMetric())
		}
	}
}
