package deviation_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/deviation"
	"github.com/kvap/kvap/policy"
)

// mutations reads the bodies of mutate rules for a kind, in YAML on one line each.
func mutations(t *testing.T, kind string, bodies ...string) []*policy.Rule {
	t.Helper()
	text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n"
	for i, body := range bodies {
		text += "  - name: r" + string(rune('1'+i)) + "\n    match: {any: [{resources: {kinds: [" + kind + "]}}]}\n    mutate: " + body + "\n"
	}
	f, _ := policy.Parse("p.yaml", []byte(text))
	if len(f.Policies) != 1 {
		t.Fatal("no policy")
	}
	return policy.Expand(f.Policies[0])
}

func TestMutations(t *testing.T) {
	merge := func(spec string) string { return "{patchStrategicMerge: {spec: " + spec + "}}" }
	const (
		two  = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a"},{"name":"b"}]}}`
		one  = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a"}]}}`
		part = `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","ports":[{"containerPort":1},{"containerPort":1,"protocol":"TCP"}]}]}}`
		own  = `{"apiVersion":"example.com/v1","kind":"Rollout","spec":{"containers":[{"name":"a"}]}}`
	)
	for _, tt := range []struct {
		name, object string
		bodies       []string
		want, said   string // of r1 and r2
		reason       string // a part of it; nothing excuses where it is empty
	}{
		{"a template with a key to add", two, []string{merge(`{containers: [{(name): "*", +(tty): true}]}`)}, "pass", "pass", "share"},
		{"one element cannot share", one, []string{merge(`{containers: [{(name): "*", +(tty): true}]}`)}, "pass", "skip", ""},
		{"a template without keys to add", two, []string{merge(`{containers: [{(name): "*", tty: true}]}`)}, "pass", "skip", ""},
		{"two templates", one, []string{merge(`{containers: [{(name): a, tty: true}, {(name): b, tty: true}]}`)}, "pass", "pass", "two templates"},
		{"a template in a list of another kind", own, []string{merge(`{containers: [{(name): "*", tty: true}]}`)}, "pass", "pass", "does not go by names"},
		{"a template with a name", one, []string{merge(`{containers: [{name: a, (image): x, tty: true}]}`)}, "pass", "skip", "with a name"},
		{"an element without a key", one, []string{merge(`{containers: [{tty: true}]}`)}, "pass", "error", "without a key"},
		{"a directive alone", one, []string{merge(`{containers: [{$patch: replace}, {name: c}]}`)}, "pass", "error", ""},
		{"a condition with content", one, []string{merge(`{(m): {x: "?*"}, a: 1}`)}, "pass", "skip", "a condition says"},
		{"a condition of conditions", one, []string{merge(`{(m): {(x): "?*"}, a: 1}`)}, "pass", "skip", ""},
		{"an equality", one, []string{merge(`{=(m): 1, a: 1}`)}, "pass", "skip", "keys with anchors"},
		{"blanks", one, []string{merge(`{" (m) ": 1, a: 1}`)}, "pass", "error", "keys with anchors"},
		{"an object with half a key", part, []string{merge(`{a: 1}`)}, "pass", "skip", "not all keys"},
		{"a rule behind one that errs", one, []string{merge(`{a: "{{ x }}"}`), merge(`{a: 1}`)}, "error ", "error pass", "empty object"},
		{"a rule behind one that passes", one, []string{merge(`{a: 1}`), merge(`{b: 1}`)}, "pass ", "pass pass", ""},
		{"nothing special", one, []string{merge(`{a: 1}`)}, "pass", "skip", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := deviation.MutationDifference{Rules: mutations(t, "Widget", tt.bodies...), Object: data(t, tt.object), Want: statuses(tt.want), Said: statuses(tt.said)}
			got, ok := deviation.OfMutation(m)
			if ok != (tt.reason != "") || !strings.Contains(got.Reason, tt.reason) || ok && got.Number != 14 {
				t.Errorf("got %v %+v, want %q", ok, got, tt.reason)
			}
		})
	}
	nested := mutations(t, "Pod", "{foreach: [{list: a, foreach: [{list: b, patchStrategicMerge: {a: 1}}]}]}")
	if got, _ := deviation.OfMutation(deviation.MutationDifference{Rules: nested, Want: map[string]string{"autogen-r1": "pass"}}); got.Number != 14 {
		t.Errorf("a foreach within a foreach for controllers: %+v", got)
	}
}

func statuses(text string) map[string]string {
	out := map[string]string{}
	for i, s := range strings.Split(text, " ") {
		if s != "" {
			out["r"+string(rune('1'+i))] = s
		}
	}
	return out
}
