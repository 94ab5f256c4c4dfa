//go:build e2e

package webhook

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// run runs kvap as the administrator, and gives what it prints and its exit code.
func (c *cluster) run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.Kvap, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(controlplane.Admin))
	text, _ := cmd.Output() // the exit code tells
	return string(text), cmd.ProcessState.ExitCode()
}

// told is what kvap status says of a policy in JSON.
func (c *cluster) told(t *testing.T, name string) (report.PolicyStatus, int) {
	t.Helper()
	out, code := c.run(t, "status", name, "-o", "json")
	var s report.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil || len(s.Policies) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	return s.Policies[0], code
}

// useless has three policies that can do nothing but refuse what they match.
const useless = `apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: lacks}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret], names: ["lacks-*"]}}]}
    context:
    - {name: all, apiCall: {urlPath: /api/v1/namespaces}}
    - {name: limits, configMap: {name: ready-limits, namespace: default}}
    validate: {failureAction: Enforce, message: m, deny: {conditions: {all: [{key: "{{ limits.data.most }}", operator: Equals, value: "{{ length(all.items) }}"}]}}}
---
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: unsigned}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], names: ["unsigned-*"]}}]}
    verifyImages:
    - imageReferences: ["ghcr.io/acme/*"]
      failureAction: Enforce
      attestors: [{entries: [{keyless: {issuer: "https://a.b", subject: "c@d.e"}}]}]
---
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: errs}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Secret], names: ["errs-*"]}}]}
    context:
    - {name: one, apiCall: {urlPath: /api/v1/namespaces/nowhere}}
    validate: {failureAction: Enforce, message: m, deny: {conditions: {all: [{key: "{{ one.metadata.name }}", operator: Equals, value: x}]}}}`

// Ready is what a user would call ready: a policy whose rule refuses all that it matches, for
// want of what it looks up, is not, and says why, in each form and by the exit code. It is once
// that has come.
func TestReadyIsWhatJudges(t *testing.T) {
	c := shared
	c.start(t, "")
	c.Apply(t, useless)
	secret := func(name string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: default}"
	}
	testcluster.Soon(t, "the rule that errs is asked", func() bool {
		_, err := c.try(t.Context(), t, secret("errs-a"))
		return err != nil
	})
	for _, name := range []string{"errs-b", "errs-c", "errs-d"} {
		if _, err := c.try(t.Context(), t, secret(name)); err == nil {
			t.Errorf("%s is admitted", name)
		}
	}
	for name, want := range map[string]struct{ reason, next string }{
		"lacks":    {"Missing", "default/ready-limits"},
		"unsigned": {"RegistryNotAllowed", "--image-registries"},
		"errs":     {"RuleErrs", "kvap eval shows why"},
	} {
		testcluster.Soon(t, name+" says "+want.reason, func() bool { return c.says(t, name, want.reason) })
		if said := c.message(t, name, "Ready"); !strings.Contains(said, want.next) {
			t.Errorf("%s: no %s in %s", name, want.next, said)
		}
		if p, code := c.told(t, name); code != 1 || p.Condition("Ready") != "False" || p.Conditions[0].Reason != want.reason {
			t.Errorf("%s: exit code %d, %+v", name, code, p.Conditions)
		}
		for _, form := range []string{"table", "wide", "yaml"} {
			out, code := c.run(t, "status", name, "-o", form)
			if code != 1 || !strings.Contains(strings.Join(strings.Fields(out), " "), want.next) {
				t.Errorf("%s -o %s: exit code %d\n%s", name, form, code, out)
			}
		}
	}
	c.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: ready-limits, namespace: default}, data: {most: none}}")
	testcluster.Soon(t, "the policy is ready once the ConfigMap is there", func() bool { return c.says(t, "lacks", "Ready") })
	if p, code := c.told(t, "lacks"); code != 0 {
		t.Errorf("exit code %d, %+v", code, p.Conditions)
	}
}
