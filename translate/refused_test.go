package translate_test

import (
	"strings"
	"testing"
)

// What no public policy uses has no native form: the webhook judges it. The refusal says why,
// and stands where the construct does.
func TestRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, condition, want string }{
		{"join", `{key: "{{ join('-', request.object.spec.containers[].name) }}", operator: Equals, value: a}`, "webhook KV202 15:19"},
		{"max", `{key: "{{ max(request.object.spec.containers[].ports[].containerPort) }}", operator: Equals, value: 1}`, "webhook KV202 15:19"},
		{"not_null", `{key: "{{ not_null(request.object.spec.nodeName, 'a') }}", operator: Equals, value: a}`, "webhook KV202 15:19"},
		{"type", `{key: "{{ type(request.object.spec) }}", operator: Equals, value: object}`, "webhook KV202 15:19"},
		{"equal_fold", `{key: "{{ equal_fold(request.object.metadata.name, 'WEB') }}", operator: Equals, value: true}`, "webhook KV202 15:19"},
		{"pattern_match", `{key: "{{ pattern_match('p*', request.object.metadata.name) }}", operator: Equals, value: true}`, "webhook KV202 15:19"},
		{"replace_all", `{key: "{{ replace_all(request.object.metadata.name, 'p', 'q') }}", operator: Equals, value: q}`, "webhook KV202 15:19"},
		{"trim_prefix", `{key: "{{ trim_prefix(request.object.metadata.name, 'p') }}", operator: Equals, value: ""}`, "webhook KV202 15:19"},
		{"trim", `{key: "{{ trim(request.object.metadata.name, 'p') }}", operator: Equals, value: ""}`, "webhook KV202 15:19"},
		{"truncate", "{key: \"{{ truncate(request.object.metadata.name, `1`) }}\", operator: Equals, value: p}", "webhook KV202 15:19"},
		{"keys of a map of the policy", "{key: \"{{ keys(`{\\\"a\\\": 1}`) }}\", operator: AnyIn, value: [a]}", "webhook KV202 15:19"},
		{"values of a map of expressions", `{key: "{{ values({a: request.object.metadata.name}) }}", operator: AnyIn, value: [p]}`, "webhook KV202 15:19"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, denyPods("          - "+tt.condition+"\n"), setting{})
			got := p.targets()
			for _, d := range p.result.Diagnostics {
				got += " " + strings.TrimPrefix(d.Pos.String(), "p.yaml:")
			}
			if got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, p.result.Diagnostics)
			}
		})
	}
}
