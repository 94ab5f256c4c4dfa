package planning_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/cmd/kvap/internal/convert"
	"github.com/kvap/kvap/cmd/kvap/internal/migrate/planning"
	"github.com/kvap/kvap/report"
)

const policies = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owners}
spec:
  validationFailureAction: Enforce
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {checked: "yes"}}}}]}
    validate: {message: "no owner", pattern: {metadata: {annotations: {owner: "?*"}}}}
`

func configMap(namespace, name, owner string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, annotations: {owner: %q}}\n", name, namespace, owner)
}

const namespaces = `---
apiVersion: v1
kind: Namespace
metadata: {name: apps, labels: {checked: "yes"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: others}
`

// planOf is the plan of the policies, with objects where they are given.
func planOf(t *testing.T, objects, params string) (*planning.Planning, report.Plan) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string) []string {
		if text == "" {
			return nil
		}
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{name}
	}
	choices, err := convert.DefaultFlags().Choices()
	if err != nil {
		t.Fatal(err)
	}
	p, err := planning.New(t.Context(), planning.Options{
		Files: file("policies.yaml", policies), Resources: file("objects.yaml", objects), Params: file("params.yaml", params),
		Choices: choices, Progress: func(string, ...any) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Compile()
	plan, err := p.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, plan
}

// violated is what a plan of one rule says of its violations; - where nothing is known.
func violated(plan report.Plan) string {
	v := plan.Policies[0].Rules[0].Violations
	if v == nil {
		return "-"
	}
	return fmt.Sprint(v.Count)
}

// TestNothingIsKnownWithoutObjects: no objects are no zero violations.
func TestNothingIsKnownWithoutObjects(t *testing.T) {
	t.Parallel()
	_, plan := planOf(t, "", "")
	if plan.Looked != nil || violated(plan) != "-" {
		t.Errorf("looked at %+v, violated %s", plan.Looked, violated(plan))
	}
}

// TestNamespacesSelect: a rule that selects by the labels of namespaces has those that are
// among the objects, or among what rules look up. Of these only the first are judged. Objects of
// a namespace that bindings leave out are counted, and not judged.
func TestNamespacesSelect(t *testing.T) {
	t.Parallel()
	objects := configMap("apps", "bad", "") + configMap("apps", "good", "me") + configMap("others", "free", "") + configMap("kube-system", "excluded", "")
	for _, tt := range []struct {
		name, objects, params string
		looked                int
	}{
		{"among the objects", objects + namespaces, "", 5},
		{"among the params", objects, namespaces, 3},
	} {
		_, plan := planOf(t, tt.objects, tt.params)
		if plan.Looked == nil || plan.Looked.Objects != tt.looked || plan.Looked.Excluded != 1 || violated(plan) != "1" {
			t.Errorf("%s: looked at %+v, violated %s, want 1 of %d", tt.name, plan.Looked, violated(plan), tt.looked)
		}
	}
}

// TestWhatIsNoObject: a document without kind is told of with its place, and the others are
// judged.
func TestWhatIsNoObject(t *testing.T) {
	t.Parallel()
	p, plan := planOf(t, "metadata: {name: a}\n"+configMap("apps", "bad", ""), namespaces)
	if plan.Looked.Objects != 1 || violated(plan) != "1" {
		t.Errorf("looked at %+v, violated %s", plan.Looked, violated(plan))
	}
	if got := fmt.Sprint(p.Done.Found); !strings.Contains(got, "objects.yaml:1:1") || !strings.Contains(got, "no kind or no apiVersion") {
		t.Error(got)
	}
}
