package infiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/infiles"
	"github.com/kvap/kvap/internal/exit"
	"github.com/kvap/kvap/internal/input"
)

const policies = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: owners
  labels: {team: a}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: "no owner", pattern: {metadata: {annotations: {owner: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: Policy
metadata:
  name: owners
  namespace: apps
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: "no owner", pattern: {metadata: {annotations: {owner: "?*"}}}}
`

func compiled(t *testing.T, text string) *convert.Compilation {
	t.Helper()
	choices, err := convert.DefaultFlags().Choices()
	if err != nil {
		t.Fatal(err)
	}
	return convert.Compile([]input.Source{{Name: "p.yaml", Below: "p.yaml", Data: []byte(text)}}, choices)
}

// TestChoice: a name that no policy has is an error, also beside one that some policy has,
// and a selector that is of no policy; a full name is of one policy alone.
func TestChoice(t *testing.T) {
	t.Parallel()
	done := compiled(t, policies)
	for _, tt := range []struct {
		choice infiles.Choice
		want   string // the policies, or the error
	}{
		{infiles.Choice{}, "owners apps/owners"},
		{infiles.Choice{Names: []string{"owners"}}, "owners apps/owners"},
		{infiles.Choice{Names: []string{"apps/owners"}}, "apps/owners"},
		{infiles.Choice{Names: []string{"owners"}, Selector: "team=a"}, "owners"},
		{infiles.Choice{Selector: "team!=a"}, "apps/owners"},
		{infiles.Choice{Names: []string{"owners", "owner"}}, "the files have no policy owner"},
		{infiles.Choice{Selector: "team=b"}, "no policy of the files has the labels team=b"},
		{infiles.Choice{Names: []string{"apps/owners"}, Selector: "team=a"}, "no policy of the files has the labels team=a"},
		{infiles.Choice{Selector: "team in"}, "-l team in: "},
	} {
		chosen, err := tt.choice.Of(done.Policies)
		var names []string
		for _, p := range chosen {
			names = append(names, p.FullName())
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
			if own := (*exit.Error)(nil); !errors.As(err, &own) || own.Code != exit.CodeUsage {
				t.Errorf("%+v: %v is no error of usage", tt.choice, err)
			}
		}
		if got != tt.want && (err == nil || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%+v: %q, want %q", tt.choice, got, tt.want)
		}
	}
}

// TestSameNameTwice: of two policies of one name the second would overwrite the first one's
// component, so that nothing is done for it, and it says why.
func TestSameNameTwice(t *testing.T) {
	t.Parallel()
	first, _, _ := strings.Cut(policies, "---\n")
	second := strings.Replace(first, "no owner", "no owner at all", 1)
	done := compiled(t, first)
	done.Policies = append(done.Policies, compiled(t, second).Policies...)
	out, components, err := infiles.Steps(done, migrate.Goal{Verb: migrate.Shadow, Unrecorded: true}, infiles.Choice{})
	if err != nil || len(out.Policies) != 2 || len(components) == 0 {
		t.Fatalf("%v: %+v, %d components", err, out.Policies, len(components))
	}
	if out.Policies[0].Left != "" || !strings.Contains(out.Policies[1].Left, "has this name already") || len(out.Policies[1].Moves) > 0 {
		t.Errorf("%+v", out.Policies)
	}
	seen := map[string]bool{}
	for _, c := range components {
		if seen[c.Part+"/"+c.Policy] {
			t.Errorf("%s/%s is made twice", c.Part, c.Policy)
		}
		seen[c.Part+"/"+c.Policy] = true
	}
}

// TestComponentsOfEarlierRuns: the list of a step keeps the policies of earlier runs, and has
// none twice.
func TestComponentsOfEarlierRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	component := func(policy string) migrate.Component {
		return migrate.Component{Part: "shadow", Policy: policy, Files: []migrate.File{{Name: "kustomization.yaml", Data: []byte("kind: Component\n")}}}
	}
	for _, policy := range []string{"b", "a", "b"} {
		if err := infiles.WriteComponents(dir, []migrate.Component{component(policy)}, false); err != nil {
			t.Fatal(err)
		}
	}
	list, err := os.ReadFile(filepath.Join(dir, "shadow", "kustomization.yaml"))
	if err != nil || !strings.Contains(string(list), "components:\n- a\n- b\n") || strings.Count(string(list), "- b") != 1 {
		t.Errorf("%v\n%s", err, list)
	}
	if _, err := os.Stat(filepath.Join(dir, "shadow", "a", "kustomization.yaml")); err != nil {
		t.Error(err)
	}
}

// TestAdoptChangesNothingElse: of a file the apiVersions of policies change, and no other byte:
// not its comments, not its line ends, not what is beside. Of a folder to write, a file
// without policies is not written.
func TestAdoptChangesNothingElse(t *testing.T) {
	t.Parallel()
	beside := "# keep me\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: kyverno.io/v1}\n---\n"
	for name, text := range map[string]string{
		"lf.yaml": beside + policies, "crlf.yaml": strings.ReplaceAll(beside+policies, "\n", "\r\n"),
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sources := []input.Source{{Name: file, Below: name, Data: []byte(text)}, {Name: filepath.Join(dir, "none.yaml"), Below: "none.yaml", Data: []byte(beside)}}
		want := strings.ReplaceAll(text, "apiVersion: kyverno.io/v1", "apiVersion: kvap.dev/v1alpha1")

		to := filepath.Join(dir, "out")
		adopted, err := infiles.Adopt(sources, to)
		if err == nil {
			err = adopted.Write(false)
		}
		got, _ := os.ReadFile(filepath.Join(to, name))
		if err != nil || string(got) != want || len(adopted.Handover.Policies) != 2 {
			t.Errorf("%s, to a folder: %v\n%q\nwant\n%q", name, err, got, want)
		}
		if _, err := os.Stat(filepath.Join(to, "none.yaml")); err == nil {
			t.Errorf("%s: a file without policies is written", name)
		}
		if now, _ := os.ReadFile(file); string(now) != text {
			t.Errorf("%s: the source has changed", name)
		}

		if adopted, err = infiles.Adopt(sources[:1], ""); err == nil {
			err = adopted.Write(false)
		}
		info, _ := os.Stat(file)
		if now, _ := os.ReadFile(file); err != nil || string(now) != want || info.Mode().Perm() != 0o600 {
			t.Errorf("%s, in place: %v, %v\n%q", name, err, info.Mode(), now)
		}
		again, err := infiles.Adopt([]input.Source{{Name: file, Data: []byte(want)}}, "")
		if err != nil || again.Already != 2 || len(again.Handover.Policies) > 0 {
			t.Errorf("%s, again: %v, %+v", name, err, again)
		}
	}
}
