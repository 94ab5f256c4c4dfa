package controller

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// mustAnswerEntry is an entry that must be answered, with an authority.
func mustAnswerEntry(name, bundle string) admissionregistrationv1.ValidatingWebhook {
	fail := admissionregistrationv1.Fail
	return admissionregistrationv1.ValidatingWebhook{
		Name: name, FailurePolicy: &fail, ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte(bundle)},
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
		}},
	}
}

// addedKey is what the second writer selects by, as the admissions enforcer of AKS does.
const addedKey = "control-plane"

// Beside another writer the controller comes to rest: what it adds to a selector stays, an
// authority that it fills in where kvap has none stays, and what it undoes is corrected less
// and less often, and said.
func TestSecondWriter(t *testing.T) {
	addExpression := func(w *admissionregistrationv1.ValidatingWebhook) bool {
		for _, e := range w.NamespaceSelector.MatchExpressions {
			if e.Key == addedKey {
				return false
			}
		}
		w.NamespaceSelector.MatchExpressions = append(w.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{Key: addedKey, Operator: metav1.LabelSelectorOpDoesNotExist})
		return true
	}
	addBundle := func(w *admissionregistrationv1.ValidatingWebhook) bool {
		changed := string(w.ClientConfig.CABundle) != "injected"
		w.ClientConfig.CABundle = []byte("injected")
		return changed
	}
	for name, c := range map[string]struct {
		bundle string
		edit   func(*admissionregistrationv1.ValidatingWebhook) bool
		writes int  // at most, in all rounds, after the first
		rests  bool // nothing is left to say
	}{
		"a selector":           {"ours", addExpression, 0, true},
		"an authority":         {"", addBundle, 0, true},
		"against an authority": {"ours", addBundle, 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			kube := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
			writes := 0
			asked := Configurations{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{mustAnswerEntry("a", c.bundle)},
			}}
			w := &webhooks{
				client: kube, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: kube, direct: kube, tell: func(string) { writes++ }},
				fallback: wanting{Configurations: asked}, reached: func(context.Context, string) error { return nil },
			}
			if err := w.widen(t.Context(), Remaining{}, nil, nil); err != nil {
				t.Fatal(err)
			}
			writes = 0
			have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			var last error
			for range 20 {
				if err := kube.Get(t.Context(), client.ObjectKey{Name: "kvap-webhook"}, have); err != nil {
					t.Fatal(err)
				}
				if c.edit(&have.Webhooks[0]) {
					if err := kube.Update(t.Context(), have, client.FieldOwner("enforcer")); err != nil {
						t.Fatal(err)
					}
				}
				last = w.widen(t.Context(), Remaining{}, nil, nil)
			}
			if writes > c.writes {
				t.Errorf("%d writes beside another writer; %d at most", writes, c.writes)
			}
			if (last == nil) != c.rests {
				t.Errorf("in the end: %v", last)
			}
			if err := kube.Get(t.Context(), client.ObjectKey{Name: "kvap-webhook"}, have); err != nil {
				t.Fatal(err)
			}
			if c.rests && c.edit(&have.Webhooks[0]) {
				t.Error("what the other writer added is gone")
			}
			if have.Webhooks[0].NamespaceSelector.MatchExpressions[0].Key != "kubernetes.io/metadata.name" {
				t.Error("what the controller asks for is gone")
			}
			if have.Annotations["admissions.enforcer/disabled"] != "true" {
				t.Error("the admissions enforcer is not told to leave the configuration alone")
			}
		})
	}
}

// What the controller alone decides is corrected though another writer has added to a
// selector: namespaces that it leaves out no longer, and other fields.
func TestForeignSelectorsHideNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	w := &webhooks{client: kube, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: kube, direct: kube, tell: func(string) {}}}
	serve := func(excluded string) *admissionregistrationv1.ValidatingWebhook {
		t.Helper()
		entry := mustAnswerEntry("a", "ours")
		entry.NamespaceSelector.MatchExpressions[0].Values = []string{excluded}
		w.fallback = wanting{Configurations: Configurations{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{entry},
		}}}
		if err := w.serve(t.Context(), Remaining{}); err != nil {
			t.Fatal(err)
		}
		have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "kvap-webhook"}, have); err != nil {
			t.Fatal(err)
		}
		return &have.Webhooks[0]
	}
	serve("kube-system")
	for name, edit := range map[string]func(*admissionregistrationv1.ValidatingWebhook){
		"a namespace left out": func(w *admissionregistrationv1.ValidatingWebhook) {
			w.NamespaceSelector.MatchExpressions[0].Values = []string{"kube-system", "mine"}
		},
		"an expression of names": func(w *admissionregistrationv1.ValidatingWebhook) {
			w.NamespaceSelector.MatchExpressions = append(w.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"mine"},
			})
		},
		"objects left out": func(w *admissionregistrationv1.ValidatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		},
		"need not answer": func(w *admissionregistrationv1.ValidatingWebhook) {
			ignore := admissionregistrationv1.Ignore
			w.FailurePolicy = &ignore
		},
	} {
		have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "kvap-webhook"}, have); err != nil {
			t.Fatal(err)
		}
		edit(&have.Webhooks[0])
		have.Webhooks[0].NamespaceSelector.MatchExpressions = append(have.Webhooks[0].NamespaceSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: addedKey + name[:1], Operator: metav1.LabelSelectorOpDoesNotExist})
		if err := kube.Update(t.Context(), have, client.FieldOwner("enforcer")); err != nil {
			t.Fatal(err)
		}
		w = &webhooks{client: kube, answering: func(error) {}, corrections: &corrections{}, writer: &writer{client: kube, direct: kube, tell: func(string) {}}}
		got := serve("kube-public")
		names := 0
		for _, e := range got.NamespaceSelector.MatchExpressions {
			if e.Key == "kubernetes.io/metadata.name" {
				names++
			}
		}
		first := got.NamespaceSelector.MatchExpressions[0]
		if names != 1 || len(first.Values) != 1 || first.Values[0] != "kube-public" || *got.FailurePolicy != admissionregistrationv1.Fail ||
			got.ObjectSelector != nil && len(got.ObjectSelector.MatchLabels) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
