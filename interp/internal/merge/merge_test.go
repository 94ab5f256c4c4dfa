package merge_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/interp/internal/merge"
)

func data(t *testing.T, text string) map[string]any {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := kjson.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// equals is a matcher for tests: texts must be the same, or the pattern is *.
func equals(value, pattern any) (bool, error) {
	return pattern == "*" || cmp.Equal(value, pattern), nil
}

const pod = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: i}, {name: b, image: j, ports: [{containerPort: 1, name: x}]}]}}`

// What the tables of the interpreter's own tests do not have.
func TestApply(t *testing.T) {
	for _, tt := range []struct{ name, object, patch, want string }{
		{"a template for elements that go by another key merges in place", pod,
			`{spec: {containers: [{name: b, ports: [{(name): x, hostPort: 2}]}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: b, image: j, ports: [{containerPort: 1, name: x, hostPort: 2}]}, {name: a, image: i}]}}`},
		{"a name that no element has is a new element", pod,
			`{spec: {containers: [{name: c, +(image): k}]}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: k}, {name: a, image: i}, {name: b, image: j, ports: [{containerPort: 1, name: x}]}]}}`},
		{"a name and a condition that does not hold", pod, `{spec: {containers: [{name: b, (image): z, tty: true}]}}`, pod},
		{"a name that no element has, and a condition", pod, `{spec: {containers: [{name: z, (image): i, tty: true}]}}`, pod},
		{"an equality that holds", `{a: 1, b: 2}`, `{=(a): "1", b: 3}`, `{a: 1, b: 3}`},
		{"an equality that does not", `{a: 2, b: 2}`, `{=(a): 1, b: 3}`, `{a: 2, b: 2}`},
		{"an equality of what is not there", `{b: 2}`, `{=(a): 1, b: 3}`, `{b: 3}`},
		{"a removed element of a list without keys", `{l: [{name: a}, {name: b}]}`, `{l: [{(name): a, $patch: delete}]}`, `{l: [{name: b}]}`},
		{"an empty list where there is none", `{a: 1}`, `{l: []}`, `{a: 1, l: []}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := merge.Apply(data(t, tt.object), data(t, tt.patch), equals)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(data(t, tt.want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestApplyErrs(t *testing.T) {
	for _, tt := range []struct{ name, object, patch, want string }{
		{"elements with and without anchors where a list is replaced", `{l: [{name: a}]}`, `{l: [{(name): a, x: 1}, {name: b}]}`, "mixed in a list that is replaced"},
		{"an element of a new list without its key", `{apiVersion: v1, kind: Pod}`, `{spec: {containers: [{tty: true}]}}`, "has no name"},
		{"a directive that there is not", `{a: {}}`, `{a: {$patch: 1}}`, "$patch must be"},
		{"replacing all", `{a: 1}`, `{$patch: replace, a: 2}`, "at its root"},
		{"too much", `{l: [` + strings.Repeat("{name: a},", 700) + `]}`, `{l: [` + strings.Repeat("{(name): a, x: {y: {z: 1}}},", 700) + `]}`, "too much of the object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := merge.Apply(data(t, tt.object), data(t, tt.patch), equals)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestShapesOfVersions(t *testing.T) {
	const patch = `{spec: {template: {spec: {containers: [{name: a, tty: true}]}}}}`
	for apiVersion, merges := range map[string]bool{"apps/v1": true, "apps/v1beta1": false, "apps.example.com/v1": false} {
		object := data(t, `{kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: i}]}}}}`)
		object["apiVersion"] = apiVersion
		got, err := merge.Apply(object, data(t, patch), equals)
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(fmt.Sprint(got), "image:i"); has != merges {
			t.Errorf("%s: %v", apiVersion, got)
		}
	}
}

// Neither the object nor the patch is changed, the result is the same each time,
// and laying a patch without conditions over its own result changes nothing.
func TestApplyLaws(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	applied := 0
	for range 20_000 {
		g := generator{source}
		object := map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": g.value(3, false)}
		anchors := source.IntN(2) == 0
		patch, ok := g.value(4, anchors).(map[string]any)
		if !ok {
			continue
		}
		patch = map[string]any{"spec": patch}
		objectText, patchText := text(t, object), text(t, patch)
		got, err := merge.Apply(object, patch, equals)
		if text(t, object) != objectText || text(t, patch) != patchText {
			t.Fatalf("an input was changed:\n%s\n%s\n%s\n%s", objectText, text(t, object), patchText, text(t, patch))
		}
		if err != nil {
			continue
		}
		applied++
		again, err := merge.Apply(object, patch, equals)
		if err != nil || text(t, again) != text(t, got) {
			t.Fatalf("twice on one object is another: %v\n%s\n%s", err, text(t, got), text(t, again))
		}
		if anchors || strings.Contains(patchText, "$patch") {
			continue
		}
		if twice, err := merge.Apply(got, patch, equals); err != nil || text(t, twice) != text(t, got) {
			t.Fatalf("not idempotent: %v\n%s\nover %s\ngives %s\nand then %v", err, patchText, objectText, text(t, got), twice)
		}
	}
	if applied < 5000 {
		t.Errorf("only %d patches applied", applied)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A generator makes small random values, of keys that the table knows.
type generator struct{ *rand.Rand }

func (g generator) value(depth int, anchors bool) any {
	switch n := g.IntN(10); {
	case depth == 0 || n < 2:
		return []any{"a", "b", int64(1), true, nil}[g.IntN(5)]
	case n < 4:
		list := []any{}
		for range g.IntN(4) {
			if e := g.value(depth-1, anchors); e != nil {
				list = append(list, e)
			}
		}
		return list
	}
	m := map[string]any{}
	for range g.IntN(4) {
		key := []string{"containers", "name", "env", "ports", "containerPort", "protocol", "x"}[g.IntN(7)]
		if anchors {
			key = fmt.Sprintf([]string{"%s", "%s", "(%s)", "<(%s)", "+(%s)", "=(%s)", "X(%s)"}[g.IntN(7)], key)
		}
		m[key] = g.value(depth-1, anchors)
	}
	if g.IntN(20) == 0 {
		m["$patch"] = []any{"delete", "replace", "merge"}[g.IntN(3)]
	}
	return m
}
