package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

func TestTextFunctions(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, query, text, want string }{
		{"trimmed at both ends", "trim(@, '/ ')", " /a/b// ", "a/b"},
		{"nothing to trim", "trim(@, '/')", "a", "a"},
		{"nothing left", "trim(@, '/')", "///", ""},
		{"no characters to trim", "trim(@, '')", " a ", " a "},
		{"characters that mean something in a class", `trim(@, '-]^[')`, "]-[^a]b^", "a]b"},
		{"lines are kept inside", "trim(@, '/')", "/a\n/b/", "a\n/b"},
		{"a line is no end", "trim(@, '/')", "/\na/", "\na"},
		{"cut off", "truncate(@, `3`)", "äöüß", "äöü"},
		{"short enough", "truncate(@, `3`)", "äöü", "äöü"},
		{"nothing is left", "truncate(@, `-1`)", "abc", ""},
		{"a fraction", "truncate(@, `2.9`)", "abc", "ab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			query := strings.ReplaceAll(tt.query, "@", "request.object.spec.containers[0].args[0]")
			text := denyPods(fmt.Sprintf("          - {key: %q, operator: AnyNotIn, value: [%q]}\n", "x{{ "+query+" }}", "x"+tt.want))
			p := translateText(t, text, setting{})
			if got := p.targets(); got != "native" {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			object := pod("", fmt.Sprintf(`"containers":[{"name":"a","image":"a","args":[%q]}]`, tt.text))
			p.try(t, []trial{{name: "native", object: object, want: "allow"}, {name: "missing", object: pod("", `"containers":[{"name":"a","image":"a"}]`), want: "error refused"}})
			if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", object, "")); got != "pass" {
				t.Errorf("the interpreter says %s", got)
			}
		})
	}
}

// A text function of what is no text is an error, also where it would give that back.
func TestNoText(t *testing.T) {
	t.Parallel()
	widget := func(value string) string {
		return fmt.Sprintf(`{"apiVersion":"x.io/v1","kind":"Widget","metadata":{"name":"w","namespace":"app"},"spec":{"a":%s}}`, value)
	}
	for _, query := range []string{"truncate(request.object.spec.a, `2`)", "trim(request.object.spec.a, '')"} {
		text := strings.Replace(denyPods(fmt.Sprintf("          - {key: %q, operator: Equals, value: ab}\n", "{{ "+query+" }}")), "Pod", "x.io/v1/Widget", 1)
		p := translateText(t, text, setting{})
		if got := p.targets(); got != "native KV302" {
			t.Fatalf("%s: %s %v", query, got, p.result.Diagnostics)
		}
		p.try(t, []trial{
			{name: query + " of the text", object: widget(`"ab"`), want: "deny refused"},
			{name: query + " of another text", object: widget(`"a"`), want: "allow"},
		})
		for _, value := range []string{`[]`, `["a","b"]`, `{}`, `{"a":1}`, `1`, `true`, `null`} {
			p.try(t, []trial{{name: query + " of " + value, object: widget(value), want: "error refused"}})
			if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", widget(value), "")); got != "error" {
				t.Errorf("the interpreter says %s of %s", got, value)
			}
		}
	}
}
