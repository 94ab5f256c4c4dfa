package translate_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
)

// Two values of the request that are no numbers have no order (deviation 15): the rule has no
// native form, says why, and errs.
func TestNoOrder(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{
		`{key: "a-{{ request.object.spec.containers[].name }}", operator: LessThan, value: ["{{ request.object.metadata.name }}", "{{ request.object.metadata.name }}"]}`,
		`{key: "{{ to_upper(request.object.spec.containers[0].name || 'x') }}", operator: GreaterThanOrEquals, value: ["{{ request.object.metadata.name }}"]}`,
		`{key: "{{ request.object.spec.containers[].image }}", operator: GreaterThan, value: "{{ request.object.spec.containers[].name }}"}`,
		`{key: "{{ request.object.metadata.name }}", operator: GreaterThan, value: "{{ request.object.spec.containers[0].name }}"}`,
	} {
		t.Run(condition, func(t *testing.T) {
			text := denyPods("          - " + condition + "\n")
			if p := translateText(t, text, setting{}); p.targets() != "webhook KV201" {
				t.Errorf("%s: %v", p.targets(), p.result.Diagnostics)
			}
			r := objectRequest(t, "CREATE", pod("", `"containers":[{"name":"a","image":"a"}]`), "")
			if got := kyvernoStatus(t, text, &interp.Offline{}, r); got != "error" {
				t.Errorf("the interpreter says %s", got)
			}
		})
	}
}

// What a condition reads is read whatever it is compared with: an error of it is the rule's.
func TestComparedErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, condition, want string }{
		{"the length of a missing object and a word", `{key: "{{ length(request.object.spec.affinity) }}", operator: Equals, value: abc}`, "deny"},
		{"a label or nothing and the length of a missing object", `{key: "{{ request.object.metadata.labels.app || '' }}", operator: Equals, value: "{{ length(request.object.metadata.annotations) }}"}`, "deny"},
		{"a label or nothing that is not the length of a missing object", `{key: "{{ request.object.metadata.labels.app || '' }}", operator: NotEquals, value: "{{ length(request.object.metadata.annotations) }}"}`, "deny"},
		{"a label or nothing and the length of an object", `{key: "{{ request.object.metadata.labels.app || '' }}", operator: Equals, value: "{{ length(request.object.metadata.labels) }}"}`, "allow"},
		{"a label by the text of a comparison", `{key: "{{ request.object.metadata.labels.\"{{ request.object.metadata.name != 'a' }}\" }}", operator: Equals, value: "yes"}`, "allow"},
		{"a label called null", `{key: "{{ request.object.metadata.labels.\"{{ request.object.metadata.name > 'a' }}\" }}", operator: Equals, value: "yes"}`, "allow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := denyPods("          - " + tt.condition + "\n")
			p := translateText(t, text, setting{})
			if got := p.targets(); !strings.HasPrefix(got, "native") {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			object := pod(`,"labels":{"true":"no","null":"no"}`, `"containers":[{"name":"a","image":"a"}]`)
			r := objectRequest(t, "CREATE", object, "")
			if outcome, _, message := p.verdict(t, r); string(outcome) != tt.want {
				t.Errorf("got %s (%s), want %s", outcome, message, tt.want)
			}
			status := map[string]string{"deny": "error", "allow": "pass"}[tt.want]
			if got := kyvernoStatus(t, text, &interp.Offline{}, r); got != status {
				t.Errorf("the interpreter says %s, want %s", got, status)
			}
		})
	}
}
