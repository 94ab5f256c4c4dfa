package controller

import (
	"context"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
)

// webhooks hands what remains to the Fallback and writes its configurations: steps
// 3 and 7 of a pass.
type webhooks struct {
	fallback Fallback
	client   client.Client
	writer   *writer
	// answering is told when this process judges, or why it cannot: API servers may ask it from then on,
	// however the rest of a pass goes.
	answering func(error)
	// reached sees whether API servers reach the webhook; nil takes it for granted.
	reached func(ctx context.Context, probe *admissionregistrationv1.MutatingWebhookConfiguration) error

	// owner is what the configurations end with.
	owner owner

	// was are the rules that remained after the last pass, by policy; nil before the
	// first pass of this process.
	was map[string]map[string]bool
	// problems are those of the policies that are served now.
	problems []FallbackProblem
	// wrote tells that configurations were written that API servers may not know yet.
	wrote bool
}

// takeUp is how long an API server may take until it asks by configurations that were
// written. It hears of them by a watch, at once, but nobody can see that it has.
const takeUp = 500 * time.Millisecond

// settle waits, after configurations were written, until API servers ask by them. It
// comes before anything goes that judged by the same rules.
func (w *webhooks) settle(ctx context.Context) {
	if !w.wrote {
		return
	}
	w.wrote = false
	select {
	case <-ctx.Done():
	case <-time.After(takeUp):
	}
}

// widen serves what remains and what remained before, as the policies are now.
func (w *webhooks) widen(ctx context.Context, remaining Remaining, sources []*policySource, rules map[*policy.Policy][]*compile.Rule) error {
	return w.serve(ctx, w.wideOf(remaining, sources, rules))
}

// wideOf is what remains, with all that has to be served beside it.
func (w *webhooks) wideOf(wide Remaining, sources []*policySource, rules map[*policy.Policy][]*compile.Rule) Remaining {
	wide.Policies = nil
	for _, s := range sources {
		left, ok := s.remaining()
		if !ok {
			continue
		}
		if left, ok = w.wide(left, rules[s.policy]); ok {
			wide.Policies = append(wide.Policies, left)
		}
	}
	return wide
}

// knowsNothing tells of a process that has just begun: it does not know what remained
// before.
func (w *webhooks) knowsNothing() bool { return w.was == nil }

// nothingRemained tells that the native policies are all in force as they are wanted,
// so that a webhook has nothing to do with their rules.
func (w *webhooks) nothingRemained() { w.was = map[string]map[string]bool{} }

// wide is what to serve of a policy while the rest of it is handed over. Who does not
// know what remained before serves every rule that a webhook could have served. What is
// in shadow is not handed over.
func (w *webhooks) wide(left RemainingPolicy, rules []*compile.Rule) (RemainingPolicy, bool) {
	now, before := leftRules(rules), w.was[translationName(left.Source)]
	some := false
	for _, r := range rules {
		more := !left.Shadow && (before[r.Name()] || w.knowsNothing())
		if !now[r.Name()] && !more || r.Policy.Invalid || r.Source != nil && r.Source.Invalid {
			continue
		}
		some = true
		if r.Source != nil {
			left.Rules = append(left.Rules, r.Source)
		}
	}
	return left, some
}

// narrow serves only what remains.
func (w *webhooks) narrow(ctx context.Context, remaining Remaining) error {
	if err := w.serve(ctx, remaining); err != nil {
		return err
	}
	w.was = map[string]map[string]bool{}
	for _, p := range remaining.Policies {
		names := map[string]bool{}
		for _, r := range p.Rules {
			names[r.Name] = true
		}
		if p.Policy.InCEL() {
			names[p.Policy.Name] = true
		}
		w.was[translationName(p.Source)] = names
	}
	return nil
}

// absent tells that there is no webhook. One that leaves every policy out, and so has
// nothing registered, says of each why.
func (w *webhooks) absent() bool {
	_, none := w.fallback.(NoFallback)
	return none
}

// serve has the Fallback serve, and then the API server ask it.
func (w *webhooks) serve(ctx context.Context, remaining Remaining) error {
	serving, err := w.fallback.Serve(ctx, remaining)
	w.answering(err)
	if err != nil {
		return err
	}
	w.problems = serving.Problems
	if serving, err = w.ownedBy(ctx, serving); err != nil {
		return err
	}
	if err := w.mayRegister(ctx, serving); err != nil {
		return err
	}
	want := serving.Configurations
	if want.Validating != nil {
		if err := w.validating(ctx, want.Validating); err != nil {
			return err
		}
	}
	if want.Mutating != nil {
		if err := w.mutating(ctx, want.Mutating); err != nil {
			return err
		}
	}
	return w.removeOthers(ctx, want)
}

// ownedBy gives all configurations their owner.
func (w *webhooks) ownedBy(ctx context.Context, s Serving) (Serving, error) {
	var all []client.Object
	if s.Validating != nil {
		s.Validating = s.Validating.DeepCopy()
		all = append(all, s.Validating)
	}
	if s.Mutating != nil {
		s.Mutating = s.Mutating.DeepCopy()
		all = append(all, s.Mutating)
	}
	if s.Probe != nil {
		s.Probe = s.Probe.DeepCopy()
		all = append(all, s.Probe)
	}
	if len(all) == 0 {
		return s, nil
	}
	return s, w.owner.own(ctx, all...)
}

func (w *webhooks) validating(ctx context.Context, want *admissionregistrationv1.ValidatingWebhookConfiguration) error {
	want = want.DeepCopy()
	want.Labels = ownLabels(want.Labels)
	have := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := w.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	same := func(got *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
		return contains(got.Labels, want.Labels) && contains(got.Annotations, want.Annotations) && owned(want, got) && equality.Semantic.DeepEqual(got.Webhooks, want.Webhooks)
	}
	if client.IgnoreNotFound(err) != nil || err == nil && isOurs(have) && same(have) {
		return err
	}
	w.wrote = true
	want.APIVersion, want.Kind = admissionregistrationv1.SchemeGroupVersion.String(), "ValidatingWebhookConfiguration"
	got := want.DeepCopy()
	if err := w.writer.apply(ctx, got); err != nil || same(got) {
		return err
	}
	got.TypeMeta, got.Webhooks = want.TypeMeta, want.Webhooks
	return w.writer.replace(ctx, got)
}

func (w *webhooks) mutating(ctx context.Context, want *admissionregistrationv1.MutatingWebhookConfiguration) error {
	want = want.DeepCopy()
	want.Labels = ownLabels(want.Labels)
	have := &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := w.client.Get(ctx, client.ObjectKeyFromObject(want), have)
	same := func(got *admissionregistrationv1.MutatingWebhookConfiguration) bool {
		return contains(got.Labels, want.Labels) && contains(got.Annotations, want.Annotations) && owned(want, got) && equality.Semantic.DeepEqual(got.Webhooks, want.Webhooks)
	}
	if client.IgnoreNotFound(err) != nil || err == nil && isOurs(have) && same(have) {
		return err
	}
	w.wrote = true
	want.APIVersion, want.Kind = admissionregistrationv1.SchemeGroupVersion.String(), "MutatingWebhookConfiguration"
	got := want.DeepCopy()
	if err := w.writer.apply(ctx, got); err != nil || same(got) {
		return err
	}
	got.TypeMeta, got.Webhooks = want.TypeMeta, want.Webhooks
	return w.writer.replace(ctx, got)
}

// removeOthers removes the configurations that the controller made and that nothing
// asks for any more.
func (w *webhooks) removeOthers(ctx context.Context, want Configurations) error {
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := w.client.List(ctx, &validating); err != nil {
		return err
	}
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	if err := w.client.List(ctx, &mutating); err != nil {
		return err
	}
	var gone []client.Object
	for i := range validating.Items {
		if want.Validating == nil || want.Validating.Name != validating.Items[i].Name {
			gone = append(gone, &validating.Items[i])
		}
	}
	for i := range mutating.Items {
		if want.Mutating == nil || want.Mutating.Name != mutating.Items[i].Name {
			gone = append(gone, &mutating.Items[i])
		}
	}
	for _, o := range gone {
		if !isOurs(o) {
			continue
		}
		if err := w.writer.remove(ctx, o); err != nil {
			return err
		}
	}
	return nil
}
