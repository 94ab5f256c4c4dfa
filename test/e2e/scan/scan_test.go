//go:build e2e

package scan

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

const owners = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: owners, annotations: {policies.kyverno.io/severity: high}}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Secret]}}]}
      validate: {message: A Secret has an owner., pattern: {metadata: {labels: {owner: "?*"}}}}
    - name: digest
      match: {any: [{resources: {kinds: [Secret]}}]}
      validate:
        message: The name is no digest.
        deny: {conditions: {any: [{key: "{{ sha256('x') }}", operator: NotEquals, value: "{{ request.object.metadata.labels.owner || 'x' }}"}]}}
`

const classes = `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: classes}
spec:
  rules:
    - name: named
      match: {any: [{resources: {kinds: [PriorityClass]}}]}
      validate: {message: A PriorityClass has a team., pattern: {metadata: {labels: {team: "?*"}}}}
`

type cluster struct{ client.Client }

func (c cluster) make(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func (c cluster) remove(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if err := c.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// report is the report about an object; nil where there is none.
func (c cluster) report(t *testing.T, kind string, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	r := &unstructured.Unstructured{}
	r.SetAPIVersion("wgpolicyk8s.io/v1alpha2")
	r.SetKind(kind)
	err := c.Get(t.Context(), client.ObjectKey{Namespace: o.GetNamespace(), Name: string(o.GetUID())}, r)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return r
}

// start runs a control plane and a controller that writes reports.
func start(t *testing.T) cluster {
	t.Helper()
	c, config := startPlane(t)
	lead(t, config)
	return c
}

// lead runs a controller that writes reports, until the test ends or stop is called.
func lead(t *testing.T, config *rest.Config) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- controller.Run(ctx, config, controller.Options{Reports: report.PolicyReports}, logr.Discard())
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// startPlane runs a control plane with the definitions of kvap and of reports.
func startPlane(t *testing.T) (cluster, *rest.Config) {
	t.Helper()
	ctrllog.SetLogger(logr.Discard())
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() })
	crds, err := controlplane.ReadCRDs("../../../deploy/crds")
	if err != nil {
		t.Fatal(err)
	}
	for kind, resource := range map[string]string{"PolicyReport": "policyreports", "ClusterPolicyReport": "clusterpolicyreports"} {
		gvk := apischema.GroupVersionKind{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: kind}
		crds = append(crds, controlplane.StandIn(gvk, resource, kind == "PolicyReport"))
	}
	if real, err := controlplane.ReadCRDs("../../../../shared/crds"); err == nil && len(real) > 0 { // in place of the stand-ins
		crds = append(real, crds...)
	}
	if err := plane.InstallCRDs(t.Context(), crds...); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(plane.Config(controlplane.Admin), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return cluster{c}, plane.Config(controlplane.Admin)
}

func TestReports(t *testing.T) {
	c := start(t)
	t.Run("follow", c.follow)
	t.Run("fail alone", c.failAlone)
}

const (
	closed = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-reports}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [wgpolicyk8s.io], apiVersions: ["*"], resources: [policyreports], operations: [CREATE]}]}
  validations: [{expression: "false", message: No reports here.}]
`
	closedBinding = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-reports}
spec:
  policyName: no-reports
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: closed}}}
`
	oneReport = "{apiVersion: wgpolicyk8s.io/v1alpha2, kind: PolicyReport, metadata: {name: one, namespace: closed}}"
)

// A report that a tenant's policy denies, and one in a namespace that is being deleted, keep
// no other from being written, and the status of the policy names what is not up to date.
func (c cluster) failAlone(t *testing.T) {
	for _, name := range []string{"closed", "going", "open"} {
		c.make(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	c.make(t, closed)
	c.make(t, closedBinding)
	testcluster.Soon(t, "reports are denied", func() bool {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(oneReport), &o.Object); err != nil {
			t.Fatal(err)
		}
		return c.Create(t.Context(), o, client.DryRunAll) != nil
	})
	denied := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: bad, namespace: closed}}")
	c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: bad, namespace: going, finalizers: [acme.io/stays]}}")
	c.remove(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "going"}}})
	last := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: bad, namespace: open}}")
	c.make(t, owners)
	testcluster.Soon(t, "the last object has a report", func() bool { return c.report(t, "PolicyReport", last) != nil })
	later := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: later, namespace: open}}")
	testcluster.Soon(t, "a new object has a report", func() bool { return c.report(t, "PolicyReport", later) != nil })
	said := ""
	testcluster.Soon(t, "the status tells", func() bool {
		o := &v1alpha1.PolicyTranslation{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "owners.clusterpolicies.kvap.dev"}, o); err != nil {
			return false
		}
		reported := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionReported)
		if reported == nil || reported.Status != metav1.ConditionFalse {
			return false
		}
		said = reported.Message
		return true
	})
	if !strings.Contains(said, "closed/bad") || !strings.Contains(said, "No reports here.") {
		t.Errorf("it says %q", said)
	}
	if c.report(t, "PolicyReport", denied) != nil {
		t.Error("the report is there that is denied")
	}
}

func (c cluster) follow(t *testing.T) {
	bad := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: bad, namespace: default}}")
	system := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: bad, namespace: kube-system}}")
	policy := c.make(t, owners)
	testcluster.Soon(t, "the object that was there has a report", func() bool { return c.report(t, "PolicyReport", bad) != nil })
	r := c.report(t, "PolicyReport", bad)
	results, _, _ := unstructured.NestedSlice(r.Object, "results")
	var rules []string
	for _, one := range results {
		m := one.(map[string]any)
		rules = append(rules, m["rule"].(string))
		if m["source"] != "kvap" || m["result"] != "fail" || m["policy"] != "owners" || m["severity"] != "high" {
			t.Errorf("got %v", m)
		}
	}
	if got := strings.Join(rules, " "); got != "digest owner" { // of a webhook's rule, and of a native one
		t.Errorf("the rules are %s", got)
	}
	if c.report(t, "PolicyReport", system) != nil {
		t.Error("an object of a namespace that is left out has a report")
	}

	later := c.make(t, "{apiVersion: v1, kind: Secret, metadata: {name: later, namespace: default}}")
	testcluster.Soon(t, "a new object has a report", func() bool { return c.report(t, "PolicyReport", later) != nil })
	c.remove(t, later)
	testcluster.Soon(t, "the report goes with its object", func() bool { return c.report(t, "PolicyReport", later) == nil })

	class := c.make(t, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: 1}")
	other := c.make(t, classes)
	testcluster.Soon(t, "an object without a namespace has a report", func() bool { return c.report(t, "ClusterPolicyReport", class) != nil })
	if again := c.report(t, "PolicyReport", bad); again.GetResourceVersion() != r.GetResourceVersion() {
		t.Error("a report of which nothing has changed was written again")
	}
	class.SetLabels(map[string]string{"team": "a"})
	if err := c.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	testcluster.Soon(t, "the report goes when nothing is wrong any more", func() bool { return c.report(t, "ClusterPolicyReport", class) == nil })
	c.remove(t, policy)
	testcluster.Soon(t, "the report goes with its policy", func() bool { return c.report(t, "PolicyReport", bad) == nil })
	c.remove(t, other)
}
