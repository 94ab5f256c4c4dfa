package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const typo = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: typo}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  validations:
    - expression: object.spec.hostNet == false
`

const policyText = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  rules:
    - name: owner
      match: {any: [{resources: {kinds: [ConfigMap]}}]}
      validate: {message: A ConfigMap names its owner., pattern: {metadata: {annotations: {owner: "?*"}}}}
`

// workplace is a folder with policies, and an environment in which kvap is in PATH.
func workplace(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	self, err := os.Executable() // which is kvap where it is called so: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin", "kvap")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"typo.yaml": typo, "good.yaml": strings.ReplaceAll(typo, "hostNet ", "hostNetwork "), "other.yaml": "a: b\n", "policy.yaml": policyText} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// sh runs a script as GitHub's runner does, and gives its output and exit code.
func sh(t *testing.T, dir string, env []string, script string) (string, int) {
	t.Helper()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = dir, env
	text, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err == nil:
		return string(text), 0
	case errors.As(err, &failed):
		return string(text), failed.ExitCode()
	}
	t.Fatal(err)
	return "", 0
}

// The commands of the composite action do what its inputs say.
func TestAction(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Description, Default string }
		Runs   struct {
			Using string
			Steps []struct {
				Name, Run, Shell string
				Env              map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	if action.Runs.Using != "composite" || len(action.Runs.Steps) != 3 {
		t.Fatalf("%+v", action)
	}
	steps := map[string]string{}
	for _, s := range action.Runs.Steps {
		steps[s.Name] = s.Run
		for name, value := range s.Env {
			input := strings.TrimSuffix(strings.TrimPrefix(value, "${{ inputs."), " }}")
			if _, ok := action.Inputs[input]; !ok {
				t.Errorf("%s is of %s, and there is no such input", name, value)
			}
		}
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") { // what others write must not be a script
			t.Errorf("the step %s runs %s", s.Name, s.Run)
		}
	}
	dir, env := workplace(t)
	run := func(step string, vars ...string) (string, int) { return sh(t, dir, append(env, vars...), steps[step]) }
	if out, code := run("Run kvap", "KVAP_COMMAND=check", "KVAP_PATHS=.", "KVAP_ARGS="); code != 1 || !strings.Contains(out, "::error file=typo.yaml,line=9") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := run("Run kvap", "KVAP_COMMAND=check", "KVAP_PATHS=good.yaml other.yaml", "KVAP_ARGS=--kubernetes-version 1.36"); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if out, code := run("Run kvap", "KVAP_COMMAND=check; true", "KVAP_PATHS=.", "KVAP_ARGS="); code != 2 {
		t.Errorf("%d %s", code, out)
	}
	if out, code := run("Write SARIF", "KVAP_PATHS=.", "KVAP_ARGS=", "KVAP_SARIF=out.sarif"); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if sarif, err := os.ReadFile(filepath.Join(dir, "out.sarif")); err != nil || !strings.Contains(string(sarif), "KV405") {
		t.Errorf("%v %s", err, sarif)
	}
}

// The hooks run, and pass and fail where they should.
func TestHooks(t *testing.T) {
	text, err := os.ReadFile("../../.pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct{ ID, Name, Description, Entry, Language string }
	if err := yaml.Unmarshal(text, &hooks); err != nil || len(hooks) != 3 {
		t.Fatal(hooks, err)
	}
	entries := map[string]string{}
	for _, h := range hooks {
		entries[h.ID] = h.Entry
		if h.Language != "golang" || !strings.HasPrefix(h.Entry, "kvap ") {
			t.Errorf("%+v", h)
		}
	}
	dir, env := workplace(t)
	for _, c := range []struct {
		hook, files string
		code        int
	}{
		{"kvap-check", "good.yaml other.yaml", 0},
		{"kvap-check", "other.yaml", 0},
		{"kvap-check", "typo.yaml", 1},
		{"kvap-convert", "policy.yaml", 0},
		{"kvap-test", "missing/kyverno-test.yaml", 2},
	} {
		if out, code := sh(t, dir, env, entries[c.hook]+" "+c.files); code != c.code {
			t.Errorf("%s %s: %d\n%s", c.hook, c.files, code, out)
		}
	}
}
