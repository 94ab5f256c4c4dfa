package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

const ignoringForEach = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  validationFailureAction: Enforce
  failurePolicy: Ignore
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    validate:
      foreach:
      - list: request.object.spec.containers
        deny: {conditions: {all: [%s]}}
`

// What an alternative excuses makes no error of an element.
func TestExcusedInElement(t *testing.T) {
	t.Parallel()
	none, port := `{"name":"a","image":"a"}`, `{"name":"a","image":"a","ports":[{"containerPort":1,"hostPort":1}]}`
	portless := `{"name":"a","image":"a","ports":[{"containerPort":1}]}`
	some := `{key: "{{ split(element.ports[].hostPort || 'a,b', ',') }}", operator: AnyIn, value: [a, c]}`
	other := `{key: "{{ split(element.ports[].hostPort || 'a,b', ',') }}", operator: AnyIn, value: [c]}`
	text := `{key: "{{ split(element.ports[].hostPort || 'a,b', ',') }}", operator: Equals, value: a}`
	tests := []struct{ name, condition, containers, native, status string }{
		{"no ports", some, none, "deny", "fail"},
		{"no host port", some, portless, "deny", "fail"},
		{"a host port", some, port, "error", "error"},
		{"a host port after none", some, none + "," + port, "deny", "fail"},
		{"a host port before none", some, port + "," + none, "error", "error"},
		{"a host port after one that passes", other, none + "," + port, "error", "error"},
		{"none of the words", other, none, "allow", "pass"},
		{"a list and a text", text, none, "allow", "pass"},
		{"a list of a host port and a text", text, port, "error", "error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := fmt.Sprintf(ignoringForEach, tt.condition)
			p := translateText(t, source, setting{})
			if got := p.targets(); !strings.HasPrefix(got, "native") {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			r := objectRequest(t, "CREATE", pod("", `"containers":[`+tt.containers+`]`), "")
			if outcome, _, message := p.verdict(t, r); string(outcome) != tt.native {
				t.Errorf("got %s (%s), want %s", outcome, message, tt.native)
			}
			if got := kyvernoStatus(t, source, &interp.Offline{}, r); got != tt.status {
				t.Errorf("the interpreter says %s, want %s", got, tt.status)
			}
		})
	}
}
