package standin

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/policy"
)

// Namespace is where Kyverno is installed.
const Namespace = "kyverno"

// beatEvery is how often it says that it is alive: more often than Kyverno, so that nobody
// waits for it.
const beatEvery = 2 * time.Second

// A Kyverno is what the API server is told of something that stands in for it.
type Kyverno struct {
	Client            client.Client
	URL               string
	Bundle            func() []byte // of the certificates that it has now
	ExcludeNamespaces []string

	renewed   time.Time                          // when it last said that it is alive
	generated map[types.UID]map[string]generated // the generate rules of each policy, as seen last
}

// The names of its configurations.
const (
	policyHooks   = "kyverno-policy-validating-webhook-cfg"
	validateHooks = "kyverno-resource-validating-webhook-cfg"
	mutateHooks   = "kyverno-resource-mutating-webhook-cfg"
	managedLabel  = "webhook.kyverno.io/managed-by"
)

// AskAboutPolicies has the API server ask whether policies may be.
func (k *Kyverno) AskAboutPolicies(ctx context.Context) error {
	return k.validating(ctx, policyHooks, k.ofPolicies())
}

// Ask has the API server ask about what policies are about.
func (k *Kyverno) Ask(ctx context.Context, policies []*policy.Policy, kinds registration.Kinds) error {
	objects, _ := registration.Configure(policies, kinds, registration.Options{URL: k.URL, Bundle: k.Bundle(), ExcludeNamespaces: k.ExcludeNamespaces})
	var validating []admissionregistrationv1.ValidatingWebhook
	if objects.Validating != nil {
		validating = objects.Validating.Webhooks
	}
	for i := range validating {
		validating[i].Name = entryName("validate", validating[i].Name, *validating[i].ClientConfig.URL)
	}
	var mutating []admissionregistrationv1.MutatingWebhook
	if objects.Mutating != nil {
		mutating = objects.Mutating.Webhooks
	}
	for i := range mutating {
		mutating[i].Name = entryName("mutate", mutating[i].Name, *mutating[i].ClientConfig.URL)
	}
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutateHooks}}
	return errors.Join(k.validating(ctx, validateHooks, validating), k.register(ctx, c, func() { c.Webhooks = mutating }))
}

// AskNoMore takes all of that away.
func (k *Kyverno) AskNoMore(ctx context.Context) (err error) {
	for _, c := range []client.Object{
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: policyHooks}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: validateHooks}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: mutateHooks}},
	} {
		err = errors.Join(err, client.IgnoreNotFound(k.Client.Delete(ctx, c)))
	}
	return err
}

func (k *Kyverno) validating(ctx context.Context, name string, hooks []admissionregistrationv1.ValidatingWebhook) error {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return k.register(ctx, c, func() { c.Webhooks = hooks })
}

// register makes a configuration what Kyverno's is, with its label.
func (k *Kyverno) register(ctx context.Context, c client.Object, fill func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, k.Client, c, func() error {
		c.SetLabels(map[string]string{managedLabel: "kyverno"})
		fill()
		return nil
	})
	return err
}

// entryName is what Kyverno calls a webhook, by which what it says is told from what
// others say: validate.kyverno.svc-fail, and for a policy with match conditions
// validate.kyverno.svc-fail-finegrained-NAME. What tells apart those for some
// namespaces, which Kyverno does not have, stands before the failure policy.
func entryName(verb, name, url string) string {
	first, _, _ := strings.Cut(name, ".")
	mode, which, _ := strings.Cut(strings.TrimPrefix(first, verb+"-"), "-")
	out := verb + ".kyverno.svc-"
	if _, own, ok := strings.Cut(url, "/policy/"); ok {
		return out + mode + "-finegrained-" + strings.ReplaceAll(own, "/", "-")
	}
	if which != "" {
		out += which + "-"
	}
	return out + mode
}

// Plain is a policy or an exception as one reads it who knows nothing of kvap.
func Plain(o *unstructured.Unstructured) *unstructured.Unstructured {
	plain := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "spec": o.Object["spec"], "metadata": map[string]any{"name": o.GetName()},
	}}
	if o.GetNamespace() != "" {
		plain.SetNamespace(o.GetNamespace())
	}
	annotations := o.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "kvap.dev/") })
	plain.SetAnnotations(annotations)
	return plain
}

// SayReady writes into a policy that it is judged by, once.
func (k *Kyverno) SayReady(ctx context.Context, o *unstructured.Unstructured) error {
	at := []string{"status"}
	switch o.GetKind() {
	case "PolicyException":
		return nil
	case "ValidatingPolicy":
		at = append(at, "conditionStatus")
	}
	if ready, _, _ := unstructured.NestedBool(o.Object, append(at, "ready")...); ready {
		return nil
	}
	status := map[string]any{"ready": true, "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Succeeded", "message": "Ready", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}}
	if err := unstructured.SetNestedMap(o.Object, status, at...); err != nil {
		return err
	}
	return client.IgnoreNotFound(k.Client.Status().Update(ctx, o))
}

// SayAlive renews the lease by which Kyverno says that it is alive.
func (k *Kyverno) SayAlive(ctx context.Context) error {
	if time.Since(k.renewed) < beatEvery {
		return nil
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "kyverno-health"}}
	_, err := controllerutil.CreateOrUpdate(ctx, k.Client, lease, func() error {
		lease.SetAnnotations(map[string]string{"kyverno.io/last-request-time": time.Now().UTC().Format(time.RFC3339)})
		return nil
	})
	if err == nil {
		k.renewed = time.Now()
	}
	return err
}
