//go:build e2e

package migrate

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/internal/controlplane"
)

// A cluster is the control plane that all tests share.
type cluster struct {
	client.Client
	plane  *controlplane.ControlPlane
	config *rest.Config
	kvap   string // the program
}

// shared is made by TestMain.
var shared *cluster

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kvap-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	shared, err = newCluster(context.Background(), dir)
	if shared != nil && shared.plane != nil {
		defer shared.plane.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func newCluster(ctx context.Context, dir string) (c *cluster, err error) {
	c = &cluster{kvap: filepath.Join(dir, "kvap")}
	build := exec.CommandContext(ctx, "go", "build", "-o", c.kvap, "../../../cmd/kvap")
	if text, err := build.CombinedOutput(); err != nil {
		return c, fmt.Errorf("building kvap: %w\n%s", err, text)
	}
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return c, err
	}
	definitions, err := controlplane.ReadCRDs(filepath.Join("..", "..", "..", "deploy", "crds"))
	if err != nil {
		return c, err
	}
	for _, k := range controller.ForeignKinds() {
		if k.Group == "kyverno.io" {
			definitions = append(definitions, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
		}
	}
	if err := c.plane.InstallCRDs(ctx, definitions...); err != nil {
		return c, err
	}
	c.config = c.plane.Config(controlplane.Admin)
	c.config.WarningHandler, c.config.QPS = rest.NoWarnings{}, -1
	ctrllog.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return c, err
		}
	}
	if c.Client, err = client.New(c.config, client.Options{Scheme: scheme}); err != nil {
		return c, err
	}
	return c, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
}

// A buffer may be written to and read at once.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// control runs `kvap controller` with its webhook until the test ends.
func (c *cluster) control(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var log buffer
	command := exec.Command(c.kvap, "controller", "--kubeconfig", c.plane.Kubeconfig(controlplane.Admin), "--mode", "off",
		"--namespace", "default", "--webhook-address", address, "--webhook-url", "https://"+address)
	command.Stderr = &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c.clean(t); !t.Failed() {
			soon(t, "the controller removes what it made", func() bool { return c.leftovers(t) == 0 })
		}
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("kvap controller:\n%s", log.String())
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
	begun := time.Now()
	command := exec.Command(c.kvap, append([]string{"migrate"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.plane.Kubeconfig(controlplane.Admin))
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
	command := exec.Command(c.kvap, append([]string{"migrate"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.plane.Kubeconfig(controlplane.Admin))
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
	case <-time.After(after):
		_ = command.Process.Kill()
		<-ended
	}
}

// apply makes the objects of a text, and removes them when the test ends.
func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if err := c.Create(t.Context(), o.DeepCopy()); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// clean removes all policies and records.
func (c *cluster) clean(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"kyverno.io/v1 ClusterPolicy", "kvap.dev/v1alpha1 ClusterPolicy", "kvap.dev/v1alpha1 Migration"} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(apiVersion)
		o.SetKind(name)
		if err := c.DeleteAllOf(context.Background(), o); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	}
}

// leftovers are how many objects there are by which the API server judges for kvap.
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
			if !strings.Contains(o.GetName(), "canary") {
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

// record reads the record of a policy.
func (c *cluster) record(t *testing.T, name string) v1alpha1.MigrationStatus {
	t.Helper()
	m := &v1alpha1.Migration{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name + ".clusterpolicies.kyverno.io"}, m); err != nil {
		t.Fatal(err)
	}
	return m.Status
}

// soon asks until the answer is yes. A machine that is busy may take long.
func soon(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ask(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
