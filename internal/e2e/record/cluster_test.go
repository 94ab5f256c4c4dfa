//go:build e2e

package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
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
	plane *controlplane.ControlPlane
	kvap  string // the program
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
	definitions = append(definitions,
		controlplane.StandIn(apischema.GroupVersionKind{Group: "kyverno.io", Version: "v1", Kind: "ClusterPolicy"}, "clusterpolicies", false),
		controlplane.StandIn(apischema.GroupVersionKind{Group: "wgpolicyk8s.io", Version: "v1alpha2", Kind: "PolicyReport"}, "policyreports", true),
	)
	if err := c.plane.InstallCRDs(ctx, definitions...); err != nil {
		return c, err
	}
	config := c.plane.Config(controlplane.Admin)
	config.WarningHandler, config.QPS = rest.NoWarnings{}, -1
	ctrllog.SetLogger(logr.Discard())
	c.Client, err = client.New(config, client.Options{Scheme: clientscheme.Scheme})
	return c, err
}

// A process is kvap at work.
type process struct {
	*exec.Cmd
	out, errs lockedBuffer
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

// start runs kvap until it ends, or the test does.
func (c *cluster) start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(c.kvap, append(args, "--kubeconfig", c.plane.Kubeconfig(controlplane.Admin))...)}
	p.Stdout, p.Stderr = &p.out, &p.errs
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill() // it may have ended
		_ = p.Wait()
		if t.Failed() {
			t.Logf("kvap %s:\n%s%s", strings.Join(args, " "), p.out.String(), p.errs.String())
		}
	})
	return p
}

// code waits for the end.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

// objects are those of a text.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
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
	for _, o := range objects(t, text) {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() {
			if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		})
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

const teams = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  validationFailureAction: Enforce
  background: true
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap, Secret], operations: [CREATE, UPDATE]}}]}
    exclude: {any: [{resources: {namespaces: [kube-system, kube-public, kube-node-lease]}}, {resources: {names: [kube-root-ca.crt]}}]}
    validate:
      message: it names its team
      pattern: {metadata: {labels: {team: "?*"}}}
`
