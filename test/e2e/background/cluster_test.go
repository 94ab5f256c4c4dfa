//go:build e2e

package background

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/cleanup"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// program is the user that kvap is. What it does itself triggers no rule, so those
// who make triggers are others.
const program = "kvap"

// A cluster is the control plane that all tests share.
type cluster struct {
	*testcluster.Cluster
	*process
}

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) {
	clusters := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Cluster"}
	definitions := []controlplane.CRD{controlplane.StandIn(clusters, "clusters", true)}
	for _, k := range controller.ForeignKinds() {
		if k.Group == "policies.kyverno.io" {
			definitions = append(definitions, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
		}
	}
	for _, k := range cleanup.Kinds() {
		if strings.HasSuffix(k.Kind, "DeletingPolicy") {
			definitions = append(definitions, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
		}
	}
	os.Exit(testcluster.Run(m, testcluster.Options{
		Users:       []controlplane.User{{Name: program, Groups: []string{"system:masters"}}},
		Definitions: definitions,
	}, func(c *testcluster.Cluster) (func(), error) {
		shared = &cluster{Cluster: c}
		if err := shared.start(""); err != nil {
			return nil, err
		}
		return func() { shared.kill() }, nil // whichever runs then
	}))
}

// A process is `kvap-controller`.
type process struct {
	command *exec.Cmd
	address string
	log     testcluster.Buffer
}

// start runs `kvap-controller` with its webhook at an address, a free one where it is
// empty.
func (c *cluster) start(address string) error {
	if address == "" {
		var err error
		if address, err = testcluster.FreeAddress(); err != nil {
			return err
		}
	}
	c.process = &process{address: address}
	c.command = exec.Command(c.Controller,
		"--kubeconfig", c.Plane.Kubeconfig(program), "--mode", "enforce", "--namespace", "default", "--exception-namespaces", "default",
		"--webhook-address", address, "--webhook-url", "https://"+address)
	c.command.Stderr = &c.log
	return c.command.Start()
}

// restart kills the process and starts another one in its place.
func (c *cluster) restart(t *testing.T) {
	t.Helper()
	c.kill()
	if err := c.start(c.address); err != nil {
		t.Fatal(err)
	}
}

// tells logs what the program has said where a test has failed.
func (c *cluster) tells(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kvap-controller:\n%s", c.log.String())
		}
	})
}

// kill ends the process at once, as SIGKILL does.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// get is an object of the cluster; nil where there is none.
func (c *cluster) get(t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		t.Fatal(err)
	}
	return o
}

// await waits until an object is as it should be.
func (c *cluster) await(t *testing.T, apiVersion, kind, namespace, name string, is func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	t.Helper()
	var out *unstructured.Unstructured
	testcluster.Soon(t, fmt.Sprintf("%s %s/%s", kind, namespace, name), func() bool {
		out = c.get(t, apiVersion, kind, namespace, name)
		return is(out)
	})
	return out
}

func there(o *unstructured.Unstructured) bool { return o != nil }

func gone(o *unstructured.Unstructured) bool { return o == nil }

// translated tells whether something holds of the status of a policy's PolicyTranslation.
func (c *cluster) translated(t *testing.T, name string, holds func(v1alpha1.PolicyTranslationStatus) bool) bool {
	t.Helper()
	var list v1alpha1.PolicyTranslationList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.Items, func(one v1alpha1.PolicyTranslation) bool {
		return one.Spec.Source.Name == name && holds(one.Status)
	})
}

// serving waits until requests about a policy's kinds come to the webhook, and the
// policy's work is done.
func (c *cluster) serving(t *testing.T, policies ...string) {
	t.Helper()
	for _, name := range policies {
		testcluster.Soon(t, "the policy "+name+" is served", func() bool {
			return c.translated(t, name, func(status v1alpha1.PolicyTranslationStatus) bool {
				fallback := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionFallbackActive)
				return fallback != nil && fallback.Reason == "Serving"
			})
		})
	}
}
