//go:build e2e

package migrate

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// chartPolicy is what a chart renders.
const chartPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: require-team}
spec:
  validationFailureAction: Enforce
  rules:
  - name: team
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`

// The post-renderer that the guide shows to teams with Helm makes of a chart's policies
// what the steps say, with the kustomization that stands beside it there.
func TestPostRenderer(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/migration.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shown := func(file, begins string, mode os.FileMode) {
		text := regexp.MustCompile("(?s)```\n(" + regexp.QuoteMeta(begins) + ".*?)```").FindSubmatch(guide)
		if text == nil {
			t.Fatalf("the guide shows no %s", file)
		}
		if err := os.WriteFile(filepath.Join(dir, file), text[1], mode); err != nil {
			t.Fatal(err)
		}
	}
	shown("render.sh", "#!/bin/sh\n", 0o755)
	shown("kustomization.yaml", "resources: [all.yaml]\n", 0o644)
	policies := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(policies, []byte(chartPolicy), 0o644); err != nil {
		t.Fatal(err)
	}
	shared.migrate(t, 0, "enforce", "-f", policies, "--accept", "a test", "--output-dir", filepath.Join(dir, "migration"))
	render := exec.Command(filepath.Join(dir, "render.sh"))
	render.Stdin = strings.NewReader(chartPolicy)
	out, err := render.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kvap.dev/mode: enforce", "apiVersion: kvap.dev/v1alpha1", `argocd.argoproj.io/sync-wave: "-1"`, "message: no team"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in what is rendered:\n%s", want, out)
		}
	}
}
