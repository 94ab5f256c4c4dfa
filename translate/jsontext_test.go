package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

// The JSON text of a list is that of Go's encoder. Characters for which CEL has other
// escapes, or none, are an error.
func TestJSONOfLists(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, arg, json, want string }{
		{"a word", `a`, `["a"]`, "deny refused"},
		{"escapes that both have", `\"\\\n\r\t\b\f`, `["\"\\\n\r\t\b\f"]`, "deny refused"},
		{"letters that are an escape elsewhere", `\\a\\v`, `["\\a\\v"]`, "deny refused"},
		{"signs of HTML", `<&>`, `["\u003c\u0026\u003e"]`, "deny refused"},
		{"a bell", `\u0007`, `["\u0007"]`, "error refused: control_character"},
		{"a vertical tab", `\u000b`, `["\u000b"]`, "error refused: control_character"},
		{"another control character", `\u0001`, `["\u0001"]`, "error refused: control_character"},
		{"an escape of terminals", `\u001b[0m`, `["\u001b[0m"]`, "error refused: control_character"},
		{"a separator of lines", `\u2028`, `["\u2028"]`, "error refused: control_character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := denyPods("          - {key: \"x{{ to_string(request.object.spec.containers[0].args) }}\", operator: AnyIn, value: ['x" + tt.json + "']}\n")
			p := translateText(t, text, setting{})
			if got := p.targets(); got != "native KV306" {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			object := pod("", fmt.Sprintf(`"containers":[{"name":"a","image":"a","args":["%s"]}]`, tt.arg))
			p.try(t, []trial{{name: "native", object: object, want: tt.want}})
			if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", object, "")); got != "fail" && !strings.HasPrefix(tt.want, "error") {
				t.Errorf("the interpreter says %s", got)
			}
		})
	}
}
