//go:build e2e

package testcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/test/controlplane"
)

// A Cluster is a control plane that all tests of a package share, and its administrator.
type Cluster struct {
	client.Client
	Plane  *controlplane.ControlPlane
	Config *rest.Config
	Programs
}

// Options are what a package of tests wants besides.
type Options struct {
	Users []controlplane.User
	// Definitions are those of kinds other than kvap's own.
	Definitions []controlplane.CRD
	// AuditPolicy says what the audit log keeps, where that is something else.
	AuditPolicy string
}

// Run makes a Cluster, has begin take it, runs the tests and ends it all. What begin
// returns ends what it has begun; it may be nil. The result is the program's exit code.
func Run(m *testing.M, o Options, begin func(*Cluster) (end func(), err error)) int {
	dir, err := os.MkdirTemp("", "kvap-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c, err := newCluster(context.Background(), dir, o)
	if c.Plane != nil {
		defer func() { _ = c.Plane.Stop() }()
	}
	var end func()
	if err == nil {
		end, err = begin(c)
	}
	if end != nil {
		defer end()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func newCluster(ctx context.Context, dir string, o Options) (c *Cluster, err error) {
	c = &Cluster{}
	if c.Programs, err = Build(ctx, dir); err != nil {
		return c, err
	}
	plane := controlplane.Options{Users: o.Users}
	if o.AuditPolicy != "" {
		file := filepath.Join(dir, "audit-policy.yaml")
		if err := os.WriteFile(file, []byte(o.AuditPolicy), 0o600); err != nil {
			return c, err
		}
		plane.APIServerFlags = []string{"--audit-policy-file=" + file}
	}
	if c.Plane, err = controlplane.Start(ctx, plane); err != nil {
		return c, err
	}
	definitions, err := crds.All()
	if err != nil {
		return c, err
	}
	if err := c.Plane.InstallCRDs(ctx, append(definitions, o.Definitions...)...); err != nil {
		return c, err
	}
	c.Config = c.Plane.Config(controlplane.Admin)
	c.Config.WarningHandler, c.Config.QPS = rest.NoWarnings{}, -1
	ctrllog.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return c, err
		}
	}
	c.Client, err = client.New(c.Config, client.Options{Scheme: scheme})
	return c, err
}

// ProgramsVariable is the environment variable that names the folder of the programs, where
// they are built for all packages of tests.
const ProgramsVariable = "KVAP_PROGRAMS"

// Programs are the paths of what users run.
type Programs struct{ Kvap, Controller, Dev string }

// Build builds the programs into a folder, if they are not built.
func Build(ctx context.Context, dir string) (Programs, error) {
	if given := os.Getenv(ProgramsVariable); given != "" {
		dir = given
	} else if text, err := exec.CommandContext(ctx, "go", "build", "-o", dir+string(filepath.Separator), "github.com/kvap/kvap/cmd/...").CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("building kvap: %w\n%s", err, text)
	}
	built := Programs{filepath.Join(dir, "kvap"), filepath.Join(dir, "kvap-controller"), filepath.Join(dir, "kvap-dev")}
	for _, path := range []string{built.Kvap, built.Controller, built.Dev} {
		if _, err := os.Stat(path); err != nil {
			return built, err
		}
	}
	return built, nil
}

// Read are the objects of a text.
func Read(t *testing.T, text string) []*unstructured.Unstructured {
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

// Apply makes objects, and removes them when the test ends.
func (c *Cluster) Apply(t *testing.T, text string) {
	t.Helper()
	for _, o := range Read(t, text) {
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

// Namespace makes a namespace, which stays: tests share them.
func (c *Cluster) Namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if err := c.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}
