package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	// reached sees whether every API server asks the webhook about Params of a name; nil
	// takes it for granted.
	reached func(ctx context.Context, name string) error

	// owner is a ClusterRole with which the configurations end, by the cluster's garbage
	// collection; empty for none. Where kvap is uninstalled nobody is left to remove them, and
	// API servers would refuse requests for want of an answer.
	owner string

	// corrections are of what somebody else has changed.
	corrections *corrections

	// was are the rules that are served, by policy; nil before this process serves any.
	was map[string]map[string]bool
	// longest is how long an API server waits at most for an answer about them.
	longest time.Duration
	// problems are those of the policies that are served now.
	problems []FallbackProblem
	// probe is what Serving has of it.
	probe func(name string) Configurations
	// wrote are configurations that not every API server was seen to ask by since they were
	// written: the last of each kind.
	wrote []client.Object
}

// settle returns when every API server is seen to ask by the configurations that were
// written. It hears of them in the order of their changes, so where it asks by a probe that
// was written after them, it asks by them as well.
func (w *webhooks) settle(ctx context.Context) error {
	for len(w.wrote) > 0 {
		written := w.wrote[0]
		name := "kvap-" + hashOf(fmt.Sprintf("%T/%s", written, written.GetResourceVersion()))
		if w.probe != nil && w.reached != nil {
			if err := w.try(ctx, w.probe(name).like(written), name); err != nil {
				return fmt.Errorf("%w: %w", errNotTakenUp, err)
			}
		}
		w.wrote = w.wrote[1:]
	}
	return nil
}

// try writes a probe, unless it is there, and returns when every API server asks by it.
// Who writes the configurations next removes it.
func (w *webhooks) try(ctx context.Context, probe client.Object, name string) error {
	owners, err := w.owners(ctx)
	if err != nil {
		return err
	}
	if _, _, err := w.register(ctx, probe, owners); err != nil {
		return fmt.Errorf("the configuration by which API servers are seen to reach the webhook: %w", err)
	}
	return w.reached(ctx, name)
}

// widen serves what remains and what remained before, as the policies are now, and sees
// that API servers ask for it. It comes before anything goes that judged by the same rules.
func (w *webhooks) widen(ctx context.Context, remaining Remaining, sources []*policySource, rules map[*policy.Policy][]*compile.Rule) error {
	if err := w.serve(ctx, w.wideOf(remaining, sources, rules)); err != nil {
		return err
	}
	return w.settle(ctx)
}

// wideOf is what remains, with all that has to be served beside it while the rest is handed
// over. Who does not know what was served before serves every rule that a webhook could have
// served. What is in shadow is not handed over.
func (w *webhooks) wideOf(wide Remaining, sources []*policySource, rules map[*policy.Policy][]*compile.Rule) Remaining {
	wide.Policies = remainingOf(sources, rules, func(left RemainingPolicy, r *compile.Rule) bool {
		return isLeft(r) || !left.Shadow && (w.was == nil || w.was[TranslationName(left.Source)][r.Name()])
	})
	return wide
}

// onTheWay is how much longer requests may come to the webhook that went past the native
// policies before these were seen to judge as they do, so long ago. It is zero where no rule
// was handed over.
func (w *webhooks) onTheWay(remaining Remaining, seen time.Duration) time.Duration {
	if maps.EqualFunc(w.was, ruleNames(remaining), maps.Equal) {
		return 0
	}
	return max(0, w.longest-seen)
}

// narrow serves only what remains.
func (w *webhooks) narrow(ctx context.Context, remaining Remaining) error {
	if err := w.serve(ctx, remaining); err != nil {
		return err
	}
	w.wrote = nil // who still asks for more than remains asks for what remains
	return nil
}

// ruleNames are the rules that remain, by policy.
func ruleNames(remaining Remaining) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, p := range remaining.Policies {
		names := map[string]bool{}
		for _, r := range p.Rules {
			names[r.Name] = true
		}
		if p.Policy.InCEL() {
			names[p.Policy.Name] = true
		}
		out[TranslationName(p.Source)] = names
	}
	return out
}

// longestWait is how long an API server waits at most for an answer.
func longestWait(all []Configurations) time.Duration {
	out := time.Duration(0)
	for _, c := range all {
		for _, w := range c.webhooks() {
			seconds := cmp.Or(w.TimeoutSeconds, new(int32(10))) // the API server's default
			out = max(out, time.Duration(*seconds)*time.Second)
		}
	}
	return out
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
	begun := w.was == nil
	w.was, w.problems, w.longest = ruleNames(remaining), slices.Clone(serving.Problems), longestWait(serving.Configurations)
	owners, err := w.owners(ctx)
	if err != nil {
		return err
	}
	w.probe = serving.Probe
	if err := w.mayRegister(ctx, serving); err != nil {
		return err
	}
	first, err := w.gains(ctx, serving.list())
	if err != nil {
		return err
	}
	var contested error // which keeps nothing else from being written
	foreign := map[string]bool{}
	for _, want := range append(first, serving.list()...) {
		got, fresh, err := w.register(ctx, want, owners)
		if fresh || begun { // a process before this one may have written it
			w.wrote = append(slices.DeleteFunc(w.wrote, func(o client.Object) bool { return gvkOf(o) == gvkOf(got) }), got)
		}
		switch {
		case errors.Is(err, errContested):
			contested = fmt.Errorf("%s %s: %w", gvkOf(want).Kind, want.GetName(), err)
		case err != nil:
			return err
		}
		for _, text := range addedSelectors(want, got) {
			foreign[text] = true
		}
	}
	for _, text := range slices.Sorted(maps.Keys(foreign)) {
		for _, p := range remaining.Policies {
			w.problems = append(w.problems, FallbackProblem{
				Source: p.Source, Message: "somebody else has confined the requests that API servers send to the webhook, by the namespace selector " + text,
			})
		}
	}
	return cmp.Or(contested, w.removeOthers(ctx, serving.list()))
}

// enforcerKey has the admissions enforcer of AKS leave an object alone. It confines webhooks
// to what is not the cluster's own, as registration does.
const enforcerKey = "admissions.enforcer/disabled"

// register writes a configuration, unless it is there, and returns it as it is then. What
// others have added to it stays.
func (w *webhooks) register(ctx context.Context, want client.Object, owners []metav1.OwnerReference) (got client.Object, fresh bool, err error) {
	want = want.DeepCopyObject().(client.Object)
	want.SetLabels(ownLabels(want.GetLabels()))
	want.SetAnnotations(map[string]string{enforcerKey: "true"})
	want.SetOwnerReferences(owners)
	want.GetObjectKind().SetGroupVersionKind(gvkOf(want))
	have := emptyLike(want)
	if err := client.IgnoreNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(want), have)); err != nil {
		return have, false, err
	}
	key, own := gvkOf(want).Kind+"/"+want.GetName(), want.DeepCopyObject().(client.Object)
	keepForeign(want, have)
	if isOurs(have) && sameObject(want, have) {
		w.corrections.rests(key)
		return have, false, nil
	}
	got = want.DeepCopyObject().(client.Object)
	err = w.corrections.write(key, own, func() error {
		if err := w.writer.apply(ctx, got); err != nil || sameObject(want, got) {
			return err
		}
		setContent(got, want)
		return w.writer.replace(ctx, got)
	})
	return got, !errors.Is(err, errContested), err
}

// removeOthers removes the configurations that the controller made and that nothing
// asks for any more.
func (w *webhooks) removeOthers(ctx context.Context, want []client.Object) error {
	remove := func(item runtime.Object) error {
		o := item.(client.Object)
		isWanted := slices.ContainsFunc(want, func(w client.Object) bool { return gvkOf(w) == gvkOf(o) && w.GetName() == o.GetName() })
		if isWanted || !isOurs(o) {
			return nil
		}
		w.corrections.forget(gvkOf(o).Kind + "/" + o.GetName())
		return w.writer.remove(ctx, o)
	}
	return w.each(ctx, remove)
}

// each does something with all configurations of the cluster.
func (w *webhooks) each(ctx context.Context, do func(runtime.Object) error) error {
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.ValidatingWebhookConfigurationList{}, &admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		if err := w.client.List(ctx, list); err != nil {
			return err
		}
		if err := meta.EachListItem(list, do); err != nil {
			return err
		}
	}
	return nil
}

// taken are the names of configurations that somebody else made, or was given.
func (w *webhooks) taken(ctx context.Context) ([]string, error) {
	out := map[string]bool{}
	err := w.each(ctx, func(item runtime.Object) error {
		if o := item.(client.Object); !isOurs(o) {
			out[o.GetName()] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(out)), err
}

// gains are the configurations that come to have entries while others lose some, each with all
// that it has now: written first, they see to it that an entry which moves, or becomes another
// one, is always in one of them.
func (w *webhooks) gains(ctx context.Context, want []client.Object) (out []client.Object, err error) {
	losing := map[string][]string{} // names, by kind
	for _, o := range want {
		have := emptyLike(o)
		if err := client.IgnoreNotFound(w.client.Get(ctx, client.ObjectKeyFromObject(o), have)); err != nil {
			return nil, err
		}
		kind, wider := gvkOf(o).Kind, withEntriesOf(o, have)
		before, now, all := len(sharedFieldsOf(have)), len(sharedFieldsOf(o)), len(sharedFieldsOf(wider))
		if all > now {
			losing[kind] = append(losing[kind], o.GetName())
		}
		if all > before {
			out = append(out, wider)
		}
	}
	return slices.DeleteFunc(out, func(o client.Object) bool {
		return !slices.ContainsFunc(losing[gvkOf(o).Kind], func(name string) bool { return name != o.GetName() })
	}), nil
}

// probePatience is short: native policies wait for it. The next pass makes another attempt.
const probePatience = 2 * time.Second

// reached returns nil when every API server was seen to ask the webhook about Params of a
// name, in the way that they go: by its Service or URL, past network policies, with the
// certificate that they are told to trust. Before that nothing may depend on its answer.
func (c *canary) reached(ctx context.Context, name string) error {
	_, err := c.heard(ctx, name, probePatience, "")
	return err
}

// mayRegister tells whether API servers may be made to depend on the webhook. They may
// where they do so already: what they ask may have changed, and who answers not.
func (w *webhooks) mayRegister(ctx context.Context, serving Serving) error {
	if w.reached == nil || serving.Probe == nil || !mustAnswer(serving.Configurations) {
		return nil
	}
	depends := false
	if err := w.each(ctx, func(item runtime.Object) error {
		o := item.(client.Object)
		depends = depends || isOurs(o) && mustAnswer([]Configurations{asConfigurations(o)})
		return nil
	}); err != nil || depends {
		return err
	}
	const probe = "kvap-webhook-probe"
	if err := w.try(ctx, serving.Probe(probe).Mutating, probe); err != nil {
		return fmt.Errorf("%w: %w", errNotReached, err)
	}
	return nil
}

// mustAnswer tells that requests fail where the webhook does not answer.
func mustAnswer(all []Configurations) bool {
	return slices.ContainsFunc(all, func(c Configurations) bool {
		return slices.ContainsFunc(c.webhooks(), func(w admissionregistrationv1.ValidatingWebhook) bool {
			return w.FailurePolicy == nil || *w.FailurePolicy == admissionregistrationv1.Fail
		})
	})
}

// asConfigurations are a configuration that is there.
func asConfigurations(o client.Object) (out Configurations) {
	out.Validating, _ = o.(*admissionregistrationv1.ValidatingWebhookConfiguration)
	out.Mutating, _ = o.(*admissionregistrationv1.MutatingWebhookConfiguration)
	return out
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

// owners are whose the configurations are.
func (w *webhooks) owners(ctx context.Context) ([]metav1.OwnerReference, error) {
	if w.owner == "" {
		return nil, nil
	}
	role := &metav1.PartialObjectMetadata{}
	role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
	if err := w.writer.direct.Get(ctx, client.ObjectKey{Name: w.owner}, role); err != nil {
		return nil, fmt.Errorf("the owner of the webhook configurations: %w", err)
	}
	return []metav1.OwnerReference{{APIVersion: role.APIVersion, Kind: role.Kind, Name: role.Name, UID: role.UID}}, nil
}
