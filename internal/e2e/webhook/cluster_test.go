//go:build e2e

package webhook

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
// empty, until the test ends.
func (c *cluster) start(t *testing.T, address string, flags ...string) *process {
	t.Helper()
	if address == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address = l.Addr().String()
		l.Close()
	}
	p := &process{address: address}
	p.command = exec.Command(c.kvap, append([]string{
		"controller", "--kubeconfig", c.plane.Kubeconfig(controlplane.Admin), "--mode", "enforce", "--namespace", "default",
		"--webhook-address", address, "--webhook-url", "https://" + address,
	}, flags...)...)
	p.command.Stderr = &p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("kvap controller:\n%s", p.log.String())
		}
	})
	return p
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

// try makes an object, dry, and gives what comes of it.
func (c *cluster) try(ctx context.Context, t *testing.T, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := read(t, text)[0]
	err := c.Create(ctx, o, client.DryRunAll)
	return o, err
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

// denied waits until an object is refused, and gives the reason.
func (c *cluster) denied(t *testing.T, text string) string {
	t.Helper()
	var message string
	soon(t, "a denial", func() bool {
		_, err := c.try(t.Context(), t, text)
		if err != nil && (strings.Contains(err.Error(), "denied the request") || strings.Contains(err.Error(), "denied request:")) {
			message = err.Error()
			return true
		}
		return false
	})
	return message
}

// admitted waits until an object is taken, and gives what became of it.
func (c *cluster) admitted(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var out *unstructured.Unstructured
	var err error
	soon(t, "an admission", func() bool {
		out, err = c.try(t.Context(), t, text)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	return out
}
