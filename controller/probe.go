package controller

import (
	"context"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// probePatience is short: native policies wait for it. The next pass makes another attempt.
const probePatience = 2 * time.Second

// reached returns nil when every API server was seen to ask the webhook about Params of a
// name, in the way that they go: by its Service or URL, past network policies, with the
// certificate that they are told to trust. Before that nothing may depend on its answer.
func (c *canary) reached(ctx context.Context, name string) error {
	_, silent, err := c.heard(ctx, name, probePatience)
	if silent != "" {
		return fmt.Errorf("%s: %w", silent, err)
	}
	return err
}

// mayRegister tells whether API servers may be made to depend on the webhook. They may
// where they do so already: what they ask may have changed, and who answers not.
func (w *webhooks) mayRegister(ctx context.Context, serving Serving) error {
	if w.reached == nil || serving.Probe == nil || !mustAnswer(serving.Validating, serving.Mutating) {
		return nil
	}
	validating, mutating := &admissionregistrationv1.ValidatingWebhookConfiguration{}, &admissionregistrationv1.MutatingWebhookConfiguration{}
	for _, o := range []client.Object{validating, mutating} {
		if err := w.client.Get(ctx, client.ObjectKey{Name: serving.name()}, o); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if mustAnswer(validating, mutating) {
		return nil
	}
	const name = "kvap-webhook-probe"
	if err := w.try(ctx, serving.Probe(name).Mutating, name); err != nil {
		return fmt.Errorf("%w: %w", errNotReached, err)
	}
	return nil
}

// name is that of the configurations.
func (s Serving) name() string {
	if s.Validating != nil {
		return s.Validating.Name
	}
	return s.Mutating.Name
}

// mustAnswer tells that requests fail where the webhook does not answer.
func mustAnswer(v *admissionregistrationv1.ValidatingWebhookConfiguration, m *admissionregistrationv1.MutatingWebhookConfiguration) bool {
	var all []*admissionregistrationv1.FailurePolicyType
	if v != nil {
		for _, w := range v.Webhooks {
			all = append(all, w.FailurePolicy)
		}
	}
	if m != nil {
		for _, w := range m.Webhooks {
			all = append(all, w.FailurePolicy)
		}
	}
	for _, p := range all {
		if p == nil || *p == admissionregistrationv1.Fail {
			return true
		}
	}
	return false
}
