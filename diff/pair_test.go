package diff

import (
	"context"
	"fmt"
	"slices"
	"testing"
)

// rule is a policy with rules of the names, about a kind.
func rules(name, kind string, names ...string) string {
	out := fmt.Sprintf("---\napiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: %s}\nspec:\n  validationFailureAction: Enforce\n  rules:\n", name)
	for _, n := range names {
		out += fmt.Sprintf("  - name: %s\n    match: {any: [{resources: {kinds: [%s]}}]}\n    validate: {message: m, pattern: {metadata: {labels: {%s: \"?*\"}}}}\n", n, kind, n)
	}
	return out
}

func TestPairs(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []string // OLD NEW by
	}{
		"by name":        {rules("a", "ConfigMap", "x") + rules("b", "Secret", "z"), rules("b", "Secret", "z") + rules("a", "ConfigMap", "x"), []string{"[a/x] [a/x] name", "[b/z] [b/z] name"}},
		"by match":       {rules("a", "ConfigMap", "x") + rules("b", "Secret", "z"), rules("c", "Secret", "z") + rules("d", "ConfigMap", "w"), []string{"[a/x] [d/w] what they match", "[b/z] [c/z] what they match"}},
		"the only ones":  {rules("a", "ConfigMap", "x"), rules("c", "Secret", "z"), []string{"[a/x] [c/z] being the only ones"}},
		"nothing":        {rules("a", "ConfigMap", "x"), rules("a", "ConfigMap", "x") + rules("c", "Secret", "z"), []string{"[a/x] [a/x] name", "[] [c/z] nothing"}},
		"rules by name":  {rules("a", "ConfigMap", "x", "z"), rules("a", "ConfigMap", "z", "x"), []string{"[a/x] [a/x] name", "[a/z] [a/z] name"}},
		"rules as whole": {rules("a", "ConfigMap", "x", "z"), rules("a", "ConfigMap", "x"), []string{"[a/x a/z] [a/x] the whole of both"}},
		"split":          {rules("a", "ConfigMap", "x", "z"), rules("b", "ConfigMap", "x") + rules("c", "ConfigMap", "z"), []string{"[a/x a/z] [b/x c/z] the whole of both"}},
	} {
		old, new := parsed(t, "old.yaml", []byte(c.old)), parsed(t, "new.yaml", []byte(c.new))
		var got []string
		for _, p := range pairGroups(&old, &new, schemas(t)) {
			for _, m := range p.matters() {
				got = append(got, fmt.Sprint(told(m.old), " ", told(m.new), " ", m.by))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func told(names []ruleName) (out []string) {
	for _, n := range names {
		out = append(out, n.group+"/"+n.rule)
	}
	return out
}

// A rule that went is told by a request that it denied; one that only moved is no difference.
func TestWholes(t *testing.T) {
	compare := func(old, new string) Comparison {
		got, err := Compare(context.Background(), parsed(t, "old.yaml", []byte(old)), parsed(t, "new.yaml", []byte(new)), Options{Schemas: schemas(t), Seed: 1, Requests: 500, Ignore: []Aspect{Message}})
		if err != nil || len(got.Comparisons) != 1 {
			t.Fatal(got, err)
		}
		return got.Comparisons[0]
	}
	if c := compare(rules("a", "ConfigMap", "x", "z"), rules("b", "ConfigMap", "x")+rules("c", "ConfigMap", "z")); !c.Same() || c.OldSeen.Violated == 0 {
		t.Errorf("%+v", c)
	}
	c := compare(rules("a", "ConfigMap", "x", "z"), rules("a", "ConfigMap", "x"))
	if c.Same() || c.Differences[0].Aspect != Verdict || !slices.Equal(c.OldWhole, []string{"z"}) {
		t.Fatalf("%+v", c)
	}
	labels := c.Differences[0].Request.Object["metadata"].(map[string]any)["labels"].(map[string]any)
	if labels["x"] == nil || labels["z"] != nil {
		t.Errorf("the request is not as small as it could be: %s", c.Differences[0].Request)
	}
}

// The same seed gives the same.
func TestSeed(t *testing.T) {
	run := func() string {
		got, err := Compare(context.Background(), parsed(t, "old.yaml", []byte(rules("a", "Pod", "x"))), parsed(t, "new.yaml", []byte(rules("a", "Pod", "z"))), Options{Schemas: schemas(t), Seed: 7, Requests: 400})
		if err != nil {
			t.Fatal(err)
		}
		var out string
		for _, c := range got.Comparisons {
			out += fmt.Sprintf("%+v %+v\n", c.OldSeen, c.NewSeen)
			for _, d := range c.Differences {
				out += fmt.Sprintln(d.Aspect, d.Tried, d.Request)
			}
		}
		return out
	}
	if a, b := run(), run(); a != b || a == "" {
		t.Errorf("%s\n%s", a, b)
	}
}
