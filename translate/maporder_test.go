package translate_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

// What depends on the order of a map is left to the webhook, wherever the map is from.
func TestMapOrderRefused(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{
		`{key: "{{ {a: request.object.metadata.name, b: 'y'}.* | [0] }}", operator: Equals, value: y}`,
		`{key: "{{ [keys(request.object.metadata.labels), ['a']] }}", operator: Equals, value: "{{ [['app'], ['a']] }}"}`,
	} {
		p := translateText(t, denyPods("          - "+condition+"\n"), setting{})
		if got := p.targets(); !strings.HasPrefix(got, "webhook KV201") {
			t.Errorf("%s: %s", condition, got)
		}
	}
}

// The rest of what can be asked of keys and values is native.
func TestMapEntries(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, condition, want string }{
		{"a wildcard beside a text of the request", `{key: "{{ request.object.metadata.labels.app }}", operator: AnyIn, value: "{{ [request.object.metadata.name, 'w*'][] }}"}`, "deny refused"},
		{"an allow-list of a wildcard and a text of the request", `{key: "{{ request.object.metadata.labels.app }}", operator: AnyNotIn, value: "{{ [request.object.metadata.name, 'w*'][] }}"}`, "allow"},
		{"a list key and a wildcard", `{key: "{{ request.object.metadata.labels.* }}", operator: AllIn, value: "{{ [request.object.metadata.name, 'w*'][] }}"}`, "deny refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := denyPods("          - " + tt.condition + "\n")
			p := translateText(t, text, setting{})
			if got := p.targets(); !strings.HasPrefix(got, "native") {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			object := labelled("web")
			p.try(t, []trial{{name: "native", object: object, want: tt.want}})
			status := map[string]string{"deny refused": "fail", "allow": "pass"}[tt.want]
			if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", object, "")); got != status {
				t.Errorf("the interpreter says %s, want %s", got, status)
			}
		})
	}
}
