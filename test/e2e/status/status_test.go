//go:build e2e

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// The control plane and the programs that all tests share.
var (
	plane *controlplane.ControlPlane
	kvap  string
	dev   string
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "kvap-e2e-status-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs, err := testcluster.Build(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	kvap, dev = programs.Kvap, programs.Dev
	if plane, err = controlplane.Start(context.Background(), controlplane.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer plane.Stop()
	return m.Run()
}

// execute runs kvap as the administrator and returns what it printed and its exit code.
func execute(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kvap, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig(controlplane.Admin))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// status is what `kvap status -o json` says, and its exit code.
func status(t *testing.T, args ...string) (report.Status, int) {
	t.Helper()
	stdout, stderr, code := execute(t, append([]string{"status", "-o", "json"}, args...)...)
	var s report.Status
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	return s, code
}

// await asks until the status is as it must be.
func await(t *testing.T, what string, ok func(report.Status) bool, args ...string) report.Status {
	t.Helper()
	var s report.Status
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if s, _ = status(t, args...); ok(s) {
			return s
		}
	}
	text, _ := json.MarshalIndent(s, "", "  ")
	t.Fatalf("not in time: %s\n%s", what, text)
	return s
}

// apply creates objects until the end of the test.
func apply(t *testing.T, text string) {
	t.Helper()
	config := plane.Config(controlplane.Admin)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(discovery.NewDiscoveryClientForConfigOrDie(config))
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, doc := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		if len(o.Object) == 0 {
			continue
		}
		gvk := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			t.Fatal(err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if o.GetNamespace() != "" {
			resource = client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		if _, err := resource.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		t.Cleanup(func() { _ = resource.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{}) })
	}
}

// convert is what `kvap convert` makes of a policy.
func convert(t *testing.T, file, text string, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), file)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := execute(t, append([]string{"convert", path, "-q"}, flags...)...)
	if code != 0 {
		t.Fatalf("kvap convert ends with %d\n%s", code, stderr)
	}
	return stdout
}

const typo = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: scale
spec:
  validationFailureAction: Enforce
  rules:
    - name: several
      match:
        any:
          - resources:
              kinds: [Deployment]
              operations: [CREATE, UPDATE]
      validate:
        cel:
          expressions:
            - expression: object.replicas > 1
              message: There is more than one replica.
    - name: owner
      match:
        any:
          - resources:
              kinds: [Deployment]
              operations: [CREATE, UPDATE]
      validate:
        message: A Deployment names its owner.
        pattern:
          metadata:
            annotations:
              acme.io/owner: "?*"
`

func policyNamed(t *testing.T, s report.Status, name string) report.PolicyStatus {
	t.Helper()
	i := slices.IndexFunc(s.Policies, func(p report.PolicyStatus) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("there is no policy %s", name)
	}
	return s.Policies[i]
}

func ready(name, want string) func(report.Status) bool {
	return func(s report.Status) bool {
		return slices.ContainsFunc(s.Policies, func(p report.PolicyStatus) bool { return p.Name == name && p.Condition("Ready") == want })
	}
}

// A type error shows at its line, in its rule, and nowhere else.
func TestTypeError(t *testing.T) {
	apply(t, convert(t, "scale.yaml", typo))
	s := await(t, "the type checker has warned", func(s report.Status) bool {
		return slices.ContainsFunc(s.Policies, func(p report.PolicyStatus) bool { return p.Condition("TypeChecked") == "False" })
	})
	p := policyNamed(t, s, "scale")
	if p.Kind != "ClusterPolicy" || p.Condition("Ready") != "False" || p.Mode != "enforce" {
		t.Errorf("got %+v", p)
	}
	for _, r := range p.Rules {
		switch {
		case r.Name == "owner" && len(r.Warnings) > 0:
			t.Errorf("owner has warnings: %+v", r.Warnings)
		case r.Name != "several":
			continue
		case len(r.Warnings) != 1:
			t.Fatalf("several has %d warnings", len(r.Warnings))
		}
		if len(r.Warnings) == 0 {
			continue
		}
		w := r.Warnings[0]
		if w.File != "scale.yaml" || w.Path != "spec.rules[0].validate.cel.expressions[0]" || w.Known ||
			!strings.Contains(w.Warning, "undefined field 'replicas'") {
			t.Errorf("got %+v", w)
		}
	}
	stdout, stderr, code := execute(t, "status")
	if code != 1 || !strings.Contains(stdout, "scale.yaml: scale/several spec.rules[0].validate.cel.expressions[0]: undefined field 'replicas' (apps/v1, Kind=Deployment) [scale ") {
		t.Errorf("kvap status ends with %d\n%s%s", code, stdout, stderr)
	}
}

// remove deletes a ValidatingAdmissionPolicy whose name begins so.
func remove(t *testing.T, prefix string) {
	t.Helper()
	client, err := dynamic.NewForConfig(plane.Config(controlplane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	resource := client.Resource(admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies"))
	list, err := resource.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list.Items {
		if strings.HasPrefix(p.GetName(), prefix) {
			if err := resource.Delete(t.Context(), p.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no policy begins with %s", prefix)
}
