//go:build e2e

package migrate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/test/controlplane"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// An API server names the rules of one native policy, though several deny. Those that match
// alike share one, and eval lists all, also what kvap's webhook and native policies of others
// say.
func TestEvalOfCluster(t *testing.T) {
	c := shared
	t.Cleanup(func() { // the API server forgets later than the objects go
		testcluster.Soon(t, "nobody judges any more", func() bool { return c.judged(context.Background(), probe(t, "labelled", false)) == nil })
	})
	rule := func(name, match, key string) string {
		return `
apiVersion: kvap.dev/v1alpha1
kind: ClusterPolicy
metadata: {name: ` + name + `}
spec:
  validationFailureAction: Enforce
  rules:
  - name: ` + name + `
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop]` + match + `}}]}
    validate: {message: no ` + key + `, pattern: {metadata: {labels: {` + key + `: "?*"}}}}
`
	}
	c.apply(t, strings.TrimSpace(rule("teams", "", "team")+"---"+rule("owners", "", "owner")+"---"+rule("costs", `, selector: {matchLabels: {tier: web}}, operations: [CREATE]`, "cost")))
	c.control(t)
	bad := probe(t, "labelled", false)
	bad.SetLabels(map[string]string{"tier": "web"})
	testcluster.Soon(t, "all deny", func() bool {
		err := c.judged(t.Context(), bad)
		return err != nil && strings.Contains(err.Error(), "teams/teams") && strings.Contains(err.Error(), "owners/owners") || err != nil && strings.Contains(err.Error(), "costs")
	})
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, namespace: shop, labels: {tier: web}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eval := func(code int, args ...string) string {
		command := exec.Command(c.Kvap, append([]string{"eval"}, args...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+c.Plane.Kubeconfig(controlplane.Admin))
		out, _ := command.CombinedOutput()
		if got := command.ProcessState.ExitCode(); got != code {
			t.Errorf("kvap eval %s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
		}
		return string(out)
	}
	for _, args := range [][]string{{"-f", file, "-q"}, {"--resource", file, "-q"}} {
		out := eval(0, args...)
		for _, want := range []string{"no team", "no owner", "no cost"} {
			if !strings.Contains(out, want) {
				t.Errorf("%v does not list %q:\n%s", args, want, out)
			}
		}
	}
	eval(1, "-f", file, "--fail-on", "deny")
}
