package suite

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

func runner(t *testing.T) Runner {
	t.Helper()
	schemas, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return Runner{Schemas: schemas, Translate: translate.Options{Release: cel.Latest, Schemas: schemas}}
}

// folder writes files, and returns where the suite among them is.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "kyverno-test.yaml")
}

// ran are the rows of a suite in one text, without their messages.
func ran(t *testing.T, file string) string {
	t.Helper()
	suites, found := Read(file)
	if found.HasErrors() || len(suites) != 1 {
		t.Fatal(suites, found)
	}
	results, found := runner(t).Run(context.Background(), suites[0])
	if found.HasErrors() {
		t.Fatal(found)
	}
	var lines []string
	for _, r := range results.Rows {
		lines = append(lines, strings.Join([]string{r.Rule, r.Resource, r.Expected, string(r.Verdict), r.Reason}, " | "))
	}
	return strings.Join(lines, "\n")
}

const memberPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: not this one
      deny: {conditions: {any: [{key: "{{ request.object.data.x }}", operator: AnyIn, value: [admin]}]}}
`

const allowListPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: not on the list
      deny: {conditions: {any: [{key: "{{ request.object.data.x }}", operator: AnyNotIn, value: [admin]}]}}
`

// TestDeviation pins that a row on which kvap differs on purpose is no failure, and
// does not pass; nor is any other difference taken for one.
func TestDeviation(t *testing.T) {
	got := ran(t, folder(t, map[string]string{
		"policy.yaml": allowListPolicy,
		"resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: wild}, data: {x: "adm*"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {x: other}}
`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], results: [
  {policy: p, rule: r, kind: ConfigMap, resources: [wild], result: pass},
  {policy: p, rule: r, kind: ConfigMap, resources: [wild], result: fail},
  {policy: p, rule: r, kind: ConfigMap, resources: [plain], result: pass}]}`,
	}))
	want := `r | ConfigMap/wild | pass | deviates | Want pass, and the native policy says deny; kvap differs (deviation 9: Kyverno takes a text of the request that has a wildcard for a pattern in membership operators)
r | ConfigMap/wild | fail | pass | Ok
r | ConfigMap/plain | pass | fail | Want pass, got fail`
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSelection pins which resources a row is about.
func TestSelection(t *testing.T) {
	files := map[string]string{"policy.yaml": memberPolicy, "resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: admin}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {x: admin}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: b}, data: {x: admin}}
---
{apiVersion: v1, kind: Service, metadata: {name: a}}
`}
	for name, c := range map[string]struct{ row, want string }{
		"a name is in any namespace": {"resources: [a]", "ConfigMap/a ConfigMap/b/a"},
		"a name with its namespace":  {"resources: [b/a]", "ConfigMap/b/a"},
		"the namespace of the row":   {"resources: [a], namespace: b", "ConfigMap/b/a"},
		"one resource":               {"resource: c", "ConfigMap/b/c"},
		"in full":                    {"resourceSpecs: [{apiVersion: v1, kind: ConfigMap, name: c, namespace: b}]", "ConfigMap/b/c"},
		"all of the kind":            {"result: fail", "ConfigMap/a ConfigMap/b/a ConfigMap/b/c"},
		"the order is the row's":     {"resources: [c, b/a]", "ConfigMap/b/c ConfigMap/b/a"},
	} {
		t.Run(name, func(t *testing.T) {
			row := "policy: p, rule: r, kind: ConfigMap, result: fail, " + c.row
			row = strings.Replace(row, "result: fail, result: fail", "result: fail", 1)
			files["kyverno-test.yaml"] = "{policies: [policy.yaml], resources: [resources.yaml], results: [{" + row + "}]}"
			var got []string
			for line := range strings.Lines(ran(t, folder(t, files))) {
				got = append(got, strings.Split(line, " | ")[1])
			}
			if d := textdiff.Values(c.want, strings.Join(got, " ")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestPath(t *testing.T) {
	for name, want := range map[string][]string{
		"a": {"a"}, "a.b.c": {"a", "b", "c"}, `a."b.c".d`: {"a", "b.c", "d"}, "": {""}, "a.": {"a", ""},
	} {
		if d := textdiff.Values(want, splitPath(name)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestPut pins that values are put into copies: resources share them.
func TestPut(t *testing.T) {
	inner := map[string]any{"b": 1}
	m := map[string]any{"a": inner}
	got := put(put(m, []string{"a", "c"}, 2), []string{"x", "y"}, 3)
	want := map[string]any{"a": map[string]any{"b": 1, "c": 2}, "x": map[string]any{"y": 3}}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if len(m) != 1 || len(inner) != 1 {
		t.Errorf("the map was changed: %v", m)
	}
}

// TestMock pins what mocked values make of the context of a rule.
func TestMock(t *testing.T) {
	const head = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: `
	for name, c := range map[string]struct {
		context          string
		values           map[string]any
		want, replaced   string
		objects, request int
	}{
		"nothing":          {`[{name: a, apiCall: {urlPath: /x}}]`, nil, "a:call", "", 0, 0},
		"a call":           {`[{name: a, apiCall: {urlPath: /x}}]`, map[string]any{"a": 1}, "a:variable", "a", 0, 0},
		"a variable wins":  {`[{name: a, variable: {value: 2}}]`, map[string]any{"a": 1}, "a:variable", "", 0, 0},
		"a ConfigMap":      {`[{name: a, configMap: {name: m}}]`, map[string]any{"a.data.k": "v"}, "a:map", "", 1, 0},
		"not its data":     {`[{name: a, configMap: {name: m}}]`, map[string]any{"a.data.k": 1}, "a:variable", "a", 0, 0},
		"no fixed name":    {`[{name: a, configMap: {name: "{{ x }}"}}]`, map[string]any{"a.data.k": "v"}, "a:variable", "a", 0, 0},
		"of no entry":      {`[]`, map[string]any{"spoken": 1, "unknown": 2}, "spoken:variable", "spoken", 0, 0},
		"of the request":   {`[]`, map[string]any{"request.operation": "UPDATE", "serviceAccountName": "x"}, "", "", 0, 2},
		"in front of them": {`[{name: b, variable: {value: 2}}]`, map[string]any{"spoken": 1}, "spoken:variable b:variable", "spoken", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, found := policy.Parse("p.yaml", []byte(head+c.context+`
    validate: {message: "{{ spoken }}", deny: {}}
`))
			if found.HasErrors() {
				t.Fatal(found)
			}
			v := &values{Policies: []policyValues{{Name: "p", Rules: []ruleValues{{Name: "r", Values: c.values}}}}}
			m, err := mock(f.Policies[0], v, "any")
			if err != nil {
				t.Fatal(err)
			}
			if d := textdiff.Values(c.want, entries(m.policy.Rules[0])); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if d := textdiff.Values(c.replaced, strings.Join(m.replaced["r"], " ")); d != "" {
				t.Errorf("replaced (-want +got):\n%s", d)
			}
			if len(m.objects) != c.objects || len(m.requests["r"]) != c.request {
				t.Errorf("objects %v, request %v", m.objects, m.requests)
			}
		})
	}
}

func entries(r *policy.Rule) string {
	var out []string
	for _, e := range r.Context {
		kind := map[bool]string{e.Variable != nil: "variable", e.ConfigMap != nil: "map", e.APICall != nil: "call"}[true]
		out = append(out, e.Name+":"+kind)
	}
	return strings.Join(out, " ")
}

// vacuous are the rows of the public policies that Kyverno passes without looking:
// the rule was renamed, and its test was not.
func vacuous() map[string]int {
	return map[string]int{"enforce-ambient-mode-namespace": 5, "add-ambient-mode-namespace": 4}
}

// TestCorpus runs the tests of the public policies, where they are at hand.
func TestCorpus(t *testing.T) {
	var files []string
	for _, part := range []string{"policies", "mutate", "generate"} {
		err := filepath.WalkDir(filepath.Join("../../../../../shared/corpus", part), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Name() == "kyverno-test.yaml" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Skip("no corpus beside the repository")
		}
	}
	r := runner(t)
	excluded, rows := map[string]int{}, 0
	for _, file := range files {
		suites, found := Read(file)
		for _, s := range suites {
			results, ds := r.Run(context.Background(), s)
			found = append(found, ds...)
			for _, row := range results.Rows {
				rows++
				switch {
				case row.Verdict == Excluded:
					excluded[row.Policy]++
				case row.Verdict == NotJudged:
					t.Errorf("%s: %s on %s is not judged: %s", row.Pos, row.Rule, row.Resource, row.Reason)
				case row.Verdict == Failed:
					t.Errorf("%s: %s on %s: %s: %s", row.Pos, row.Rule, row.Resource, row.Reason, row.Message)
				}
			}
		}
		if found.HasErrors() {
			t.Error(found)
		}
	}
	if !maps.Equal(vacuous(), excluded) {
		t.Errorf("vacuous rows: got %v, want %v", excluded, vacuous())
	}
	t.Logf("%d suites, %d rows; vacuous: %v", len(files), rows, slices.Collect(maps.Keys(excluded)))
}

const teamLabel = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: team}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate:
      message: a team is needed
      pattern: {metadata: {labels: {team: "?*"}}}
`

// madeFromTeam is a native policy that says it was made from the rule of teamLabel.
const madeFromTeam = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: deployed
  annotations:
    kvap.dev/source: team.yaml team/label
    kvap.dev/translation: '{"members":[{"policy":"team","rule":"label"}],"validations":[{"member":0}]}'
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: "has(object.metadata.labels)"}
`

// TestDeployed pins that native policies take the place of the translation of the
// policy that they were made from, and stand for it where it is not there.
func TestDeployed(t *testing.T) {
	files := map[string]string{
		"team.yaml": teamLabel, "deployed.yaml": madeFromTeam,
		"resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: other, labels: {owner: x}}}
`,
		"kyverno-test.yaml": `{policies: [team.yaml, deployed.yaml], resources: [resources.yaml], results: [
  {policy: team, rule: label, kind: ConfigMap, resources: [bare, other], result: fail}]}`,
	}
	want := `label | ConfigMap/bare | fail | pass | Ok
label | ConfigMap/other | fail | fail | Want fail, and the native policy says allow`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("beside its source (-want +got):\n%s", d)
	}
	files["kyverno-test.yaml"] = `{policies: [deployed.yaml], resources: [resources.yaml], results: [
  {policy: team, rule: label, kind: ConfigMap, resources: [bare, other], result: fail},
  {policy: team, rule: another, kind: ConfigMap, resources: [bare], result: fail},
  {policy: deployed, kind: ConfigMap, resources: [bare], isValidatingAdmissionPolicy: true, result: fail}]}`
	want = `label | ConfigMap/bare | fail | pass | Ok
label | ConfigMap/other | fail | fail | Want fail, got pass
another | ConfigMap/bare | fail | excluded | no policy looks at the resource
 | ConfigMap/bare | fail | pass | Ok`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("without its source (-want +got):\n%s", d)
	}
}

// TestNobody: a suite that names no user is judged as by Kyverno's command line, and natively as
// by an API server, whose requests all have one.
func TestNobody(t *testing.T) {
	got := ran(t, folder(t, map[string]string{
		"policy.yaml": strings.Replace(memberPolicy, "    validate:", "    exclude: {any: [{subjects: [{kind: User, name: root}, {kind: ServiceAccount, name: robot, namespace: ci}]}]}\n"+
			"    preconditions: {all: [{key: \"{{ request.userInfo.username || '' }}\", operator: NotEquals, value: admin}]}\n    validate:", 1),
		"asking.yaml": strings.NewReplacer("name: p", "name: asking", "    validate:",
			"    preconditions: {all: [{key: \"{{ request.userInfo.username }}\", operator: NotEquals, value: admin}]}\n    validate:").Replace(memberPolicy),
		"resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: bad}, data: {x: admin}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: good}, data: {x: other}}
`,
		"kyverno-test.yaml": `{policies: [policy.yaml, asking.yaml], resources: [resources.yaml], results: [
  {policy: p, rule: r, kind: ConfigMap, resources: [bad], result: fail},
  {policy: p, rule: r, kind: ConfigMap, resources: [good], result: pass},
  {policy: asking, rule: r, kind: ConfigMap, resources: [good], result: error}]}`,
	}))
	want := `r | ConfigMap/bad | fail | pass | Ok
r | ConfigMap/good | pass | pass | Ok
r | ConfigMap/good | error | pass | Ok (interpreter only: the rule reads who acts, and the request names nobody)`
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestNamespaceOfSuite: a Namespace that a suite gives is there as a whole. Of one that it does not
// give nothing but labels is known, and what reads more is not judged.
func TestNamespaceOfSuite(t *testing.T) {
	files := map[string]string{
		"policy.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "namespaceObject.metadata.?annotations[?'owner'].orValue('') == 'me'", message: nobody owns it}]
`,
		"resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: owned}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: unknown}}
`,
		"namespaces.yaml": "{apiVersion: v1, kind: Namespace, metadata: {name: owned, annotations: {owner: me}}}\n",
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], clusterResources: [namespaces.yaml], results: [
  {policy: p, kind: ConfigMap, resources: [a, b], result: pass}]}`,
	}
	want := ` | ConfigMap/owned/a | pass | pass | Ok
 | ConfigMap/unknown/b | pass | notjudged | the Namespace unknown, which the rule reads, was not given`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
