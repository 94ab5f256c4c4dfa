//go:build e2e

package migrate

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// render is what kustomize makes of the policies with components, by kind and name.
func render(t *testing.T, dir string, components []string) map[string]*unstructured.Unstructured {
	t.Helper()
	list := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\ncomponents:\n"
	for _, c := range components {
		list += "- ../steps/" + c + "\n"
	}
	at := filepath.Join(dir, "at")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "kustomization.yaml"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := exec.Command("kubectl", "kustomize", at)
	command.Stderr = &stderr
	text, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl kustomize: %v\n%s", err, stderr.String())
	}
	out := map[string]*unstructured.Unstructured{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		out[o.GetAPIVersion()+" "+o.GetName()] = o
	}
	return out
}

// bring makes the policies of the cluster what was rendered, as a GitOps controller does.
func (c *cluster) bring(t *testing.T, want map[string]*unstructured.Unstructured) {
	t.Helper()
	for _, o := range want {
		testcluster.Soon(t, "a change", func() bool {
			have := o.DeepCopy()
			err := c.Get(t.Context(), client.ObjectKeyFromObject(o), have)
			if apierrors.IsNotFound(err) {
				err = c.Create(t.Context(), o.DeepCopy())
			} else if err == nil {
				changed := o.DeepCopy()
				changed.SetResourceVersion(have.GetResourceVersion())
				err = c.Update(t.Context(), changed)
			}
			if err != nil && !apierrors.IsConflict(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	for _, apiVersion := range []string{"kyverno.io/v1", "kvap.dev/v1alpha1"} {
		for name := range kinds() {
			if o := c.policyOf(t, apiVersion, name); o != nil && want[apiVersion+" "+name] == nil {
				if err := c.Delete(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// state is what policies say, by kind and name, without the days of their histories.
func (c *cluster) state(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, apiVersion := range []string{"kyverno.io/v1", "kvap.dev/v1alpha1"} {
		for name := range kinds() {
			o := c.policyOf(t, apiVersion, name)
			if o == nil {
				continue
			}
			annotations := o.GetAnnotations()
			maps.DeleteFunc(annotations, func(key, value string) bool { // files alone say in which order Argo CD makes them, and have no record of a shadow
				return key == "kvap.dev/history" || strings.HasPrefix(key, "argocd.argoproj.io/sync-") || key == v1alpha1.ModeKey && value == v1alpha1.ModeShadow
			})
			if len(annotations) == 0 {
				annotations = nil
			}
			text, err := yaml.Marshal(map[string]any{"annotations": annotations, "spec": o.Object["spec"]})
			if err != nil {
				t.Fatal(err)
			}
			out[apiVersion+" "+name] = string(text)
		}
	}
	return out
}

// What the verbs write for a repository is rendered by kustomize, and applied in order
// leads to what the verbs themselves lead to; and nothing is changed by writing it.
func TestOutputDir(t *testing.T) {
	c := shared
	c.startKyverno(t)
	c.apply(t, strings.TrimSpace(policies))
	before := c.state(t)
	c.control(t)
	dir := t.TempDir()
	base := filepath.Join(dir, "base")
	if err := os.MkdirAll(base, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"policies.yaml": strings.TrimSpace(policies), "kustomization.yaml": "resources: [policies.yaml]\n"} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	verbs := [][]string{
		{"shadow", "--all"}, {"enforce", "--all", "--accept", "a test"},
		{"adopt", "labelled", "asks", "foreground"}, {"rollback", "--all"},
	}
	steps := map[string][]string{}
	states := map[string]map[string]string{}
	for i, verb := range verbs {
		to := fmt.Sprintf("%d-%s", i, verb[0])
		was := c.state(t)
		c.migrate(t, 0, append(slices.Clone(verb), "--remainder-kind", "kyverno", "--output-dir", filepath.Join(dir, "steps", to))...)
		if diff := textdiff.Values(was, c.state(t)); diff != "" {
			t.Fatalf("%s: writing files changed the cluster:\n%s", to, diff)
		}
		c.migrate(t, 0, append(slices.Clone(verb), "--yes", "--settle", "2s")...)
		states[to] = c.state(t)
		parts, err := filepath.Glob(filepath.Join(dir, "steps", to, "[a-z]*-[0-9]-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts { // in the order of their numbers
			steps[to] = append(steps[to], to+"/"+filepath.Base(part))
		}
	}
	if diff := textdiff.Values(before, c.state(t)); diff != "" {
		t.Fatalf("rollback led elsewhere:\n%s", diff)
	}
	var components []string
	for _, to := range slices.Sorted(maps.Keys(steps)) {
		for _, step := range steps[to] {
			components = append(components, step)
			c.bring(t, render(t, dir, components))
		}
		if diff := textdiff.Values(states[to], c.state(t)); diff != "" {
			t.Errorf("%s: the verb leads to - and the files to +\n%s", to, diff)
		}
	}
	states["9-rollback"] = before
	c.offline(t, dir, states)
}

// offline does the same with what the verbs write where they are given nothing but the
// files of a repository.
func (c *cluster) offline(t *testing.T, dir string, states map[string]map[string]string) {
	t.Helper()
	var components []string
	for _, verb := range []string{"shadow", "enforce", "rollback"} {
		args := []string{verb, "--remainder-kind", "kyverno", "-f", filepath.Join(dir, "base", "policies.yaml"), "--output-dir", filepath.Join(dir, "steps", "offline")}
		if verb == "enforce" {
			args = append(args, "--accept", "a test")
		}
		c.migrate(t, 0, args...)
		parts, err := filepath.Glob(filepath.Join(dir, "steps", "offline", verb+"-[0-9]-*"))
		if err != nil || len(parts) == 0 {
			t.Fatalf("%s writes no steps: %v", verb, err)
		}
		for _, part := range parts {
			components = append(components, "offline/"+filepath.Base(part))
			c.bring(t, render(t, dir, components))
		}
		want := states[map[string]string{"shadow": "0-shadow", "enforce": "1-enforce", "rollback": "9-rollback"}[verb]]
		if diff := textdiff.Values(written(want), written(c.state(t))); diff != "" {
			t.Errorf("%s without a cluster: the verb leads to - and the files to +\n%s", verb, diff)
		}
	}
}

// written is a state without what Kyverno's definitions have as a default: a policy that
// was read from the cluster has it, and one of a file has not.
func written(state map[string]string) map[string]string {
	out := map[string]string{}
	for name, text := range state {
		lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
			return slices.Contains([]string{
				"admission: true", "background: true", "emitWarning: false", "skipBackgroundRequests: true", "allowExistingViolations: true",
			}, strings.TrimSpace(line))
		})
		out[name] = strings.Join(lines, "\n")
	}
	return out
}
