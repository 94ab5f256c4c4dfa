package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// Of a key that stands twice the last counts, as for kubectl and for Kyverno's loader,
// wherever it stands; both lines are told.
func TestDuplicateKey(t *testing.T) {
	const head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\n"
	const rule = "    match: {any: [{resources: {kinds: [Pod]}}]}\n"
	for name, c := range map[string]struct {
		text, same string
		lines      [][2]int // of the key that counts, and the one before
	}{
		"an annotation": {
			head + "metadata:\n  name: p\n  annotations:\n    a: x\n    b: v\n    a: z\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n",
			head + "metadata:\n  name: p\n  annotations:\n    a: z\n    b: v\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n",
			[][2]int{{8, 6}},
		},
		"a key of spec": {
			head + "metadata: {name: p}\nspec:\n  background: false\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n  background: true\n",
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n  background: true\n",
			[][2]int{{10, 5}},
		},
		"a key of a rule, three times": {
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n    validate: {message: m, deny: {}}\n    validate: {pattern: {a: c}}\n",
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: c}}\n",
			[][2]int{{9, 8}, {10, 9}},
		},
		"the rules, the first of which are wrong": {
			head + "metadata: {name: p}\nspec:\n  rules: [{name: r, vlidate: {}}]\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n",
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n",
			[][2]int{{6, 5}},
		},
		"deep in a list": {
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate:\n      pattern:\n        l:\n        - m:\n            k: 1\n            k: 2\n            k2: 3\n",
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate:\n      pattern:\n        l:\n        - m:\n            k: 2\n            k2: 3\n",
			[][2]int{{13, 12}},
		},
		"JSON": {
			`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "q",` + "\n" + `"name": "p"}, "spec": {"rules": [{"name": "r", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"pattern": {"a": "b"}}}]}}`,
			head + "metadata: {name: p}\nspec:\n  rules:\n  - name: r\n" + rule + "    validate: {pattern: {a: b}}\n",
			[][2]int{{2, 1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, ds := policy.Parse("p.yaml", []byte(c.text))
			want := parseGood(t, c.same)
			if d := cmp.Diff(want.Source.Value(), f.Policies[0].Source.Value()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			ignored := []cmp.Option{cmpopts.IgnoreTypes(diag.Pos{}), cmpopts.IgnoreFields(policy.Policy{}, "Source"), cmpopts.IgnoreUnexported(policy.Policy{}), cmpopts.EquateEmpty()}
			if f.Policies[0].Invalid || f.Policies[0].Rules[0].Invalid || len(f.Policies[0].Rules) != 1 || f.Policies[0].Background != want.Background ||
				!cmp.Equal(want.Annotations, f.Policies[0].Annotations, ignored...) {
				t.Errorf("%+v", f.Policies[0])
			}
			if len(ds) != len(c.lines) {
				t.Fatal(ds)
			}
			for i, d := range ds {
				before := fmt.Sprintf("line %d ", c.lines[i][1])
				if d.Code != diag.DuplicateKey || d.Severity != diag.Warning || d.Line != c.lines[i][0] || !strings.Contains(d.Message, before) {
					t.Errorf("%v; want lines %v", d, c.lines[i])
				}
			}
		})
	}
}
