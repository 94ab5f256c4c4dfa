package cel_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
)

// What decides about an expression is told apart from what is only on the way to it.
func TestDecides(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"object.spec.a == 1":                                        "spec/a",
		"object.spec == oldObject.spec":                             "spec",
		"has(object.spec.a) && 'b' in object.metadata.labels":       "spec/a metadata/labels",
		"object.metadata.?labels['b'].orValue('')":                  "metadata/labels/b",
		"object.spec.l.filter(c, c.image == 'i').map(c, c.name)":    "spec/l/# spec/l/[]/image spec/l/[]/name",
		"object.spec.l.exists(c, c.e.all(e, e.v != object.spec.x))": "spec/l/# spec/l/[]/e/# spec/l/[]/e/[]/v spec/x",
		"object.spec.l[0].name":                                     "spec/l/# spec/l/[]/name",
		"object.spec.?x.optMap(v, v.y).orValue(1)":                  "spec/x spec/x/y",
		"variables.v.w":             "spec/v/w",
		"variables.u":               "spec/u",
		"request.userInfo.username": "",
		"object.spec.l.size() + size(object.spec.m)":          "spec/l spec/m",
		"[object.spec.a] + object.spec.l.map(object, object)": "spec/a spec/l/# spec/l/[]",
	} {
		v, err := cel.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		v2, _ := cel.Parse("object.spec.v")
		u, _ := cel.Parse("object.spec.u == 1")
		var got []string
		for _, path := range v.Decides(map[string][]string{"object": {}}, map[string]cel.Value{"v": v2, "u": u}) {
			got = append(got, strings.Join(path, "/"))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%v: %q, want %q", v, text, want)
		}
	}
}
