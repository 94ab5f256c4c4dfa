//go:build e2e

package webhook

import (
	"context"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// header is the beginning of a policy of kvap.dev.
const header = "apiVersion: kvap.dev/v1alpha1\nkind: ClusterPolicy\nmetadata: {name: written}\nspec:\n"

// refusedPolicies are policies of each family, and what is said of them.
func refusedPolicies() map[string]string {
	rule := func(body string) string {
		return header + "  rules:\n  - name: one\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n    " + body + "\n"
	}
	return map[string]string{
		rule(`validate: {pattern: {metadata: {labels: {by: "{{ request.userInfo.username }}"}}}}`):                                                                           "KV601 at spec.rules[0].validate.pattern.metadata.labels.by",
		header + "  rules:\n  - name: one\n    match: {any: [{resources: {kinds: [ConfigMap]}, subjects: [{kind: User, name: alice}]}]}\n    validate: {deny: {}}\n":         "invalid variable used in background mode",
		header + "  rules:\n  - name: one\n    match: {any: [{resources: {kinds: ['*']}}]}\n    validate: {deny: {}}\n":                                                      "KV602",
		strings.NewReplacer("ClusterPolicy", "Policy", "name: written", "name: written, namespace: default", "ConfigMap", "Namespace").Replace(rule("validate: {deny: {}}")): "KV604",
		strings.Replace(rule("mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"), "spec:\n", "spec:\n  admission: false\n", 1):                                    "KV606",
		rule("mutate: {targets: [{apiVersion: v1, kind: Secret, namespace: '{{ target.metadata.name }}', name: one}], patchStrategicMerge: {metadata: {labels: {a: b}}}}"):   "KV607",
		rule("mutate: {mutateExistingOnPolicyUpdate: true, patchStrategicMerge: {metadata: {labels: {a: b}}}}"):                                                              "KV109",
		rule("generate: {apiVersion: v1, kind: Secret, name: one, data: {data: {a: Yg==}}}"):                                                                                 "objects of the kind Secret are in namespaces",
		rule("validate: {podSecurity: {level: baseline, exclude: [{controlName: Host Namespaces, images: ['*']}]}}"):                                                         "KV110",
		rule("validate: {cel: {expressions: [{expression: nobody.spec == 'x'}]}}"):                                                                                           "KV112",
	}
}

// What Kyverno refuses when a policy is written is refused; deletions, the program's own writes
// and a webhook that is down hold nothing up.
func TestPoliciesAreChecked(t *testing.T) {
	c := shared
	p := c.start(t, "", "--kubeconfig", c.Plane.Kubeconfig(programUser))
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	testcluster.Soon(t, "API servers ask about policies", func() bool {
		err := c.Get(t.Context(), client.ObjectKey{Name: registration.PoliciesName}, configuration)
		return err == nil && len(configuration.Webhooks[0].Rules) == 3 // Kyverno is not there
	})
	for text, want := range refusedPolicies() {
		if message := c.denied(t, text); !strings.Contains(message, want) || !strings.Contains(message, "policies.webhook.kvap.dev") {
			t.Errorf("got %q, want %q of\n%s", message, want, text)
		}
	}
	t.Run("own", func(t *testing.T) {
		config := c.Plane.Config(programUser)
		config.WarningHandler = rest.NoWarnings{}
		kvap, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for text := range refusedPolicies() {
			if err := kvap.Create(t.Context(), testcluster.Read(t, text)[0], client.DryRunAll); err != nil {
				t.Errorf("what kvap writes is refused: %v", err)
			}
		}
	})
	t.Run("update", c.updatesAreChecked)
	t.Run("warnings", c.policiesAreWarnedOf)
	t.Run("down", func(t *testing.T) {
		p.kill()
		for text := range refusedPolicies() {
			if _, err := c.try(t.Context(), t, text); err != nil {
				t.Errorf("nobody answers, and it is refused: %v", err)
			}
		}
		o := testcluster.Read(t, header+"  rules:\n  - name: one\n    match: {any: [{resources: {kinds: ['*']}}]}\n    validate: {failureAction: Audit, deny: {}}\n")[0]
		o.SetName("written-meanwhile")
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		c.start(t, p.address, "--kubeconfig", c.Plane.Kubeconfig(programUser))
		testcluster.Soon(t, "the webhook answers again", func() bool {
			_, err := c.try(t.Context(), t, header+"  rules: []\n")
			return err != nil && strings.Contains(err.Error(), "policies.webhook.kvap.dev")
		})
		o.SetLabels(map[string]string{"a": "b"}) // which says nothing new
		if err := c.Update(t.Context(), o); err != nil {
			t.Error(err)
		}
		if err := c.Delete(t.Context(), o); err != nil {
			t.Error(err)
		}
	})
}

func (c *cluster) updatesAreChecked(t *testing.T) {
	text := strings.Replace(header, "written", "made", 1) + `  rules:
  - name: one
    match: {any: [{resources: {kinds: [ConfigMap], names: [trigger]}}]}
    generate: {synchronize: true, apiVersion: v1, kind: Secret, namespace: default, name: made, data: {data: {a: Yg==}}}
`
	c.Apply(t, text)
	update := func(text string) error {
		o, have := testcluster.Read(t, text)[0], testcluster.Read(t, text)[0]
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), have); err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion(have.GetResourceVersion())
		return c.Update(t.Context(), o, client.DryRunAll)
	}
	if err := update(strings.Replace(text, "names: [trigger]", "names: [other]", 1)); err == nil || !strings.Contains(err.Error(), "KV608") {
		t.Errorf("a changed match: %v", err)
	}
	if err := update(strings.Replace(text, "a: Yg==", "a: Yw==", 1)); err != nil {
		t.Errorf("changed data: %v", err)
	}
}

// warned gathers warnings of the API server.
type warned struct {
	mu   sync.Mutex
	text string
}

func (w *warned) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text += text + "\n"
}

func (c *cluster) policiesAreWarnedOf(t *testing.T) {
	said := &warned{}
	config := rest.CopyConfig(c.Config)
	config.WarningHandlerWithContext = said
	user, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := testcluster.Read(t, header+`  rules:
  - name: unheard
    match: {any: [{resources: {kinds: [Unheard]}}]}
    validate: {deny: {conditions: {all: [{key: "{{ request.operation }}", operator: In, value: [CREATE]}]}}}
  - name: looks-up
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: all, apiCall: {urlPath: /api/v1/namespaces}}]
    validate: {deny: {conditions: {all: [{key: "{{ all.items | length(@) }}", operator: GreaterThan, value: 3}]}}}
`)[0]
	if err := user.Create(t.Context(), o, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Operator In has been deprecated", "the cluster serves no kind Unheard", "the rule looks-up will not be native: ", "KV204"} {
		if !strings.Contains(said.text, want) {
			t.Errorf("no %q in\n%s", want, said.text)
		}
	}
}

// Where Kyverno looks at the policies of its kinds, kvap does not.
func TestPoliciesOfKyverno(t *testing.T) {
	c := shared
	kind := apischema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}
	if err := c.Plane.InstallCRDs(t.Context(), controlplane.StandIn(kind, "clusterpolicies", false)); err != nil {
		t.Fatal(err)
	}
	theirs := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "kyverno-policy-validating-webhook-cfg"}}
	if err := c.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	gone := func() { _ = c.Delete(context.Background(), theirs) }
	t.Cleanup(gone)
	c.start(t, "", "--kubeconfig", c.Plane.Kubeconfig(programUser))
	wrong := strings.Replace(header, "kvap.dev/v1alpha1", "kyverno.io/v1", 1) + "  rules:\n  - name: one\n    match: {any: [{resources: {kinds: ['*']}}]}\n    validate: {deny: {}}\n"
	c.denied(t, strings.Replace(wrong, "kyverno.io/v1", "kvap.dev/v1alpha1", 1))
	if _, err := c.try(t.Context(), t, wrong); err != nil {
		t.Errorf("Kyverno is there, and kvap refuses: %v", err)
	}
	gone()
	if message := c.denied(t, wrong); !strings.Contains(message, "KV602") {
		t.Errorf("got %q", message)
	}
}
