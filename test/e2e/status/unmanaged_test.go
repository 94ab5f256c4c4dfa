//go:build e2e

package status

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/test/controlplane"
)

const rules = `{resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}`

const byHand = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: loose, labels: {team: a}}
spec:
  matchConstraints: ` + rules + `
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limited}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: ` + rules + `
  validations: [{expression: "object.spec.containers.all(c, 'cpu' in c.resources.limits)"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limited}
spec:
  policyName: limited
  validationActions: [Audit]
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Allow}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: stray}
spec: {policyName: nothing, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: odd}
spec:
  paramKind: {apiVersion: acme.io/v1, kind: Limit}
  matchConstraints: {resourceRules: [{apiGroups: [acme.io], apiVersions: [v1], resources: [things], operations: [CREATE]}]}
  validations: [{expression: "true"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: odd}
spec:
  policyName: odd
  validationActions: [Deny]
  paramRef: {name: limits, parameterNotFoundAction: Allow}
`

func unmanagedNamed(t *testing.T, s report.Status, name string) report.NativeStatus {
	t.Helper()
	i := slices.IndexFunc(s.Unmanaged, func(n report.NativeStatus) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("%s is not listed in %+v", name, s.Unmanaged)
	}
	return s.Unmanaged[i]
}

// What others made is listed, with what is wrong with it; a false alarm of the type
// checker is told from a warning.
func TestUnmanaged(t *testing.T) {
	apply(t, byHand)
	s := await(t, "the type checker has warned", func(s report.Status) bool {
		return slices.ContainsFunc(s.Unmanaged, func(n report.NativeStatus) bool { return len(n.Warnings) > 0 })
	})
	for name, want := range map[string]string{"loose": "Unbound", "limited": "ParamsNotFound", "nothing": "PolicyMissing", "odd": "ParamKindUnserved"} {
		n := unmanagedNamed(t, s, name)
		if len(n.Problems) != 1 || n.Problems[0].Reason != want {
			t.Errorf("%s: got %+v, want %s", name, n.Problems, want)
		}
	}
	if w := unmanagedNamed(t, s, "limited").Warnings; len(w) != 1 || !w[0].Known || !strings.Contains(w[0].Warning, "undefined field 'limits'") {
		t.Errorf("got %+v, want a known false alarm", w)
	}
	if s, _ := status(t, "-l", "team=a"); len(s.Unmanaged) != 1 {
		t.Errorf("-l team=a shows %+v", s.Unmanaged)
	}
	apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: default}}")
	s, _ = status(t, "limited")
	if n := unmanagedNamed(t, s, "limited"); len(n.Problems) > 0 || !slices.Equal(n.Bindings[0].Params, []string{"ConfigMap default/limits"}) {
		t.Errorf("got %+v", n)
	}
}

// The JSON form is an interface: these keys are there whatever there is to say.
func TestJSONKeys(t *testing.T) {
	apply(t, convert(t, "scale.yaml", typo))
	apply(t, byHand)
	stdout, _, _ := execute(t, "status", "-o", "json")
	var s struct {
		Policies  []map[string]any
		Unmanaged []map[string]any
	}
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Policies) != 1 || len(s.Unmanaged) != 4 {
		t.Fatalf("got %s", stdout)
	}
	lists := func(o map[string]any, keys ...string) {
		t.Helper()
		for _, k := range keys {
			if _, ok := o[k].([]any); !ok {
				t.Errorf("%s is %v", k, o[k])
			}
		}
	}
	lists(s.Policies[0], "conditions", "rules")
	lists(s.Policies[0]["rules"].([]any)[0].(map[string]any), "codes", "objects", "warnings", "bindings")
	lists(s.Unmanaged[0], "bindings", "problems", "warnings")
}

// A policy that is well is ready, and the status is clean.
func TestReady(t *testing.T) {
	good := strings.Replace(typo, "object.replicas", "object.spec.replicas", 1)
	apply(t, convert(t, "scale.yaml", good, "--action", "Audit"))
	s := await(t, "the policy is ready", ready("scale", "True"))
	if a := policyNamed(t, s, "scale").Rules[0].Action; a != "Audit" {
		t.Errorf("the action is %q", a)
	}
	if stdout, stderr, code := execute(t, "status", "-o", "wide"); code != 0 || !strings.Contains(stdout, "several") {
		t.Errorf("kvap status ends with %d\n%s%s", code, stdout, stderr)
	}
}

// A watch shows what is there, and then what changes.
func TestWatch(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), kvap, "status", "--watch", "-o", "name")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig(controlplane.Admin))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	apply(t, "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: first}\nspec:\n  matchConstraints: "+
		rules+"\n  validations: [{expression: \"true\"}]\n")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan byte, 1<<16)
	go func() {
		data := make([]byte, 1)
		for {
			if _, err := io.ReadFull(out, data); err != nil {
				close(seen)
				return
			}
			seen <- data[0]
		}
	}()
	expect(t, seen, "/first\n")
	apply(t, "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: second}\nspec:\n  matchConstraints: "+
		rules+"\n  validations: [{expression: \"true\"}]\n")
	expect(t, seen, "/second\n")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for range seen {
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an interrupted watch: %v", err)
	}
}

func expect(t *testing.T, seen <-chan byte, want string) {
	t.Helper()
	deadline := time.After(time.Minute)
	var got strings.Builder
	for !strings.Contains(got.String(), want) {
		select {
		case b, ok := <-seen:
			if !ok {
				t.Fatalf("the watch has ended after %q", got.String())
			}
			got.WriteByte(b)
		case <-deadline:
			t.Fatalf("not in time: %q in %q", want, got.String())
		}
	}
}

// A cluster that does not answer is an error of the surroundings, with a next step.
func TestNoCluster(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), kvap, "status")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	if text, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(text), "--kubeconfig") {
		t.Errorf("without a configuration: %v\n%s", err, text)
	}
	if _, stderr, code := execute(t, "status", "--context", "nowhere"); code != 2 {
		t.Errorf("with a context that does not exist: %d\n%s", code, stderr)
	}
}

// Who may not read the objects is told so: that is not a cluster without policies.
func TestForbidden(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), kvap, "status", "--kubeconfig", plane.Kubeconfig(controlplane.Plain))
	if text, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 4 || !strings.Contains(string(text), "forbidden") ||
		!strings.Contains(string(text), "no policy that you may read") {
		t.Errorf("as a plain user: %v\n%s", err, text)
	}
	if _, stderr, code := execute(t, "status", "--as", "somebody", "--as-group", "system:authenticated"); code != 4 || !strings.Contains(stderr, `User "somebody" cannot list`) {
		t.Errorf("as somebody else: %d\n%s", code, stderr)
	}
}
