package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cmd/kvap/internal/acceptance"
	"github.com/kvap/kvap/tools/snippets"
)

// recipe is the block of docs/ci.md below a heading.
func recipe(t *testing.T, heading, language string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	text := snippets.Under(string(page), heading, language)
	if text == "" {
		t.Fatalf("docs/ci.md has no block %s below %q", language, heading)
	}
	return text
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// The steps of the workflow give the action inputs that it has, and it does what they say.
func TestRecipeAction(t *testing.T) {
	var steps []struct {
		Uses string
		With map[string]string
	}
	decode(t, recipe(t, "GitHub Action", "yaml"), &steps)
	data, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Default string }
		Runs   struct {
			Steps []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal(data, &action); err != nil {
		t.Fatal(err)
	}
	dir, env := workplace(t)
	if err := os.Mkdir(filepath.Join(dir, "policies"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policies", "typo.yaml"), []byte(typo), 0o600); err != nil {
		t.Fatal(err)
	}
	with := steps[1].With
	for input := range with {
		if _, ok := action.Inputs[input]; !ok {
			t.Errorf("action.yml has no input %s", input)
		}
	}
	env = append(env, "KVAP_COMMAND="+with["command"], "KVAP_PATHS="+with["paths"], "KVAP_ARGS="+with["args"])
	last := action.Runs.Steps[len(action.Runs.Steps)-1]
	if out, code := sh(t, dir, env, last.Run); code != 1 || !strings.Contains(out, "::error file=policies/typo.yaml,line=9") {
		t.Errorf("%s: %d\n%s", last.Name, code, out)
	}
}

// The hook of the configuration is one that the repository has.
func TestRecipePreCommit(t *testing.T) {
	var config struct {
		Repos []struct {
			Repo, Rev string
			Hooks     []struct{ ID string }
		}
	}
	decode(t, recipe(t, "pre-commit", "yaml"), &config)
	hooks, err := os.ReadFile("../../.pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if id := config.Repos[0].Hooks[0].ID; !strings.Contains(string(hooks), "- id: "+id+"\n") {
		t.Errorf("there is no hook %s", id)
	}
}

// The script passes where all is committed, and fails where a policy was changed since.
func TestRecipeScript(t *testing.T) {
	script := recipe(t, "Any other CI", "sh")
	dir, env := workplace(t)
	env = append(env, "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, code := sh(t, dir, env, `mkdir policies tests
mv policy.yaml policies/
cat > tests/kyverno-test.yaml <<'END'
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: owners}
policies: [../policies/policy.yaml]
resources: [settings.yaml]
results: [{policy: owners, rule: owner, kind: ConfigMap, resources: [settings], result: fail}]
END
cat > tests/settings.yaml <<'END'
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
END
kvap convert policies/ -o native
git init -q . && git add native`); code != 0 {
		t.Fatalf("%d\n%s", code, out)
	}
	if out, code := sh(t, dir, env, script); code != 0 {
		t.Errorf("%d\n%s", code, out)
	}
	if out, code := sh(t, dir, env, "sed -i.was s/owner:/owners:/ policies/policy.yaml && rm -f policies/*.was\n"+script); code == 0 {
		t.Errorf("a policy that was changed passes:\n%s", out)
	}
}

// The image is that of helm test, and its arguments are the program's.
func TestRecipeImage(t *testing.T) {
	var values struct{ TestImage struct{ Repository string } }
	var chart struct{ AppVersion string }
	for file, into := range map[string]any{"values.yaml": &values, "Chart.yaml": &chart} {
		data, err := os.ReadFile(filepath.Join("../../deploy/chart", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(data, into); err != nil {
			t.Fatal(err)
		}
	}
	before, args, ok := strings.Cut(recipe(t, "Container image", "sh"), values.TestImage.Repository+":"+chart.AppVersion+" ")
	if !ok || !strings.HasPrefix(before, "docker run ") {
		t.Fatalf("docs/ci.md does not run %s:%s", values.TestImage.Repository, chart.AppVersion)
	}
	dir, env := workplace(t)
	if out, code := sh(t, dir, env, "mkdir policies && cp good.yaml policies && kvap "+args); code != 0 {
		t.Errorf("%d\n%s", code, out)
	}
}

// The configuration is one that check takes.
func TestRecipeConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), acceptance.ConfigurationFile)
	if err := os.WriteFile(file, []byte(recipe(t, "What is accepted", "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	f, cmd := checkFlags{config: file}, newCheck()
	config, err := f.configure(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Paths) == 0 || len(config.Accepted()) == 0 || !cmd.Flags().Changed("fail-on") {
		t.Errorf("it says %+v", config)
	}
}

// The schema that the editor is told of is in the repository, and is that of the example's kind.
func TestRecipeEditor(t *testing.T) {
	text := recipe(t, "Editor", "yaml")
	m := regexp.MustCompile(`^# yaml-language-server: \$schema=https://raw\.githubusercontent\.com/kvap/kvap/v[0-9.]+/(\S+)\n`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no schema is named:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil {
		t.Error(err)
	}
	var example struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal([]byte(text), &example); err != nil {
		t.Fatal(err)
	}
	_, version, _ := strings.Cut(example.APIVersion, "/")
	if want := strings.ToLower(example.Kind) + "_" + version + ".json"; filepath.Base(m[1]) != want {
		t.Errorf("%s is not the schema %s", m[1], want)
	}
}

// All recipes are of the release that the chart installs.
func TestRecipesAreOfOneRelease(t *testing.T) {
	data, err := os.ReadFile("../../deploy/chart/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"docs/ci.md", "deploy/chart/Chart.yaml"} {
		page, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:kvap@v|rev: v|kvap/kvap:|kvap/kvap/v)(\d+\.\d+\.\d+)`).FindAllStringSubmatch(string(page), -1) {
			if m[1] != chart.AppVersion || chart.Version != chart.AppVersion {
				t.Errorf("%s names the release %s, the chart %s", file, m[1], chart.AppVersion)
			}
		}
	}
}
