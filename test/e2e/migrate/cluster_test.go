//go:build e2e

package migrate

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/attempt"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/standin"
)

// A cluster is the control plane that all tests share.
type cluster struct{ *testcluster.Cluster }

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	os.Exit(testcluster.Run(m, testcluster.Options{Definitions: definitions(), AuditPolicy: withObjects}, func(c *testcluster.Cluster) (func(), error) {
		shared = &cluster{c}
		for _, name := range []string{"shop", standin.Namespace} {
			if err := c.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}))
}

// withObjects has the audit log keep the objects that are made, and what webhooks made
// of them.
const withObjects = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Request, verbs: [create], resources: [{group: "", resources: [resourcequotas]}]}
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

// definitions are Kyverno's own, where they are at hand, and stand-ins for the others.
func definitions() []controlplane.CRD {
	out, err := controlplane.ReadCRDs("../../../../shared/crds")
	if err != nil {
		out = nil
	}
	other := func(k schema.GroupVersionKind, plural string, namespaced bool, older ...string) {
		if !slices.ContainsFunc(out, func(have controlplane.CRD) bool { return have.GetName() == plural+"."+k.Group }) {
			out = append(out, controlplane.StandIn(k, plural, namespaced, older...))
		}
	}
	for _, k := range controller.ForeignKinds() {
		other(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...)
	}
	for _, k := range cleanup.Kinds() {
		other(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...)
	}
	for r, kind := range attempt.CustomKinds() {
		other(r.GroupVersion().WithKind(kind), r.Resource, true)
	}
	other(schema.GroupVersionKind{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: "PolicyReport"}, "policyreports", true)
	other(schema.GroupVersionKind{Group: "openreports.io", Version: "v1alpha1", Kind: "Report"}, "reports", true)
	return out
}

// control runs `kvap-controller` with its webhook until the test ends.
func (c *cluster) control(t *testing.T, flags ...string) {
	t.Helper()
	address, err := testcluster.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	var log testcluster.Buffer
	command := exec.Command(c.Controller, append([]string{
		"--kubeconfig", c.Plane.Kubeconfig(controlplane.Admin), "--mode", "off",
		"--namespace", "default", "--webhook-address", address, "--webhook-url", "https://" + address,
	}, flags...)...)
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.clean(t); !t.Failed() {
			testcluster.Soon(t, "the controller removes what it made", func() bool { return c.leftovers(t) == 0 })
		}
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("kvap-controller:\n%s", log.String())
		}
	})
}

// migrate runs `kvap migrate` to its end, and fails where that is not the code.
func (c *cluster) migrate(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, got := c.try(t, args...)
	if got != code {
		t.Fatalf("kvap migrate %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return out
}

func (c *cluster) try(t *testing.T, args ...string) (string, int) {
	t.Helper()
	return c.tryAs(t, c.Plane.Kubeconfig(controlplane.Admin), args...)
}

// tryAs runs it as the user of a kubeconfig file.
func (c *cluster) tryAs(t *testing.T, kubeconfig string, args ...string) (string, int) {
	t.Helper()
	begun := time.Now()
	command := exec.Command(c.Kvap, append([]string{"migrate"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	t.Logf("kvap migrate %s: %s\n%s", strings.Join(args, " "), time.Since(begun).Round(time.Millisecond), out)
	return string(out), command.ProcessState.ExitCode()
}

// migrateUntilKilled runs `kvap migrate` and kills it after a while.
func (c *cluster) migrateUntilKilled(t *testing.T, after time.Duration, args ...string) {
	t.Helper()
	over := make(chan struct{})
	defer time.AfterFunc(after, func() { close(over) }).Stop()
	c.migrateUntil(t, over, args...)
}

// migrateUntil runs `kvap migrate` and kills it when something is over.
func (c *cluster) migrateUntil(t *testing.T, over <-chan struct{}, args ...string) {
	t.Helper()
	command := exec.Command(c.Kvap, append([]string{"migrate"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(controlplane.Admin))
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait()
	}()
	select {
	case <-ended:
	case <-over:
		_ = command.Process.Kill()
		<-ended
	}
}

// apply makes the objects of a text, which stay until clean.
func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	for _, o := range testcluster.Read(t, text) {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// clean removes all policies, exceptions and records.
func (c *cluster) clean(t *testing.T) {
	t.Helper()
	for _, kind := range []string{
		"kyverno.io/v1 ClusterPolicy", "kyverno.io/v1 Policy", "kyverno.io/v2 PolicyException", "policies.kyverno.io/v1 ValidatingPolicy",
		"kvap.dev/v1alpha1 ClusterPolicy", "kvap.dev/v1alpha1 Policy", "kvap.dev/v1alpha1 ValidatingPolicy", "kvap.dev/v1alpha1 Migration",
	} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(name + "List")
		if err := c.List(context.Background(), list); err != nil {
			t.Error(err)
		}
		for i := range list.Items {
			if err := c.Delete(context.Background(), &list.Items[i]); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
}

// leftovers are how many objects there are by which the API server judges for kvap. The canaries
// and the entry by which policies are checked when they are written stay as long as it runs.
func (c *cluster) leftovers(t *testing.T) int {
	t.Helper()
	n := 0
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("admissionregistration.k8s.io/v1")
		list.SetKind(kind + "List")
		if err := c.List(context.Background(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": controller.Manager}); err != nil {
			t.Error(err)
		}
		for _, o := range list.Items {
			if !strings.Contains(o.GetName(), "canary") && o.GetName() != registration.PoliciesName {
				n++
			}
		}
	}
	return n
}

// policyOf reads a policy of a group; nil where there is none.
func (c *cluster) policyOf(t *testing.T, apiVersion, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind("ClusterPolicy")
	err := c.Get(t.Context(), client.ObjectKey{Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// record reads the record of a ClusterPolicy.
func (c *cluster) record(t *testing.T, name string) v1alpha1.MigrationStatus {
	t.Helper()
	return c.recordOf(t, name+".clusterpolicies.kyverno.io")
}

func (c *cluster) recordOf(t *testing.T, name string) v1alpha1.MigrationStatus {
	t.Helper()
	m := &v1alpha1.Migration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, m); err != nil {
		t.Fatal(err)
	}
	return m.Status
}
