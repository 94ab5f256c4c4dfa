package incluster

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/vap"
)

// What API servers let in is judged again by the rules that they judge natively, and no others: what
// passes is told. The namespaces that native policies leave out are left out.
func TestNativelyPassed(t *testing.T) {
	o := servedOf(t)
	natives := remaining(t, anything)
	natives.Native, natives.Policies, natives.ExcludeNamespaces = natives.Policies, nil, []string{"kube-system"}
	created := func(namespace string) map[string]any {
		gvk := map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"}
		return map[string]any{
			"uid": "1", "operation": "CREATE", "kind": gvk, "resource": map[string]any{"group": "", "version": "v1", "resource": "configmaps"}, "namespace": namespace, "name": "c",
			"object":   map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": namespace, "name": "c"}},
			"userInfo": map[string]any{"username": "alice"},
		}
	}
	got, _ := eventsFor(everything, 10, func(e *ruleEvents) {
		o.events = e
		o.natively = newNativeRules(o)
		o.natively.created(t.Context(), created("shop")) // before the policies are known
		if _, list, err := o.set(natives); err != nil || len(list) != 0 {
			t.Fatalf("served are %v, %v", list, err)
		}
		for _, namespace := range []string{"shop", "kube-system"} {
			o.natively.created(t.Context(), created(namespace))
		}
	})
	wantLines(t, "a creation", got, []string{"kvap-admission Normal: ClusterPolicy /anything (ConfigMap c) PolicyApplied, Resource Passed: ConfigMap shop/c: pass"})
}

// A native policy leads back to the policy that it was made from: the one of the kind that names it,
// which is enforced. What others made leads nowhere.
func TestNativesLeadToTheirSources(t *testing.T) {
	made := func(name, manager string) *admissionregistrationv1.ValidatingAdmissionPolicy {
		return &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{vap.ManagedByLabel: controller.Manager},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "admissionregistration.k8s.io/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
			}},
		}}
	}
	translation := func(kind, namespace, name, mode string, objects ...string) *v1alpha1.PolicyTranslation {
		return &v1alpha1.PolicyTranslation{
			ObjectMeta: metav1.ObjectMeta{Name: kind + "." + namespace + "." + name},
			Spec:       v1alpha1.PolicyTranslationSpec{Source: v1alpha1.PolicyReference{Kind: kind, Namespace: namespace, Name: name}},
			Status:     v1alpha1.PolicyTranslationStatus{Mode: mode, Rules: []v1alpha1.RuleStatus{{Rule: "r", Objects: objects}}},
		}
	}
	scheme := runtime.NewScheme()
	both := runtime.NewSchemeBuilder(v1alpha1.AddToScheme, admissionregistrationv1.AddToScheme)
	if err := both.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	n := &natives{reader: fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects([]client.Object{
		made("owners", controller.Manager), made("forged", "kubectl"),
		translation("A", "", "owners", v1alpha1.ModeEnforce, "owners"), translation("B", "", "owners", v1alpha1.ModeEnforce, "owners-b"),
		translation("A", "shop", "owners", v1alpha1.ModeEnforce, "shop-owners"), translation("A", "", "shadowed", v1alpha1.ModeShadow, "shadowed"),
	}...).Build()}
	for name, want := range map[string]bool{"owners": true, "forged": false, "none": false} {
		if p, err := n.Native(t.Context(), name); err != nil || (p != nil) != want {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	var got []string
	for _, c := range [][2]string{{"owners", "owners"}, {"owners", "owners-b"}, {"owners", "copied"}, {"shop/owners", "copied"}, {"shadowed", "shadowed"}, {"none", "none"}} {
		of, known, err := n.Source(t.Context(), vap.TranslatedMember{Policy: c[0], Rule: "r"}, c[1])
		if err != nil {
			t.Fatal(err)
		}
		line := "none"
		if known {
			line = of.Kind + " " + of.Namespace + "/" + of.Name
		}
		got = append(got, line)
	}
	if want := []string{"A /owners", "B /owners", "none", "A shop/owners", "none", "none"}; !slices.Equal(got, want) {
		t.Errorf("they lead to %q, want %q", got, want)
	}
}
