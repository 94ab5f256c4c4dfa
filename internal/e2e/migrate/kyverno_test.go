//go:build e2e

package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/webhook"
	"github.com/kvap/kvap/webhook/registration"
	"github.com/kvap/kvap/webhook/world"
)

// A kyverno stands in for Kyverno, as far as handing over is about.
type kyverno struct {
	*cluster
	server  *httptest.Server
	webhook *webhook.Server
	world   *world.World
	seen    string                    // of the policies that were taken up
	known   map[string]*policy.Policy // by version: to read them is much work, and they seldom change
	asked   atomic.Int64              // how often it was asked about resources
	beaten  time.Time                 // when it said that it is alive
}

// startKyverno runs it until the test ends, or stop is called.
func (c *cluster) startKyverno(t *testing.T) (k *kyverno, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k = &kyverno{cluster: c, known: map[string]*policy.Policy{}}
	var err error
	if k.world, err = world.New(c.Config, world.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := k.world.Run(ctx); err != nil {
		t.Fatal(err)
	}
	k.webhook = webhook.New(webhook.Options{World: k.world})
	mux := http.NewServeMux()
	answer := k.webhook.Handler()
	for _, path := range []string{"/validate/", "/mutate/"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			k.asked.Add(1)
			answer.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc("/policyvalidate", validatePolicy)
	k.server = httptest.NewTLSServer(mux)
	k.registerValidating(ctx, t, "kyverno-policy-validating-webhook-cfg", []admissionregistrationv1.ValidatingWebhook{k.policyWebhook()})
	var all sync.WaitGroup
	all.Go(func() {
		for ctx.Err() == nil {
			k.pass(ctx, t)
			k.beat(ctx, t)
			time.Sleep(100 * time.Millisecond)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		for _, name := range []string{"kyverno-policy-validating-webhook-cfg", "kyverno-resource-validating-webhook-cfg"} {
			_ = c.Delete(context.Background(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		_ = c.Delete(context.Background(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kyverno-resource-mutating-webhook-cfg"}})
		k.server.Close()
	})
	t.Cleanup(stop)
	return k, stop
}

// sources are the policies that there are.
func (k *kyverno) sources(ctx context.Context) (out []*unstructured.Unstructured, err error) {
	for _, kind := range []string{"kyverno.io/v1 ClusterPolicy", "kyverno.io/v1 Policy", "policies.kyverno.io/v1 ValidatingPolicy"} {
		list, err := k.listed(ctx, kind)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// listed are the objects of a kind, with its version before it.
func (k *kyverno) listed(ctx context.Context, kind string) (out []*unstructured.Unstructured, err error) {
	apiVersion, name, _ := strings.Cut(kind, " ")
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind(name + "List")
	err = k.List(ctx, list)
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, err
}

// exceptions are those from policies of kyverno.io, of all namespaces.
func (k *kyverno) exceptions(ctx context.Context) ([]*policy.Exception, string, error) {
	list, err := k.listed(ctx, "kyverno.io/v2 PolicyException")
	if err != nil {
		return nil, "", err
	}
	var all bytes.Buffer
	for _, o := range list {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, "", err
		}
		all.WriteString("\n---\n")
		all.Write(data)
	}
	f, _ := policy.Parse("exceptions", all.Bytes())
	if len(f.Exceptions) != len(list) {
		return nil, "", fmt.Errorf("%d of %d exceptions could be read", len(f.Exceptions), len(list))
	}
	return f.Exceptions, all.String(), nil
}

// read is a policy as Kyverno sees it, which knows nothing of kvap's annotations. The
// version is the same as long as Kyverno sees the same.
func (k *kyverno) read(o *unstructured.Unstructured) (*policy.Policy, error) {
	version := fmt.Sprintf("%s %d", o.GetUID(), o.GetGeneration())
	if p := k.known[version]; p != nil {
		return p, nil
	}
	seen := o.DeepCopy()
	annotations := seen.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasPrefix(key, "kvap.dev/") })
	seen.SetAnnotations(annotations)
	data, err := seen.MarshalJSON()
	if err != nil {
		return nil, err
	}
	f, found := policy.Parse(o.GetName(), data)
	if len(f.Policies) != 1 {
		return nil, fmt.Errorf("%s: %v", o.GetName(), found)
	}
	k.known[version] = f.Policies[0]
	return f.Policies[0], nil
}

// pass takes up what has changed: first it judges by the policies, then it is asked,
// then it says that they are ready.
func (k *kyverno) pass(ctx context.Context, t *testing.T) {
	sources, err := k.sources(ctx)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("Kyverno's stand-in: %v", err)
		}
		return
	}
	exceptions, seen, err := k.exceptions(ctx)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("Kyverno's stand-in: %v", err)
		}
		return
	}
	set := webhook.Set{Exceptions: exceptions}
	for _, o := range sources {
		p, err := k.read(o)
		if err != nil {
			t.Error(err)
			return
		}
		if p.Admission {
			set.Policies = append(set.Policies, webhook.Policy{Policy: p})
			seen += fmt.Sprintf(" %s %d", o.GetUID(), o.GetGeneration())
		}
	}
	if seen != k.seen {
		if !k.takeUp(ctx, t, set) {
			return
		}
		k.seen = seen
	}
	for _, o := range sources {
		k.ready(ctx, t, o)
	}
}

// takeUp judges by policies, and has the API server ask about what they are about.
func (k *kyverno) takeUp(ctx context.Context, t *testing.T, set webhook.Set) bool {
	k.webhook.Set(set)
	var policies []*policy.Policy
	for _, p := range set.Policies {
		policies = append(policies, p.Policy)
	}
	var served registration.Table
	for _, r := range k.world.Served().All() {
		served = append(served, registration.Resource(r))
	}
	objects, _ := registration.Configure(policies, served, registration.Options{URL: k.server.URL, Bundle: k.bundle()})
	var validating []admissionregistrationv1.ValidatingWebhook
	if objects.Validating != nil {
		validating = objects.Validating.Webhooks
	}
	for i := range validating {
		validating[i].Name = "validate.kyverno.svc-" + entryOf("validate", validating[i].Name, *validating[i].ClientConfig.URL)
	}
	var mutating []admissionregistrationv1.MutatingWebhook
	if objects.Mutating != nil {
		mutating = objects.Mutating.Webhooks
	}
	for i := range mutating {
		mutating[i].Name = "mutate.kyverno.svc-" + entryOf("mutate", mutating[i].Name, *mutating[i].ClientConfig.URL)
	}
	return k.registerValidating(ctx, t, "kyverno-resource-validating-webhook-cfg", validating) &&
		k.registerMutating(ctx, t, "kyverno-resource-mutating-webhook-cfg", mutating)
}

// entryOf is what Kyverno calls an entry: the failure policy is at the end, and one that
// is for a single policy, for its match conditions, has its name. What tells apart those
// for some namespaces, which Kyverno does not have, stands in front.
func entryOf(verb, name, url string) string {
	mode, which, _ := strings.Cut(strings.TrimPrefix(strings.Split(name, ".")[0], verb+"-"), "-")
	if _, own, ok := strings.Cut(url, "/policy/"); ok {
		return mode + "-finegrained-" + strings.ReplaceAll(own, "/", "-")
	}
	if which != "" {
		return which + "-" + mode
	}
	return mode
}

// ready says of a policy that it is, as Kyverno does, once.
func (k *kyverno) ready(ctx context.Context, t *testing.T, o *unstructured.Unstructured) {
	status := map[string]any{"ready": true, "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Succeeded", "message": "Ready", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	}}}
	at := []string{"status"}
	if o.GetKind() == "ValidatingPolicy" {
		at = append(at, "conditionStatus")
	}
	if ready, _, _ := unstructured.NestedBool(o.Object, append(at, "ready")...); ready {
		return
	}
	if err := unstructured.SetNestedMap(o.Object, status, at...); err != nil {
		t.Error(err)
	}
	if err := k.Status().Update(ctx, o); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		t.Errorf("Kyverno's stand-in: %v", err)
	}
}

func (k *kyverno) bundle() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})
}

// registerValidating has the API server ask whether objects may be.
func (k *kyverno) registerValidating(ctx context.Context, t *testing.T, name string, hooks []admissionregistrationv1.ValidatingWebhook) bool {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return k.register(ctx, t, c, func() { c.Webhooks = hooks })
}

// registerMutating has the API server ask what to change.
func (k *kyverno) registerMutating(ctx context.Context, t *testing.T, name string, hooks []admissionregistrationv1.MutatingWebhook) bool {
	c := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return k.register(ctx, t, c, func() { c.Webhooks = hooks })
}

// register makes a configuration what Kyverno's is, with its labels.
func (k *kyverno) register(ctx context.Context, t *testing.T, configuration client.Object, fill func()) bool {
	_, err := controllerutil.CreateOrUpdate(ctx, k.Client, configuration, func() error {
		configuration.SetLabels(map[string]string{"webhook.kyverno.io/managed-by": "kyverno"})
		fill()
		return nil
	})
	if err != nil && ctx.Err() == nil {
		t.Errorf("Kyverno's stand-in, %s: %v", configuration.GetName(), err)
	}
	return err == nil
}

// policyWebhook is Kyverno's own validation of policies.
func (k *kyverno) policyWebhook() admissionregistrationv1.ValidatingWebhook {
	url, fail, none := k.server.URL+"/policyvalidate", admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	return admissionregistrationv1.ValidatingWebhook{
		Name:         "validate-policy.kyverno.svc",
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: k.bundle()},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"kyverno.io"}, APIVersions: []string{"v1"}, Resources: []string{"clusterpolicies", "policies"}},
		}},
		FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
	}
}

// validatePolicy refuses what Kyverno refuses of admission: false.
func validatePolicy(w http.ResponseWriter, r *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o := &unstructured.Unstructured{}
	_ = json.Unmarshal(review.Request.Object.Raw, &o.Object)
	response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	refuse := func(why string) { response.Allowed, response.Result = false, &metav1.Status{Message: why} }
	spec, _ := o.Object["spec"].(map[string]any)
	if spec["admission"] == false {
		if spec["background"] == false {
			refuse("disabling both admission and background processing is not allowed")
		}
		rules, _ := spec["rules"].([]any)
		for _, rule := range rules {
			if _, ok := rule.(map[string]any)["validate"]; !ok {
				refuse("disabling admission processing is only allowed with validation policies")
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: response})
}
