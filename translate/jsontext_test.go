package translate_test

import "testing"

// Inside a text a list is JSON, as Go's encoder writes it, which CEL cannot write.
func TestJSONOfListsIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"x{{ request.object.spec.containers[0].args }}", "{{ to_string(request.userInfo.groups) }}", "{{ to_string(request.object.spec.containers[].name) }}"} {
		p := translateText(t, denyPods(`          - {key: "`+key+`", operator: AnyIn, value: [x]}`+"\n"), setting{})
		if got := p.targets(); got != "webhook KV201" {
			t.Errorf("%s: %s, want webhook KV201: %v", key, got, p.result.Diagnostics)
		}
	}
}
