//go:build e2e

package deploy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// hooked is what the chart installs with the webhook and reports, but for the Pods.
func hooked(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{Cluster: shared.Cluster}
	c.Namespace(t, "kvap-hooked", nil)
	objects, err := readFile("../../../deploy/chart/testdata/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		c.installed = append(c.installed, o)
		if err := c.Create(t.Context(), o.DeepCopy()); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	return c
}

// hookedKinds are those that the webhook and reports are about.
func hookedKinds() []controlplane.CRD {
	var out []controlplane.CRD
	for _, k := range controller.ForeignKinds() {
		out = append(out, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced))
	}
	for _, k := range []struct {
		group, version, kind, plural string
		namespaced                   bool
	}{
		{"wgpolicyk8s.io", "v1alpha2", "PolicyReport", "policyreports", true},
		{"wgpolicyk8s.io", "v1alpha2", "ClusterPolicyReport", "clusterpolicyreports", false},
		{"kyverno.io", "v2beta1", "GlobalContextEntry", "globalcontextentries", false},
	} {
		out = append(out, controlplane.StandIn(apischema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}, k.plural, k.namespaced))
	}
	return out
}

// served are policies whose rules the webhook serves: one judges by a ConfigMap, one
// changes what is admitted, one generates.
const served = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: served}
spec:
  validationFailureAction: Enforce
  rules:
    - name: team
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE], namespaces: [default]}}]}
      context: [{name: teams, configMap: {name: "teams-{{ to_lower(request.operation) }}", namespace: default}}]
      validate:
        message: The team is not known.
        deny: {conditions: {any: [{key: "{{ request.object.metadata.labels.team || '' }}", operator: NotEquals, value: "{{ teams.data.team || '' }}"}]}}
    - name: mark
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE], namespaces: [default]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {marked: "{{ request.object.metadata.labels.marked || 'yes' }}"}}}} # which may not run twice
    - name: account
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE], namespaces: [default]}}]}
      generate:
        apiVersion: v1
        kind: ServiceAccount
        name: "of-{{ request.object.metadata.name }}"
        namespace: default
        synchronize: true
        data: {metadata: {labels: {of: "{{ request.object.metadata.name }}"}}}
`

// reported are policies that objects violate, with and without a namespace.
const reported = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: reported}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap, Namespace]}}]}
      validate: {message: There is an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
`

// rare are grants for what no test waits for, and those that values give for rules.
func rare() map[grant]bool {
	out := map[grant]bool{
		{group: "", resource: "secrets", verb: "update"}:                                  true, // certificates that are renewed
		{group: "", resource: "pods", verb: "get"}:                                        true, // a replica that is gone
		{group: "", resource: "configmaps", verb: "get"}:                                  true, // the ledger of what was generated, by its name
		{group: "authorization.k8s.io", resource: "subjectaccessreviews", verb: "create"}: true, // an expression that asks the authorizer
		{group: "kvap.dev", resource: "generaterequests/status", verb: "update"}:          true, // work that has failed
		{group: "kyverno.io", resource: "clusterpolicies", verb: "get"}:                   true, // of each kind of policy that may generate
		{group: "kyverno.io", resource: "policies", verb: "get"}:                          true,
		{group: "kvap.dev", resource: "policies", verb: "get"}:                            true,
	}
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
		out[grant{group: "", resource: "serviceaccounts", verb: verb}] = true
	}
	return out
}

// With the webhook and reports the controller does as its service account all that it
// is for, and its roles grant nothing else.
func TestAccountWithWebhook(t *testing.T) {
	if err := shared.Plane.InstallCRDs(t.Context(), hookedKinds()...); err != nil {
		t.Fatal(err)
	}
	c := hooked(t)
	r := c.runAsAccount(t)
	c.apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: teams-create, namespace: default}, data: {team: red}}")
	c.apply(t, served+"\n---"+reported)
	of := func(name, team string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"team": team}}}
	}
	testcluster.Soon(t, "the webhook denies", func() bool {
		err := c.Create(t.Context(), of("blue", "blue"), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "The team is not known.")
	})
	c.meddleWithWebhooks(t)
	made := of("red", "red")
	testcluster.Soon(t, "the webhook admits and changes", func() bool { return c.Create(t.Context(), made) == nil })
	if made.Labels["marked"] != "yes" {
		t.Errorf("not changed: %v", made.Labels)
	}
	testcluster.Soon(t, "an account is generated", func() bool {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "of-red"}, &corev1.ServiceAccount{}) == nil
	})
	for _, kind := range []string{"PolicyReport", "ClusterPolicyReport"} {
		testcluster.Soon(t, kind+"s are there", func() bool { return len(c.list(t, "wgpolicyk8s.io/v1alpha2", kind)) > 0 })
	}
	c.apply(t, strings.Replace(reported, "There is an owner.", "An owner is there.", 1))
	for _, kind := range []string{"PolicyReport", "ClusterPolicyReport"} {
		testcluster.Soon(t, kind+"s say what the policy says now", func() bool {
			return strings.Contains(fmt.Sprint(c.list(t, "wgpolicyk8s.io/v1alpha2", kind)), "An owner is there.")
		})
	}
	checkMetrics(t, r.get("http://"+r.metrics+"/metrics"), ofExtras)
	c.remove(t, served)
	testcluster.Soon(t, "what was generated is gone", func() bool {
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "of-red"}, &corev1.ServiceAccount{})
		return client.IgnoreNotFound(err) == nil && err != nil
	})
	c.remove(t, reported)
	for _, kind := range []string{"PolicyReport", "ClusterPolicyReport"} {
		testcluster.Soon(t, kind+"s are gone", func() bool { return len(c.list(t, "wgpolicyk8s.io/v1alpha2", kind)) == 0 })
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		testcluster.Soon(t, kind+"s are gone, but that about policies", func() bool {
			return !slices.ContainsFunc(c.list(t, "admissionregistration.k8s.io/v1", kind), func(o unstructured.Unstructured) bool { return o.GetName() != "kvap-webhook-policies" })
		})
	}
	r.stop(t)
	others := rare()
	for g := range shared.granted(t) {
		g.namespace = ""
		others[g] = true
	}
	maps.DeleteFunc(others, func(g grant, _ bool) bool {
		return slices.Contains([]string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"}, g.resource)
	})
	checkGrants(t, c, others)
}

// meddleWithWebhooks adds a webhook to each configuration, which is not the controller's.
func (c *cluster) meddleWithWebhooks(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		for _, o := range c.list(t, "admissionregistration.k8s.io/v1", kind) {
			patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/webhooks/-","value":{"name":"meddled.acme.io","clientConfig":{"url":"https://127.0.0.1:1"},
				"rules":[{"apiGroups":["nobody.acme.io"],"apiVersions":["*"],"resources":["*"],"operations":["CREATE"]}],"sideEffects":"None","admissionReviewVersions":["v1"]}}]`))
			if err := c.Patch(t.Context(), &o, patch, client.FieldOwner("somebody")); err != nil {
				t.Fatal(err)
			}
		}
	}
	testcluster.Soon(t, "the configurations are restored", func() bool {
		for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
			if slices.ContainsFunc(c.list(t, "admissionregistration.k8s.io/v1", kind), func(o unstructured.Unstructured) bool {
				webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
				return slices.ContainsFunc(webhooks, func(w any) bool { return w.(map[string]any)["name"] == "meddled.acme.io" })
			}) {
				return false
			}
		}
		return true
	})
}
