//go:build e2e

package background

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/controlplane"
)

// A cluster is the control plane that all tests share.
type cluster struct {
	client.Client
	plane  *controlplane.ControlPlane
	config *rest.Config
	kvap   string // the program
	*process
}

// program is the user that kvap is. What it does itself triggers no rule, so those
// who make triggers are others.
const program = "kvap"

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
	if err == nil {
		err = shared.start("")
		defer func() { shared.kill() }()
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
	if c.plane, err = controlplane.Start(ctx, controlplane.Options{Users: []controlplane.User{{Name: program, Groups: []string{"system:masters"}}}}); err != nil {
		return c, err
	}
	definitions, err := controlplane.ReadCRDs(filepath.Join("..", "..", "..", "deploy", "crds"))
	if err != nil {
		return c, err
	}
	clusters := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: "Cluster"}
	definitions = append(definitions, controlplane.StandIn(clusters, "clusters", true))
	if err := c.plane.InstallCRDs(ctx, definitions...); err != nil {
		return c, err
	}
	c.config = c.plane.Config(controlplane.Admin)
	c.config.WarningHandler = rest.NoWarnings{}
	ctrllog.SetLogger(logr.Discard())
	c.Client, err = client.New(c.config, client.Options{Scheme: clientscheme.Scheme})
	return c, err
}

// A process is `kvap controller`.
type process struct {
	command *exec.Cmd
	address string
	log     lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// start runs `kvap controller` with its webhook at an address, a free one where it is
// empty.
func (c *cluster) start(address string) error {
	if address == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		address = l.Addr().String()
		l.Close()
	}
	c.process = &process{address: address}
	c.command = exec.Command(c.kvap,
		"controller", "--kubeconfig", c.plane.Kubeconfig(program), "--mode", "enforce", "--namespace", "default",
		"--webhook-address", address, "--webhook-url", "https://"+address)
	c.command.Stderr = &c.log
	return c.command.Start()
}

// tells logs what the program has said where a test has failed.
func (c *cluster) tells(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("kvap controller:\n%s", c.log.String())
		}
	})
}

// kill ends the process at once, as SIGKILL does.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// read are the objects of a text.
func read(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		out = append(out, o)
	}
	return out
}

// apply makes objects, and removes them when the test ends.
func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	for _, o := range read(t, text) {
		if err := c.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
	}
}

func (c *cluster) namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if err := c.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
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
	soon(t, fmt.Sprintf("%s %s/%s", kind, namespace, name), func() bool {
		out = c.get(t, apiVersion, kind, namespace, name)
		return is(out)
	})
	return out
}

func there(o *unstructured.Unstructured) bool { return o != nil }

func gone(o *unstructured.Unstructured) bool { return o == nil }

// serving waits until requests about a policy's kinds come to the webhook, and the
// policy's work is done.
func (c *cluster) serving(t *testing.T, policies ...string) {
	t.Helper()
	for _, name := range policies {
		soon(t, "the policy "+name+" is served", func() bool {
			list := &unstructured.UnstructuredList{}
			list.SetAPIVersion("kvap.dev/v1alpha1")
			list.SetKind("PolicyTranslationList")
			if err := c.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			for _, one := range list.Items {
				source, _, _ := unstructured.NestedString(one.Object, "spec", "source", "name")
				conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
				for _, item := range conditions {
					if m, _ := item.(map[string]any); source == name && m["type"] == "FallbackActive" && m["reason"] == "Serving" {
						return true
					}
				}
			}
			return false
		})
	}
}
