//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/test/controlplane"
)

// What is filled in offline is what an API server fills in, of each kind that it serves: of
// objects with nothing, with all their parts empty, and with a plain value for each field. A
// webhook that changes objects sees them filled in and before they are validated, so that any
// object will do.
func TestDefaults(t *testing.T) {
	types, err := schema.Builtin(release(t))
	if err != nil {
		t.Fatal(err)
	}
	types, found := types.WithCRDs([]byte(widgets))
	if found.HasErrors() {
		t.Fatal(found)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(widgets), &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := shared.Plane.InstallCRDs(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Delete(context.Background(), definition) })
	w := newWitness(t)
	d := defaulting.New(types)
	compared := 0
	for _, r := range served(t) {
		typ := types.Type(schema.GVK{Group: r.Group, Version: r.Version, Kind: r.Kind})
		if typ == nil {
			continue
		}
		for name, make := range map[string]filling{"empty": {}, "parts": {parts: true}, "full": {parts: true, plain: true}} {
			u := &unstructured.Unstructured{}
			u.Object, _ = make.value(typ, 0).(map[string]any)
			delete(u.Object, "metadata")
			for _, field := range []string{"priorityClassName", "priority", "preemptionPolicy", "runtimeClassName"} { // which a Pod can only have of a class that is there
				unstructured.RemoveNestedField(u.Object, "spec", field)
			}
			u.SetGroupVersionKind(apischema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
			want, err := w.sees(t.Context(), u, r)
			if err != nil {
				t.Errorf("%s %s: %v", u.GroupVersionKind(), name, err)
				continue
			}
			compared++
			if diff := textdiff.Values(told(t, want), told(t, d.Fill(u.Object))); diff != "" {
				t.Errorf("%s %s (-API server +offline):\n%s", u.GroupVersionKind(), name, diff)
			}
		}
	}
	least := 180
	if asksNoReviews(t) || shared.release < 31 { // which serves fewer kinds
		least = 160
	}
	if compared < least {
		t.Errorf("only %d objects were compared", compared)
	}
	for document := range strings.SplitSeq(registrations, "---\n") { // of which webhooks are not asked
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatal(err)
		}
		given := u.DeepCopy()
		if err := shared.Create(t.Context(), u, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", u.GroupVersionKind(), err)
			continue
		}
		if diff := textdiff.Values(told(t, u.Object), told(t, d.Fill(given.Object))); diff != "" {
			t.Errorf("%s (-API server +offline):\n%s", u.GroupVersionKind(), diff)
		}
	}
}

// registrations are objects that register who judges.
const registrations = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: probe}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: probe}
spec:
  policyName: probe
  paramRef: {selector: {}, parameterNotFoundAction: Deny}
  matchResources: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: probe}
webhooks:
- name: probe.kvap.test
  clientConfig: {service: {name: a, namespace: a}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: probe}
webhooks:
- name: probe.kvap.test
  clientConfig: {service: {name: a, namespace: a}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  sideEffects: None
  admissionReviewVersions: [v1]
`

// elsewhere are fields that have their values from elsewhere: from who asks and when, from
// admission plugins, and, below kinds, from a later release than that of the control plane.
const elsewhere = `
* metadata uid
* metadata creationTimestamp
* metadata generation
* metadata managedFields
* metadata finalizers
Pod spec priority
Pod spec preemptionPolicy
Pod spec tolerations
Node spec taints
CSIDriver spec preventPodSchedulingIfMissing
CSINode status
ResourceSlice spec devices
StatefulSet spec updateStrategy rollingUpdate maxUnavailable
Pod status nodeAllocatableResourceClaimStatuses`

// otherwise are fields, wherever they stand, that API servers before a release wrote otherwise than
// the functions do that fill in offline; [] are the elements of a list, and ? is null alone: a time
// that nobody set, the place of a claim while it was alpha, and a default of Jobs that CronJobs lacked.
const otherwise = `
34 creationTimestamp ?
31 resourceClaims [] source
36 jobTemplate spec podFailurePolicy rules [] onPodConditions [] status`

// told is an object as JSON, without what is from elsewhere, or was written otherwise.
func told(t *testing.T, object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := kjson.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.TrimSpace(elsewhere)) {
		if path := strings.Fields(line); path[0] == "*" || path[0] == out["kind"] {
			unstructured.RemoveNestedField(out, path[1:]...)
		}
	}
	for line := range strings.Lines(strings.TrimSpace(otherwise)) {
		path := strings.Fields(line)
		if before, err := strconv.Atoi(path[0]); err != nil {
			t.Fatal(err)
		} else if int(shared.release) < before {
			removeAnywhere(out, path[1:])
		}
	}
	return out
}

// removeAnywhere removes what a path leads to, from wherever in a value.
func removeAnywhere(value any, path []string) {
	remove(value, path)
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			removeAnywhere(v, path)
		}
	case []any:
		for _, v := range value {
			removeAnywhere(v, path)
		}
	}
}

func remove(value any, path []string) {
	if list, ok := value.([]any); ok && path[0] == "[]" {
		for _, v := range list {
			remove(v, path[1:])
		}
		return
	}
	fields, _ := value.(map[string]any)
	v, there := fields[path[0]]
	switch {
	case !there:
	case len(path) == 1, len(path) == 2 && path[1] == "?" && v == nil:
		delete(fields, path[0])
	default:
		remove(v, path[1:])
	}
}

// A filling says what a made up object has.
type filling struct{ parts, plain bool }

func (f filling) value(t *schema.Type, depth int) any {
	const deep = 9 // types may hold themselves
	switch {
	case depth > deep:
		return nil
	case t.Kind == schema.Object:
		out := map[string]any{}
		for name, field := range t.Fields {
			part := field.Type.Kind == schema.Object || field.Type.Kind == schema.List || field.Type.Kind == schema.Map
			if part && (f.parts || depth == 0) || !part && f.plain && depth > 0 {
				if v := f.value(field.Type, depth+1); v != nil {
					out[name] = v
				}
			}
		}
		return out
	case t.Kind == schema.List:
		if v := f.value(t.Elem, depth+1); v != nil && f.parts {
			return []any{v}
		}
		return nil
	case t.Kind == schema.Map:
		if v := f.value(t.Elem, depth+1); v != nil && f.parts {
			return map[string]any{"key": v}
		}
		return nil
	}
	switch t.Kind {
	case schema.Bool:
		return true
	case schema.Int, schema.Number, schema.IntOrString:
		return int64(1)
	case schema.String:
		switch t.Format {
		case schema.Quantity:
			return "1"
		case schema.Duration:
			return "1s"
		case schema.DateTime:
			return "2024-01-01T00:00:00.000000Z"
		case schema.Bytes:
			return "YQ=="
		}
		return "a"
	}
	return nil
}

// release is that of the control plane.
func release(t *testing.T) string {
	parts := strings.Split(strings.TrimPrefix(controlplane.Version(), "v"), ".")
	if len(parts) < 2 {
		t.Fatalf("%q is no version", controlplane.Version())
	}
	return parts[0] + "." + parts[1]
}

// served are the resources of which objects can be made.
func served(t *testing.T) (out []metav1.APIResource) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := discoverer.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		gv, err := apischema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !sets.New(r.Verbs...).Has("create") || notWitnessed(t).Has(gv.Group) {
				continue
			}
			r.Group, r.Version = gv.Group, gv.Version
			out = append(out, r)
		}
	}
	return out
}

// notWitnessed are groups whose objects no webhook sees as they are filled in: what registers
// webhooks, APIServices, which are not filled in, and reviews where no webhook is asked of them.
func notWitnessed(t *testing.T) sets.Set[string] {
	out := sets.New(admissionregistrationv1.GroupName, "apiregistration.k8s.io")
	if asksNoReviews(t) {
		out.Insert("authentication.k8s.io", "authorization.k8s.io")
	}
	return out
}

// asksNoReviews tells that the API server asks no webhook about reviews of users and of what they
// may, as since 1.37.
func asksNoReviews(t *testing.T) bool {
	t.Helper()
	r, err := cel.ParseRelease(controlplane.Version())
	if err != nil {
		t.Fatal(err)
	}
	return r.Supports(37)
}

// witnessed is the label of objects that the witness is asked about.
const witnessed = "kvap-test-witnessed"

// A witness is a webhook that remembers the object it is asked about, and refuses it.
type witness struct {
	client rest.Interface
	asked  chan map[string]any
}

func newWitness(t *testing.T) *witness {
	w := &witness{asked: make(chan map[string]any, 1)}
	server := httptest.NewTLSServer(http.HandlerFunc(w.answer))
	t.Cleanup(server.Close)
	discoverer, err := discovery.NewDiscoveryClientForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.client = discoverer.RESTClient()
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "witness"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:           "witness.kvap.test",
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{witnessed: "yes"}},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      new(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}},
			}},
			MatchPolicy:             new(admissionregistrationv1.Exact),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	if err := shared.Create(t.Context(), hook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shared.Delete(context.Background(), hook) })
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		object, _ := w.sees(ctx, one, metav1.APIResource{Version: "v1", Name: "configmaps", Namespaced: true})
		return object != nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sees is the object as the witness is asked about it.
func (w *witness) sees(ctx context.Context, u *unstructured.Unstructured, r metav1.APIResource) (map[string]any, error) {
	u.SetName("probe")
	u.SetLabels(map[string]string{witnessed: "yes"})
	path := []string{"apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"api", r.Version}
	}
	if r.Namespaced {
		u.SetNamespace("default")
		path = append(path, "namespaces", "default")
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, err
	}
	err = w.client.Post().AbsPath(append(path, r.Name)...).Param("dryRun", "All").Param("fieldValidation", "Ignore").
		SetHeader("Content-Type", "application/json").Body(text).Do(ctx).Error()
	select {
	case object := <-w.asked:
		return object, nil
	default:
		return nil, fmt.Errorf("the webhook was not asked: %w", err)
	}
}

func (w *witness) answer(out http.ResponseWriter, in *http.Request) {
	review := &admissionv1.AdmissionReview{}
	if err := json.NewDecoder(in.Body).Decode(review); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	var object map[string]any
	if err := kjson.Unmarshal(review.Request.Object.Raw, &object); err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	w.asked <- object
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "seen"}}
	_ = json.NewEncoder(out).Encode(review)
}

// widgets is a kind whose schema has defaults.
const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.defaults.kvap.test}
spec:
  group: defaults.kvap.test
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              default: {size: small}
              properties:
                size: {type: string, default: medium}
                limit: {type: integer, default: 3}
                labels: {type: object, additionalProperties: {type: object, properties: {set: {type: boolean, default: true}}}}
                parts: {type: array, items: {type: object, properties: {count: {type: integer, default: 1}, note: {type: string, nullable: true, default: none}}}}
`
