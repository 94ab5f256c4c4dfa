package migrate

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// Only apiVersion changes, however it is written, and the rest of the file stays byte
// for byte.
func TestAdoptFile(t *testing.T) {
	rest := `
kind: ClusterPolicy # ours
metadata: {name: p}
spec:
    rules:   # spacing stays
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {pattern: {spec: {x: 1}}}
`
	exception := "\n---\napiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e}\nspec: {exceptions: [{policyName: p, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod]}}]}}\n"
	for _, version := range []string{"kyverno.io/v1", `"kyverno.io/v1"`, "'kyverno.io/v2beta1'"} {
		text := "# a comment\napiVersion: " + version + rest + "---\napiVersion:   " + version + strings.ReplaceAll(rest, "name: p", "name: q") + exception
		got, err := AdoptFile("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.Trim(version, `"'`)
		if want := strings.ReplaceAll(text, plain, "kvap.dev/v1alpha1"); string(got.Data) != want || len(got.Policies) != 2 {
			t.Errorf("%d policies, and the file is\n%s", len(got.Policies), got.Data)
		}
	}
	if got, err := AdoptFile("p.yaml", []byte("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {a: b}}}]}}")); err != nil || !strings.HasPrefix(string(got.Data), "{apiVersion: kvap.dev/v1alpha1, kind") {
		t.Errorf("%v\n%s", err, got.Data)
	}
	if _, err := AdoptFile("p.yaml", []byte("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rulez: []}\n")); err == nil {
		t.Error("a file that cannot be read was changed")
	}
}

// What was adopted says to kvap what the policy said before.
func TestAdoptedMeansTheSame(t *testing.T) {
	got, err := AdoptFile("p.yaml", []byte(twoRules))
	if err != nil {
		t.Fatal(err)
	}
	if f, found := policy.Parse("p.yaml", got.Data); len(f.Policies) != 1 {
		t.Errorf("kvap does not read it: %v", found)
	}
}
