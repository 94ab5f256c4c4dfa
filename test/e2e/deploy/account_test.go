//go:build e2e

package deploy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A running controller, as its service account.
type running struct {
	cmd             *exec.Cmd
	log             *bytes.Buffer
	metrics, health string
	webhook         string
}

// runAsAccount runs the program as the Deployment would, its webhook at an address where
// the API server finds it without a network of Pods.
func (c *cluster) runAsAccount(t *testing.T) *running {
	t.Helper()
	deployment := c.of(t, "Deployment")
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	words, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	r := &running{log: &bytes.Buffer{}}
	for _, address := range []*string{&r.metrics, &r.health, &r.webhook} {
		var err error
		if *address, err = testcluster.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	var args []string
	for _, w := range words {
		w = strings.NewReplacer("$(POD_NAMESPACE)", deployment.GetNamespace(), "$(MEMORY_LIMIT)", "536870912").Replace(w)
		switch name, _, _ := strings.Cut(w, "="); name {
		case "--metrics-bind-address":
			w = name + "=" + r.metrics
		case "--health-probe-bind-address":
			w = name + "=" + r.health
		case "--webhook-address":
			w = name + "=" + r.webhook
		case "--webhook-service":
			w = "--webhook-url=https://" + r.webhook
		}
		args = append(args, w)
	}
	r.cmd = exec.Command(c.Controller, args...)
	r.cmd.Env = append(os.Environ(), "KUBECONFIG="+c.accountConfig(t))
	r.cmd.Stderr = r.log
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.stop(t)
		if t.Failed() {
			t.Logf("the controller's log:\n%s", r.told())
		}
	})
	testcluster.Soon(t, "the controller is ready", func() bool { return r.get("http://"+r.health+"/readyz") != "" })
	return r
}

// told is what the log says, but for what the test asks again and again.
func (r *running) told() string {
	lines := strings.Split(r.log.String(), "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "healthz check failed") }), "\n")
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	if r.cmd.ProcessState != nil {
		return
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("the controller: %v", err)
	}
}

// get is the body of an answer, and empty where there is none.
func (r *running) get(url string) string {
	response, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return ""
	}
	return string(data)
}

// accountConfig is a kubeconfig file with a token of the service account.
func (c *cluster) accountConfig(t *testing.T) string {
	t.Helper()
	o := c.of(t, "ServiceAccount")
	account := &corev1.ServiceAccount{}
	account.Name, account.Namespace = o.GetName(), o.GetNamespace()
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	config := c.Plane.Config(controlplane.Admin)
	config.BearerToken = request.Status.Token
	return writeConfig(t, config, o.GetNamespace())
}

func writeConfig(t *testing.T, config *rest.Config, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}],
users: [{name: u, user: {token: %q}}],
contexts: [{name: c, context: {cluster: c, user: u, namespace: %q}}]}`, config.Host, config.CAFile, config.BearerToken, namespace)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// policies has one of each kind that the controller reads.
const policies = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: zones, annotations: {kvap.dev/mode: enforce}}
spec:
  validationFailureAction: Enforce
  rules:
    - name: zone
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
      context: [{name: zones, configMap: {name: zones, namespace: default}}]
      validate:
        message: The zone is the one of this cluster.
        deny:
          conditions:
            any: [{key: "{{ request.object.metadata.labels.zone || '' }}", operator: NotEquals, value: "{{ zones.data.zone }}"}]
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: owners, namespace: default}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Secret], operations: [CREATE]}}]}
      validate: {message: A Secret has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: but, namespace: default}
spec:
  exceptions: [{policyName: zones, ruleNames: [zone]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [free]}}]}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: named}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  validations: [{expression: "object.metadata.name != 'nobody'", message: not nobody}]
---
apiVersion: policies.kyverno.io/v1
kind: NamespacedValidatingPolicy
metadata: {name: named, namespace: default}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  validations: [{expression: "object.metadata.name != 'nobody'", message: not nobody}]
---
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: own}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Service], operations: [CREATE]}}]}
      validate: {message: A Service has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
    - name: mark
      match: {any: [{resources: {kinds: [Service], operations: [CREATE]}}]}
      mutate: {patchStrategicMerge: {metadata: {labels: {+(marked): "yes"}}}}
---
apiVersion: kvap.dev/v1alpha1
kind: Policy
metadata: {name: own, namespace: default}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Service], operations: [CREATE]}}]}
      validate: {message: A Service has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
---
apiVersion: kvap.dev/v1alpha1
kind: ValidatingPolicy
metadata: {name: own-named}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [services], operations: [CREATE]}]}
  validations: [{expression: "object.metadata.name != 'nobody'", message: not nobody}]
---
apiVersion: kvap.dev/v1alpha1
kind: NamespacedValidatingPolicy
metadata: {name: own-named, namespace: default}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [services], operations: [CREATE]}]}
  validations: [{expression: "object.metadata.name != 'nobody'", message: not nobody}]
`

// typo does not fit the type that it is about.
const typo = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: typo}
spec:
  rules:
    - name: replicas
      match: {any: [{resources: {kinds: [Deployment], operations: [CREATE]}}]}
      validate: {cel: {expressions: [{expression: "object.replicas > 1", message: more}]}}
`

// sweeps says each minute what it would delete.
const sweeps = `
apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: sweeps}
spec:
  schedule: "* * * * *"
  match: {any: [{resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {swept: "yes"}}}}]}
`

const zones = "{apiVersion: v1, kind: ConfigMap, metadata: {name: zones, namespace: default}, data: {zone: a}}"

// The controller as its service account does all that it is for; its roles grant
// what it needs for that, and nothing else.
func TestAccount(t *testing.T) {
	r := shared.runAsAccount(t)
	var crds []controlplane.CRD
	for _, k := range controller.ForeignKinds() { // they appear while it runs
		crds = append(crds, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced))
	}
	if err := shared.Plane.InstallCRDs(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
	shared.apply(t, zones)
	shared.apply(t, policies+"\n---"+typo)
	ready := func(n, of int) func() bool {
		return func() bool {
			return shared.readyTranslations(t) == n && len(shared.list(t, "kvap.dev/v1alpha1", "PolicyTranslation")) == of
		}
	}
	testcluster.Soon(t, "all policies are ready, but for one", ready(8, 9))
	zone := unstructured.Unstructured{}
	zone.SetAPIVersion("v1")
	zone.SetKind("ConfigMap")
	zone.SetName("other")
	zone.SetNamespace("default")
	if err := shared.Create(t.Context(), &zone, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "The zone is the one of this cluster.") {
		t.Errorf("a ConfigMap without a zone: %v", err)
	}
	shared.apply(t, strings.Replace(zones, "zone: a", "zone: b", 1))
	shared.meddle(t)
	shared.meddleWithParams(t)
	testcluster.Soon(t, "params are in step and what was changed is restored", func() bool { return shared.inStep(t) })
	checkMetrics(t, r.get("http://"+r.metrics+"/metrics"), ofController)
	server, err := discovery.NewDiscoveryClientForConfig(shared.Config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := server.RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkMetrics(t, string(served), ofServer)
	shared.apply(t, sweeps)
	testcluster.Soon(t, "the cleanup policy has run", func() bool {
		return slices.ContainsFunc(shared.list(t, "kvap.dev/v1alpha1", "PolicyTranslation"), func(o unstructured.Unstructured) bool {
			at, _, _ := unstructured.NestedString(o.Object, "status", "cleanup", "lastExecutionTime")
			return at != ""
		})
	})
	shared.remove(t, sweeps)
	shared.remove(t, typo)
	testcluster.Soon(t, "kvap status finds nothing", func() bool {
		text, err := exec.Command(shared.Kvap, "status", "-A", "--kubeconfig", shared.Plane.Kubeconfig(controlplane.Admin)).CombinedOutput()
		return err == nil && !strings.Contains(string(text), "UNMANAGED")
	})
	shared.remove(t, policies)
	testcluster.Soon(t, "nothing is left of the policies", ready(0, 0))
	testcluster.Soon(t, "no native policy is left", func() bool { return len(shared.list(t, "kvap.dev/v1alpha1", "Params")) == 0 })
	r.stop(t)
	checkGrants(t, shared, nil)
}

func (c *cluster) readyTranslations(t *testing.T) (n int) {
	for _, p := range c.list(t, "kvap.dev/v1alpha1", "PolicyTranslation") {
		conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions")
		for _, condition := range conditions {
			if m := condition.(map[string]any); m["type"] == "Ready" && m["status"] == "True" {
				n++
			}
		}
	}
	return n
}

// edit changes an object, which others may change at the same time.
func (c *cluster) edit(t *testing.T, o *unstructured.Unstructured, change func() error) {
	t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		if err := change(); err != nil {
			return err
		}
		return c.Update(t.Context(), o)
	}); err != nil {
		t.Fatal(err)
	}
}

// meddle changes and removes what the controller has made.
func (c *cluster) meddle(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"Validating", "Mutating"} {
		for _, o := range c.list(t, "admissionregistration.k8s.io/v1", kind+"AdmissionPolicyBinding") {
			if !strings.HasPrefix(o.GetName(), "kvap-configmaps") && o.GetName() != "own" {
				continue
			}
			c.edit(t, &o, func() error {
				if kind == "Mutating" { // which nothing asks for, so that no apply takes it away
					return unstructured.SetNestedMap(o.Object, map[string]any{"name": "meddled", "parameterNotFoundAction": "Allow"}, "spec", "paramRef")
				}
				return unstructured.SetNestedField(o.Object, "meddled", "spec", "matchResources", "objectSelector", "matchLabels", "for")
			})
		}
		for _, o := range c.list(t, "admissionregistration.k8s.io/v1", kind+"AdmissionPolicy") {
			if !strings.HasPrefix(o.GetName(), "kvap-configmaps") && o.GetName() != "own" {
				continue
			}
			c.edit(t, &o, func() error {
				conditions, _, _ := unstructured.NestedSlice(o.Object, "spec", "matchConditions")
				conditions = append(conditions, map[string]any{"name": "meddled", "expression": "false"})
				return unstructured.SetNestedSlice(o.Object, conditions, "spec", "matchConditions")
			})
		}
	}
}

// meddleWithParams adds a key that no ConfigMap has.
func (c *cluster) meddleWithParams(t *testing.T) {
	t.Helper()
	for _, o := range c.list(t, "kvap.dev/v1alpha1", "Params") {
		if err := c.Patch(t.Context(), &o, client.RawPatch(types.MergePatchType, []byte(`{"data":{"meddled":"x"}}`))); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cluster) inStep(t *testing.T) bool {
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
		for _, o := range c.list(t, "admissionregistration.k8s.io/v1", kind) {
			if strings.Contains(fmt.Sprint(o.Object["spec"]), "meddled") {
				return false
			}
		}
	}
	params := fmt.Sprint(c.list(t, "kvap.dev/v1alpha1", "Params"))
	return strings.Contains(params, "zone:b") && !strings.Contains(params, "meddled:x")
}

// checkMetrics tells whether alerts, recorded series and dashboard ask for what there is: of the API
// server, of the controller, or of what it has with webhook and reports.
func checkMetrics(t *testing.T, metrics string, of source) {
	t.Helper()
	part := regexp.MustCompile(`_(?:bucket|sum|count)$`)
	for _, file := range []string{"alerts.yaml", "kyverno-series.yaml", "dashboard.json"} {
		data, err := os.ReadFile(filepath.Join("../../../deploy/chart/files", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`\b(?:kvap|apiserver)_[a-z_]+`).FindAllString(string(data), -1) {
			if sourceOf(name) == of && !strings.Contains(metrics, "# HELP "+part.ReplaceAllString(name, "")+" ") {
				t.Errorf("%s asks for %s, which is not there", file, name)
			}
		}
	}
}

// A source is where a metric is.
type source int

const (
	ofController source = iota
	ofExtras            // the controller with webhook and reports
	ofServer
	ofShadow // only with policies that are judged so; the test of controller/webhook/shadow knows the name
)

func sourceOf(name string) source {
	switch {
	case strings.HasPrefix(name, "apiserver_"):
		return ofServer
	case strings.HasPrefix(name, "kvap_shadow_"):
		return ofShadow
	case strings.HasPrefix(name, "kvap_webhook_"), strings.HasPrefix(name, "kvap_scan"):
		return ofExtras
	}
	return ofController
}
