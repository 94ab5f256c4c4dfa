// Package deploy_test holds what is installed to the types of the API server. What
// an API server itself says is tested in test/e2e/deploy.
package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kvap/kvap/controller/webhook"
)

// rendered are the files that are made from the chart.
func rendered() []string {
	return []string{"kustomize/base/kvap.yaml", "kustomize/webhook/kvap.yaml", "chart/testdata/full.yaml", "chart/testdata/webhook.yaml"}
}

// foreign are the groups whose types are not Kubernetes' own.
func foreign() []string { return []string{"cert-manager.io", "monitoring.coreos.com"} }

// objects reads a file of several documents.
func objects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// Every field is one that the API server knows.
func TestFieldsAreKnown(t *testing.T) {
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, file := range rendered() {
		n := 0
		for _, o := range objects(t, file) {
			if slices.Contains(foreign(), o.GroupVersionKind().Group) {
				continue
			}
			data, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := strict.Decode(data, nil, nil); err != nil {
				t.Errorf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
			}
			n++
		}
		if n < 10 {
			t.Errorf("%s has only %d objects", file, n)
		}
	}
}

// The Pods are what the Pod security standard calls restricted, find their account
// and are found by the services.
func TestDeployment(t *testing.T) {
	for _, file := range rendered() {
		var d appsv1.Deployment
		accounts, ports := map[string]bool{}, map[string]bool{}
		for _, o := range objects(t, file) {
			switch o.GetKind() {
			case "Deployment":
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &d); err != nil {
					t.Fatal(err)
				}
			case "ServiceAccount":
				accounts[o.GetName()] = true
			case "Service":
				list, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
				for _, p := range list {
					ports[p.(map[string]any)["targetPort"].(string)] = true
				}
			}
		}
		pod := d.Spec.Template.Spec
		c := pod.Containers[0]
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !*pod.SecurityContext.RunAsNonRoot || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: the Pod is not restricted", file)
		}
		if !accounts[pod.ServiceAccountName] {
			t.Errorf("%s: there is no service account %s", file, pod.ServiceAccountName)
		}
		for port := range ports {
			if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port }) {
				t.Errorf("%s: a service asks for the port %s", file, port)
			}
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s: there is no volume %s", file, m.Name)
			}
		}
	}
}

// The roles grant nothing by wildcard, and no secrets.
func TestRolesAreNarrow(t *testing.T) {
	for _, file := range rendered() {
		for _, o := range objects(t, file) {
			if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
				continue
			}
			rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
			for _, r := range rules {
				for field, value := range r.(map[string]any) {
					for _, word := range value.([]any) {
						if word == "*" || word == "secrets" && o.GetKind() == "ClusterRole" {
							t.Errorf("%s: %s %s grants %s in %s", file, o.GetKind(), o.GetName(), word, field)
						}
					}
				}
			}
		}
	}
}

// Where the webhook is on there is a NetworkPolicy, which lets nobody in a Pod ask it as
// far as the values say what Pods have for addresses.
func TestNetworkPolicy(t *testing.T) {
	for file, want := range map[string]struct{ from, types string }{
		"kustomize/base/kvap.yaml":    {"", ""},
		"chart/testdata/webhook.yaml": {"[]", "[Ingress]"},
		"chart/testdata/full.yaml": {
			"[map[ipBlock:map[cidr:0.0.0.0/0 except:[10.244.0.0/16]]] map[ipBlock:map[cidr:::/0 except:[fd00:10:244::/56]]]]", "[Ingress Egress]",
		},
	} {
		from, types := "", ""
		for _, o := range objects(t, file) {
			if o.GetKind() != "NetworkPolicy" {
				continue
			}
			has, _, _ := unstructured.NestedSlice(o.Object, "spec", "policyTypes")
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "ingress")
			for _, one := range rules {
				rule := one.(map[string]any)
				ports := rule["ports"].([]any)
				if len(ports) == 1 && ports[0].(map[string]any)["port"] == "webhook" {
					peers, _ := rule["from"].([]any)
					from, types = fmt.Sprint(peers), fmt.Sprint(has)
				}
			}
		}
		if from != want.from || types != want.types {
			t.Errorf("%s: lets in from %s, %s; want %s, %s", file, from, types, want.from, want.types)
		}
	}
}

// kustomize finds every definition.
func TestDefinitionsAreListed(t *testing.T) {
	data, err := os.ReadFile("crds/kustomization.yml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("crds")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".yaml") && !strings.Contains(string(data), "  - "+f.Name()+"\n") {
			t.Errorf("crds/kustomization.yml does not list %s", f.Name())
		}
	}
}

// own are the definitions that the chart and kustomize can leave out: their plurals are
// those of Kyverno's kinds.
func own() []string {
	return []string{"clusterpolicies.kvap.dev", "namespacedvalidatingpolicies.kvap.dev", "policies.kvap.dev", "validatingpolicies.kvap.dev"}
}

// The chart has every definition, and crds.policies leaves out kvap's own policies alone. They
// stay, with all that is of their kinds, unless crds.keep says otherwise.
func TestChartLeavesPoliciesOut(t *testing.T) {
	data, err := os.ReadFile("chart/testdata/definitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	var want []string
	for _, file := range files {
		name := objects(t, file)[0].GetName()
		want = append(want, "policies=true,keep=true "+name+" stays", "policies=true,keep=false "+name+" goes")
		if !slices.Contains(own(), name) {
			want = append(want, "policies=false,keep=true "+name+" stays")
		}
	}
	got := strings.Split(strings.TrimSpace(string(data)), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the chart has\n%q, want\n%q", got, want)
	}
}

// The chart has the definitions as they are.
func TestChartHasDefinitions(t *testing.T) {
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("chart/files", file))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("the chart's copy of %s is another: %v; run make chart", file, err)
		}
	}
	copies, err := filepath.Glob("chart/files/crds/*")
	if err != nil || len(copies) != len(files) {
		t.Errorf("the chart has %d definitions, and there are %d: %v", len(copies), len(files), err)
	}
}

// The kustomize component leaves out what the chart does.
func TestComponentLeavesPoliciesOut(t *testing.T) {
	var got []string
	for _, o := range objects(t, "kustomize/without-policies/kustomization.yaml") {
		patches, _, _ := unstructured.NestedSlice(o.Object, "patches")
		for _, p := range patches {
			patch := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(p.(map[string]any)["patch"].(string)), &patch.Object); err != nil {
				t.Fatal(err)
			}
			if patch.GetKind() != "CustomResourceDefinition" || patch.Object["$patch"] != "delete" {
				t.Errorf("it does something else: %v", patch.Object)
			}
			got = append(got, patch.GetName())
		}
	}
	if !slices.Equal(got, own()) {
		t.Errorf("it leaves out %q, want %q", got, own())
	}
}

// A chart with links has Helm warn of each.
func TestChartHasNoLinks(t *testing.T) {
	err := filepath.WalkDir("chart", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink != 0 {
			t.Errorf("%s is a link", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Where Pods have a priority of the system's there is a quota for it: some clusters make no
// such Pod in a namespace without one.
func TestPriorityHasAQuota(t *testing.T) {
	for _, file := range rendered() {
		class, quotas := "", map[string]bool{}
		for _, o := range objects(t, file) {
			switch o.GetKind() {
			case "Deployment":
				class, _, _ = unstructured.NestedString(o.Object, "spec", "template", "spec", "priorityClassName")
			case "ResourceQuota":
				scopes, _, _ := unstructured.NestedSlice(o.Object, "spec", "scopeSelector", "matchExpressions")
				for _, s := range scopes {
					for _, value := range s.(map[string]any)["values"].([]any) {
						quotas[value.(string)] = true
					}
				}
			}
		}
		if class == "" || !quotas[class] {
			t.Errorf("%s: the priority is %q, and there are quotas for %v", file, class, quotas)
		}
	}
}

// No service chooses the Pod that helm test runs.
func TestTestIsNotServed(t *testing.T) {
	var selectors []labels.Selector
	tests := 0
	all := objects(t, "chart/testdata/full.yaml")
	for _, o := range all {
		if o.GetKind() == "Service" {
			selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
			selectors = append(selectors, labels.SelectorFromSet(selector))
		}
	}
	for _, o := range all {
		if o.GetKind() != "Pod" {
			continue
		}
		tests++
		if slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(o.GetLabels())) }) {
			t.Errorf("a service chooses %s", o.GetName())
		}
	}
	if tests != 1 || len(selectors) == 0 {
		t.Errorf("%d tests, %d services", tests, len(selectors))
	}
}

// The leader writes the lease of its replicas and that of the cluster's instance, and no other.
func TestLeaderNamesItsLease(t *testing.T) {
	for _, file := range rendered() {
		named := map[string]int{} // by namespace
		for _, o := range objects(t, file) {
			if o.GetKind() != "Role" {
				continue
			}
			var role rbacv1.Role
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				if !slices.Contains(rule.Resources, "leases") {
					continue
				}
				if slices.Equal(rule.ResourceNames, []string{"kvap-controller.kvap.dev"}) {
					named[role.Namespace]++
				} else if !slices.Equal(rule.Verbs, []string{"create"}) {
					t.Errorf("%s: %s grants %v on all leases", file, role.Name, rule.Verbs)
				}
			}
		}
		if own := len(named) - named["kube-public"]; own != 1 || len(named) != 2 {
			t.Errorf("%s: the lease is named %v times, by namespace", file, named)
		}
	}
}

// Where the webhook is on, two replicas are there by default, spread, of which a drained node
// takes one, and one has the time to answer what it was asked.
func TestWebhookOutlivesAReplica(t *testing.T) {
	found := map[string]bool{}
	for _, o := range objects(t, "kustomize/webhook/kvap.yaml") {
		found[o.GetKind()] = true
		if o.GetKind() != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		if *d.Spec.Replicas < 2 || len(pod.TopologySpreadConstraints) == 0 {
			t.Errorf("%d replicas, spread by %d constraints", *d.Spec.Replicas, len(pod.TopologySpreadConstraints))
		}
		takes := webhook.LongestEnd
		if stop := pod.Containers[0].Lifecycle; stop != nil && stop.PreStop != nil {
			takes += time.Duration(stop.PreStop.Sleep.Seconds) * time.Second
		}
		if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= takes {
			t.Errorf("a Pod has %v to end, and may take %v", grace, takes)
		}
	}
	if !found["PodDisruptionBudget"] || !found["Service"] || !found["RoleBinding"] {
		t.Errorf("there are %v", found)
	}
}
