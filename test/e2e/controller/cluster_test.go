//go:build e2e

package controller

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/deploy/crds"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A cluster is a control plane with kvap's definitions and those of Kyverno.
type cluster struct {
	client.Client
	plane  *controlplane.ControlPlane
	config *rest.Config
}

// shared is made by TestMain. Each test cleans up after itself.
var shared *cluster

// asController is the environment variable by which this program is the controller,
// and not the tests of it.
const asController = "KVAP_E2E_CONTROLLER"

// withLease is the environment variable by which such a controller is one of several.
const withLease = "KVAP_E2E_LEASE"

func TestMain(m *testing.M) {
	if os.Getenv(asController) != "" {
		os.Exit(runAsController())
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx := context.Background()
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer plane.Stop()
	if shared, err = newCluster(ctx, plane); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func newCluster(ctx context.Context, plane *controlplane.ControlPlane) (*cluster, error) {
	c := &cluster{plane: plane, config: plane.Config(controlplane.Admin)}
	c.config.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	definitions, err := crds.All()
	if err != nil {
		return nil, err
	}
	if err := plane.InstallCRDs(ctx, append(definitions, standIns("clusterpolicies.kyverno.io", "policyexceptions.kyverno.io", "validatingpolicies.policies.kyverno.io", "mutatingpolicies.policies.kyverno.io")...)...); err != nil {
		return nil, err
	}
	c.Client, err = client.New(c.config, client.Options{Scheme: scheme})
	return c, err
}

// standIns are permissive definitions of Kyverno's kinds.
func standIns(names ...string) []controlplane.CRD {
	var out []controlplane.CRD
	for _, k := range controller.ForeignKinds() {
		for _, name := range names {
			if name == k.Plural+"."+k.Group {
				out = append(out, controlplane.StandIn(k.GroupVersionKind, k.Plural, k.Namespaced, k.Older...))
			}
		}
	}
	return out
}

// runAsController is the controller as a process of its own. It kills itself before
// the step that the environment names.
func runAsController() int {
	config, err := configFrom(os.Getenv("KUBECONFIG"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	options := controller.Options{Mode: v1alpha1.ModeEnforce, Step: dieAt(os.Getenv(asController)), LeaderElection: os.Getenv(withLease) != ""}
	if err := controller.Run(context.Background(), config, options, logger()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func logger() logr.Logger {
	l := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if os.Getenv("KVAP_E2E_VERBOSE") != "" {
		l = logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil))
	}
	ctrllog.SetLogger(l)
	klog.SetLogger(l)
	return l
}

// control runs the controller in this process until the test ends or the function
// that is returned is called.
func (c *cluster) control(t *testing.T, options controller.Options) (stop func()) {
	t.Helper()
	return controlAs(t, c.plane.Config(controlplane.Admin), options)
}

// controlAs is control by an API server and as a user of one's own.
func controlAs(t *testing.T, config *rest.Config, options controller.Options) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, config, options, logger()) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// spawn runs the controller as a process of its own.
func (c *cluster) spawn(t *testing.T, step string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asController+"="+step, "KUBECONFIG="+c.plane.Kubeconfig(controlplane.Admin))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// apply makes or changes the objects of a text, and removes those that it made when
// the test ends.
func (c *cluster) apply(t *testing.T, text string) {
	t.Helper()
	for _, doc := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		c.put(t, o)
	}
}

func (c *cluster) put(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	have := o.DeepCopy()
	err := c.Get(t.Context(), client.ObjectKeyFromObject(o), have)
	switch {
	case apierrors.IsNotFound(err):
		err = c.Create(t.Context(), o)
		t.Cleanup(func() { c.remove(t, o) })
	case err == nil:
		o.SetResourceVersion(have.GetResourceVersion())
		err = c.Update(t.Context(), o)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
	}
}

func (c *cluster) remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(c.Delete(context.Background(), o)); err != nil && !meta.IsNoMatchError(err) {
		t.Errorf("removing %s: %v", o.GetName(), err)
	}
}

// translation is the PolicyTranslation of a name.
func (c *cluster) translation(t *testing.T, name string) *v1alpha1.PolicyTranslation {
	t.Helper()
	out := &v1alpha1.PolicyTranslation{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: name}, out); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return out
}

// condition is a condition of a PolicyTranslation, of the generation that its policy
// has; empty where there is none.
func (c *cluster) condition(t *testing.T, name, condition string) metav1.Condition {
	t.Helper()
	if found := meta.FindStatusCondition(c.translation(t, name).Status.Conditions, condition); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// awaitReady waits until a policy is in force as it is, and says why not.
func (c *cluster) awaitReady(t *testing.T, kind, namespace, name string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("kyverno.io/v1")
	key := name + ".clusterpolicies.kyverno.io"
	switch kind {
	case "Policy":
		key = name + "." + namespace + ".policies.kyverno.io"
	case "ValidatingPolicy", "MutatingPolicy":
		o.SetAPIVersion("policies.kyverno.io/v1")
		key = name + "." + strings.ToLower(strings.TrimSuffix(kind, "y")) + "ies.policies.kyverno.io"
	}
	o.SetKind(kind)
	var last metav1.Condition
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s: %+v", key, last)
		}
	})
	testcluster.Soon(t, key+" is ready", func() bool {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			t.Fatal(err)
		}
		last = c.condition(t, key, v1alpha1.ConditionReady)
		have := c.translation(t, key)
		return last.Status == metav1.ConditionTrue && have.Spec.Source.UID == o.GetUID() && have.Status.SourceGeneration == o.GetGeneration()
	})
}

// ours are the names of the native policies that the controller made.
func (c *cluster) ours(t *testing.T) []string {
	t.Helper()
	return c.made(t, &admissionregistrationv1.ValidatingAdmissionPolicyList{})
}

// made are the names of the objects of a kind that the controller made, but for its canary.
func (c *cluster) made(t *testing.T, list client.ObjectList) (names []string) {
	t.Helper()
	if err := c.List(context.Background(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": controller.Manager}); err != nil {
		t.Fatal(err)
	}
	if err := meta.EachListItem(list, func(o runtime.Object) error {
		if name := o.(client.Object).GetName(); name != "kvap-canary" {
			names = append(names, name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// clear removes the native policies that a controller left when it ended.
func (c *cluster) clear(t *testing.T) {
	t.Helper()
	for _, name := range c.ours(t) {
		c.remove(t, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}})
		c.remove(t, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, name := range c.mutators(t) {
		c.remove(t, &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}})
		c.remove(t, &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

// configMap is one with labels.
func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: labels}}
}

// tryCreate asks, dry, for a ConfigMap.
func (c *cluster) tryCreate(ctx context.Context, labels map[string]string) error {
	return c.Create(ctx, configMap("probe", labels), client.DryRunAll)
}

// requires is a policy that wants a label on ConfigMaps.
func requires(name, label, action string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %[1]s}
spec:
  validationFailureAction: %[3]s
  background: false
  rules:
  - name: want-%[2]s
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: The label %[2]s is missing.
      pattern: {metadata: {labels: {%[2]s: "?*"}}}
`, name, label, action)
}
