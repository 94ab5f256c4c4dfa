//go:build e2e

package migrate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
	"github.com/kvap/kvap/test/standin"
)

// A repository has the policies when the cluster is upgraded to Kyverno 1.20. What writes
// them as Argo CD and Flux do (server-side apply, under their names), and Helm, is denied
// from then on; with the two steps in the kustomization it passes, in the order of the
// waves, and kvap enforces what the policies say.
func TestClosedRepository(t *testing.T) {
	c := shared
	const text = labelledPolicy + "---" + foregroundPolicy
	for tool, manager := range map[string]string{"Argo CD": "argocd-controller", "Flux": "kustomize-controller", "Helm": ""} {
		t.Run(tool, func(t *testing.T) {
			r := &repository{cluster: c, dir: t.TempDir(), manager: manager}
			t.Cleanup(func() {
				testcluster.Soon(t, "nobody judges any more", func() bool { return c.judged(context.Background(), probe(t, "labelled", false)) == nil })
			})
			r.write(t, "base/policies.yaml", strings.TrimSpace(text))
			r.write(t, "base/kustomization.yaml", "resources: [policies.yaml]\n")
			r.write(t, "chart/Chart.yaml", "apiVersion: v2\nname: policies\nversion: 0.1.0\n")
			r.write(t, "chart/templates/policies.yaml", strings.TrimSpace(text))
			c.control(t)
			if out, err := r.sync(t, nil); err != nil {
				t.Fatalf("%s: %v", out, err)
			}
			c.close(t, false)
			s := c.lasting(t)
			out, err := r.sync(t, nil)
			if err == nil || !strings.Contains(out, standin.GuardName) {
				t.Errorf("what is there is applied again, and that passes: %v\n%s", err, out)
			}
			c.migrate(t, 0, "enforce", "-f", filepath.Join(r.dir, "base", "policies.yaml"), "--accept", "a test", "--output-dir", filepath.Join(r.dir, "steps"))
			if out, err := r.sync(t, []string{"enforce-1-native", "enforce-2-kyverno-off"}); err != nil {
				t.Fatalf("the switch is denied: %v\n%s", err, out)
			}
			for _, name := range []string{"labelled", "foreground"} {
				testcluster.Soon(t, "kvap enforces "+name, func() bool { return c.judged(t.Context(), probe(t, name, false)) != nil })
				if c.policyOf(t, "kyverno.io/v1", name) != nil || c.policyOf(t, "kvap.dev/v1alpha1", name) == nil {
					t.Errorf("%s is not where it should be", name)
				}
			}
			if out, err := r.sync(t, []string{"enforce-1-native", "enforce-2-kyverno-off"}); err != nil {
				t.Errorf("it is denied once more: %v\n%s", err, out)
			}
			s.stop()
			s.check(t, tool)
		})
	}
}

// A repository is what a GitOps controller brings a cluster to.
type repository struct {
	*cluster
	dir     string
	manager string // under whose name fields are written; "" for Helm
}

func (r *repository) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sync brings the cluster to what the kustomization says with some steps in it: it applies
// wave after wave, and then prunes. Helm has what is rendered as its chart.
func (r *repository) sync(t *testing.T, steps []string) (string, error) {
	t.Helper()
	rendered := render(t, r.dir, steps)
	names := make([]string, 0, len(rendered))
	for name := range rendered {
		names = append(names, name)
	}
	wave := func(name string) string { return rendered[name].GetAnnotations()["argocd.argoproj.io/sync-wave"] }
	slices.SortFunc(names, func(a, b string) int { // those without come last: -1, -2 and nothing
		return strings.Compare(wave(b), wave(a))*10 + strings.Compare(a, b)
	})
	var all strings.Builder
	for _, name := range names {
		data, err := rendered[name].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString("---\n" + string(data) + "\n")
	}
	if r.manager == "" {
		r.write(t, "chart/templates/policies.yaml", all.String())
		return r.run("go", "tool", "-modfile=../../../tools/helm.mod", "helm", "upgrade", "--install", "policies", filepath.Join(r.dir, "chart"), "--namespace", "default")
	}
	r.write(t, "all.yaml", all.String())
	if out, err := r.run("kubectl", "apply", "--server-side", "--field-manager="+r.manager, "--force-conflicts", "-f", filepath.Join(r.dir, "all.yaml")); err != nil {
		return out, err
	}
	for _, apiVersion := range []string{"kyverno.io/v1", "kvap.dev/v1alpha1"} {
		for name := range kinds() {
			if o := r.policyOf(t, apiVersion, name); o != nil && rendered[apiVersion+" "+name] == nil {
				if err := r.Delete(t.Context(), o); err != nil {
					return "", err
				}
			}
		}
	}
	return "", nil
}

func (r *repository) run(name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+r.Plane.Kubeconfig(controlplane.Admin),
		"HELM_CACHE_HOME="+r.dir+"/helm", "HELM_CONFIG_HOME="+r.dir+"/helm", "HELM_DATA_HOME="+r.dir+"/helm")
	out, err := command.CombinedOutput()
	return string(out), err
}
