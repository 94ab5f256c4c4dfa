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

// wanting is a Fallback that wants these configurations.
type wanting struct {
	NoFallback
	Configurations
}

func (w wanting) Serve(context.Context, Remaining) (Serving, error) {
	return Serving{Configurations: w.Configurations}, nil
}

// Both configurations have one name, and each goes when nothing asks for it: the API
// server would go on to ask about rules that nobody serves.
func TestConfigurationsGoAlone(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "kvap-webhook"}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}
	foreign := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	for name, want := range map[string]Configurations{
		"none": {}, "both": {validating, mutating}, "validating": {Validating: validating}, "mutating": {Mutating: mutating},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(foreign.DeepCopy()).Build()
			w := &webhooks{client: c, answering: func() {}, writer: &writer{client: c, direct: c, tell: func(string) {}}}
			for _, asked := range []Configurations{{validating, mutating}, want} {
				w.fallback = wanting{Configurations: asked}
				if err := w.serve(t.Context(), Remaining{}); err != nil {
					t.Fatal(err)
				}
			}
			there := func(name string, o client.Object) bool {
				return c.Get(t.Context(), client.ObjectKey{Name: name}, o) == nil
			}
			if got := there("kvap-webhook", &admissionregistrationv1.ValidatingWebhookConfiguration{}); got != (want.Validating != nil) {
				t.Errorf("the validating one is there: %t", got)
			}
			if got := there("kvap-webhook", &admissionregistrationv1.MutatingWebhookConfiguration{}); got != (want.Mutating != nil) {
				t.Errorf("the mutating one is there: %t", got)
			}
			if !there("foreign", &admissionregistrationv1.ValidatingWebhookConfiguration{}) {
				t.Error("what is not the controller's is gone")
			}
		})
	}
}
