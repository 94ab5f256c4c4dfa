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
	probe *admissionregistrationv1.MutatingWebhookConfiguration
}

func (w wanting) Serve(context.Context, Remaining) (Serving, error) {
	return Serving{Configurations: w.Configurations, Probe: w.probe}, nil
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
			w := &webhooks{client: c, answering: func(error) {}, writer: &writer{client: c, direct: c, tell: func(string) {}}}
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

// Nothing may depend on a webhook that API servers were not seen to reach; where it
// does so already, what they ask it may change.
func TestRegisteredOnceReached(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().Build()
	var unreached error
	w := &webhooks{
		client: c, answering: func(error) {}, writer: &writer{client: c, direct: c, tell: func(string) {}},
		reached: func(context.Context, *admissionregistrationv1.MutatingWebhookConfiguration) error { return unreached },
	}
	probe := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook-probe"}}
	configured := func(failure admissionregistrationv1.FailurePolicyType, names ...string) Configurations {
		v := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kvap-webhook"}}
		for _, name := range names {
			v.Webhooks = append(v.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name, FailurePolicy: &failure})
		}
		return Configurations{Validating: v}
	}
	for i, step := range []struct {
		unreached error
		wanted    Configurations
		want      int // webhooks that are there afterwards
	}{
		{errNotReached, configured(admissionregistrationv1.Fail, "a"), 0},
		{errNotReached, configured(admissionregistrationv1.Ignore, "a"), 1},
		{errNotReached, configured(admissionregistrationv1.Fail, "a", "b"), 1},
		{nil, configured(admissionregistrationv1.Fail, "a", "b"), 2},
		{errNotReached, configured(admissionregistrationv1.Fail, "a", "b", "c"), 3},
	} {
		unreached = step.unreached
		w.fallback = wanting{Configurations: step.wanted, probe: probe}
		err := w.serve(t.Context(), Remaining{})
		have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		if got := c.Get(t.Context(), client.ObjectKey{Name: "kvap-webhook"}, have); client.IgnoreNotFound(got) != nil {
			t.Fatal(got)
		}
		if len(have.Webhooks) != step.want || (err == nil) != (len(step.wanted.Validating.Webhooks) == step.want) {
			t.Errorf("step %d: %d webhooks, %v", i, len(have.Webhooks), err)
		}
	}
}

// A webhook that leaves every policy out has nothing registered and is there all the
// same: what it says of each is not covered up by a word that there is none.
func TestAbsent(t *testing.T) {
	for name, c := range map[string]struct {
		fallback Fallback
		want     bool
	}{
		"none":            {NoFallback{}, true},
		"leaves all out":  {wanting{}, false},
		"serves some":     {asking{}, false},
		"default of none": {mustDefault(t).Fallback, true},
	} {
		if got := (&webhooks{fallback: c.fallback}).absent(); got != c.want {
			t.Errorf("%s: absent %t", name, got)
		}
	}
}

func mustDefault(t *testing.T) Options {
	t.Helper()
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}
