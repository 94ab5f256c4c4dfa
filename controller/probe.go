package controller

import (
	"context"
	"fmt"
	"slices"
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
	if w.reached == nil || serving.Probe == nil || !mustAnswer(serving.Configurations) {
		return nil
	}
	have := Configurations{Validating: &admissionregistrationv1.ValidatingWebhookConfiguration{}, Mutating: &admissionregistrationv1.MutatingWebhookConfiguration{}}
	name := serving.list()[0].GetName() // of both
	for _, o := range have.list() {
		if err := w.client.Get(ctx, client.ObjectKey{Name: name}, o); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if mustAnswer(have) {
		return nil
	}
	const probe = "kvap-webhook-probe"
	if err := w.try(ctx, serving.Probe(probe).Mutating, probe); err != nil {
		return fmt.Errorf("%w: %w", errNotReached, err)
	}
	return nil
}

// mustAnswer tells that requests fail where the webhook does not answer.
func mustAnswer(c Configurations) bool {
	return slices.ContainsFunc(c.webhooks(), func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail
	})
}

// webhooks are what both kinds say of a call.
func (c Configurations) webhooks() (out []admissionregistrationv1.ValidatingWebhook) {
	if c.Validating != nil {
		out = append(out, c.Validating.Webhooks...)
	}
	if c.Mutating != nil {
		for _, w := range c.Mutating.Webhooks {
			out = append(out, admissionregistrationv1.ValidatingWebhook{FailurePolicy: w.FailurePolicy, TimeoutSeconds: w.TimeoutSeconds})
		}
	}
	return out
}
