package cel

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

// What an expression reads below a variable is followed through macros, indices, optional
// values and composed variables, one that reads itself too; constants are all of its own.
func TestPaths(t *testing.T) {
	composed := map[string]Value{}
	for name, text := range map[string]string{"all": "object.spec.containers + variables.all", "parts": "object.spec.parts"} {
		v, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		composed[name] = v
	}
	v, err := Parse(`object.metadata.?labels["team"].orValue("") != "" && (has(object.spec.size) ? object.spec.size : 7) > 2.5 &&
		variables.parts.filter(p, p.on).all(i, q, q.name != object.spec.names[i]) && variables.all.exists(c, c.image == oldObject.x) &&
		object.?spec.?kind.optMap(k, k.name) == optional.none()`)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range v.Paths("object", composed) {
		got = append(got, strings.Join(path, "/"))
	}
	want := []string{
		"metadata", "metadata/labels", "metadata/labels/team", "spec", "spec/size", "spec/parts", "spec/parts/[]", "spec/parts/[]/on", "spec/parts/[]/name",
		"spec/names", "spec/names/[]", "spec/containers", "spec/kind", "spec/kind/name",
	}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("paths (-want +got):\n%s", d)
	}
	if d := textdiff.Values([]any{"team", "", "", int64(7), 2.5}, v.Constants()); d != "" {
		t.Errorf("constants (-want +got):\n%s", d)
	}
}

// TestReads: what is read as if it were there, and what is asked for.
func TestReads(t *testing.T) {
	t.Parallel()
	composed := map[string]Value{"v": parse(t, "object.spec.w > 1 && has(object.spec.u)")}
	for text, want := range map[string][2]string{
		"has(object.a.b) && object.c == 1":         {"a c", "a.b"},
		"object.?a.b.orValue(1) > object.c":        {"c", "a a.b"},
		"object.a[?'b'].orValue('') == ''":         {"a", "a.b"},
		"'b' in object.a && object.a['b'] == ''":   {"a a a.b", "a.b"},
		"object.a.all(x, x.b == 1)":                {"a a.[].b", "a.[]"},
		"object.?a.orValue({}).b == 1":             {"a.b", "a"},
		"object.?a.orValue({'b': 1}).b == 1":       {"", "a"},
		"variables.v || object.c":                  {"c", "spec.u"},
		"params.a.b == 1":                          {"", ""},
		"object.a.filter(x, has(x.b)).all(x, x.b)": {"a a.[].b", "a.[] a.[].b a.[]"},
	} {
		read, asked := parse(t, text).Reads("object", composed)
		for i, got := range [][][]string{read, asked} {
			var names []string
			for _, path := range got {
				names = append(names, strings.Join(path, "."))
			}
			if strings.Join(names, " ") != want[i] {
				t.Errorf("%s: %s %v, want %s", text, []string{"reads", "asks for"}[i], names, want[i])
			}
		}
	}
}
