//go:build e2e

package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// deployed is what somebody has in a cluster: a policy with a mistake in it, one that
// nothing binds, and one that is still to be converted.
const deployed = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: mistaken}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [acme.io], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  validations: [{expression: "has(object.spec) && object.spec.nmae != ''"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: mistaken}
spec: {policyName: mistaken, validationActions: [Audit]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unbound}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [acme.io], apiVersions: [v1], operations: [CREATE], resources: [widgets]}]
  validations: [{expression: "has(object.spec) && has(object.spec.name)"}]
---
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [Widget]}}]}
      validate: {failureAction: Audit, message: no owner, pattern: {metadata: {labels: {owner: "?*"}}}}
`

// What check says of a cluster is about what is in it; and the types that the cluster
// publishes are those of its definitions.
func TestCluster(t *testing.T) {
	t.Parallel() // each test has a control plane of its own
	plane, err := controlplane.Start(t.Context(), controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop()
	crds, err := controlplane.ReadCRDs(filepath.Join("..", "..", "..", "deploy", "crds"))
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.InstallCRDs(t.Context(), append(crds, custom(t))...); err != nil {
		t.Fatal(err)
	}
	apply(t, plane, deployed)
	k := program{build(t), plane}

	var stdout, stderr string
	await(t, "a finding in the type of a custom kind", func() bool {
		stdout, stderr, _ = k.run(t, controlplane.Admin, "check", "--cluster")
		return strings.Contains(stdout, "KV405")
	})
	for _, want := range []string{
		"ValidatingAdmissionPolicy/mistaken:", "Widget has no field spec.nmae (is name meant?)",
		"no binding names the policy unbound", "5 objects: 1 error, 1 warning, 0 notes",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("check --cluster does not say %q:\n%s%s", want, stdout, stderr)
		}
	}

	files := t.TempDir()
	write(t, filepath.Join(files, "crd.yaml"), widgets)
	write(t, filepath.Join(files, "vaps.yaml"), ofWidgets(t))
	fromFile, _, _ := k.run(t, controlplane.Admin, "check", filepath.Join(files, "vaps.yaml"), "--crds", filepath.Join(files, "crd.yaml"), "--kubernetes-version", release(t).String(), "-o", "json")
	fromCluster, stderr, code := k.run(t, controlplane.Plain, "check", filepath.Join(files, "vaps.yaml"), "--cluster", "-o", "json")
	if fromFile != fromCluster || code != 1 {
		t.Errorf("exit code %d; from the definition\n%s\nand from the cluster\n%s%s", code, fromFile, fromCluster, stderr)
	}
	if _, stderr, code := k.run(t, controlplane.Plain, "check", "--cluster"); code != 4 || !strings.Contains(stderr, "so the check is incomplete") {
		t.Errorf("one who may read nothing gets the code %d and %s", code, stderr)
	}
}

// ofWidgets are the policies of the table that are about the custom kind.
func ofWidgets(t *testing.T) string {
	t.Helper()
	all, err := mistaken()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, p := range all {
		if p.Spec.MatchConstraints.ResourceRules[0].APIGroups[0] != "acme.io" {
			continue
		}
		p.APIVersion, p.Kind = "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"
		text, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.String()
}

func build(t *testing.T) string {
	t.Helper()
	programs, err := testcluster.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return programs.Kvap
}

// A program is kvap, for a cluster.
type program struct {
	path  string
	plane *controlplane.ControlPlane
}

// run runs it as a user, and returns what it printed and its exit code.
func (p program) run(t *testing.T, user string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+p.plane.Kubeconfig(user))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("not in time: " + what)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// apply creates the objects of a text.
func apply(t *testing.T, plane *controlplane.ControlPlane, text string) {
	t.Helper()
	client, err := dynamic.NewForConfig(plane.Config(controlplane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		gvk := o.GroupVersionKind()
		plural := strings.Replace(strings.ToLower(gvk.Kind)+"s", "policys", "policies", 1)
		resource := client.Resource(apischema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: plural})
		if _, err := resource.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
