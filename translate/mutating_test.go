package translate_test

import (
	"strings"
	"testing"
)

// A MutatingPolicy whose CEL compiles nowhere is told as that, with its place; what only
// Kyverno has is for the webhook to compile.
func TestBrokenMutatingPolicies(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ spec, want, message string }{
		"as it should be":    {"variables: [{name: a, expression: \"resource.Get('v1', 'configmaps', 'a', 'b')\"}]\n  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{}}'}}]", "webhook KV209", ""},
		"an escaped path":    {`mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "remove", path: "/metadata/" + jsonpatch.escapeKey("a/b")}]'}}]`, "webhook KV209", ""},
		"a mutation":         {"mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[object.metadata'}}]", "webhook KV112", "does not compile"},
		"a match condition":  {"matchConditions: [{name: c, expression: 'object.metadata.name =='}]\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}]", "webhook KV112", "at 1:24"},
		"a function":         {"matchConditions: [{name: c, expression: \"object.metadata.name.startWith('a')\"}]\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}]", "webhook KV112", "did you mean startsWith?"},
		"a variable":         {"variables: [{name: a, expression: variables.b}, {name: b, expression: 'true'}]\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}]", "webhook KV112", "undefined field 'b'"},
		"variables in a row": {"variables: [{name: a, expression: 'true'}, {name: b, expression: variables.a}]\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}]", "webhook KV209", ""},
	} {
		p := translateText(t, "apiVersion: policies.kyverno.io/v1\nkind: MutatingPolicy\nmetadata: {name: p}\nspec:\n"+
			"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}\n  "+tt.spec+"\n", setting{})
		told := ""
		for _, d := range p.result.Diagnostics {
			told += d.Code.String() + " " + d.Message + "\n"
		}
		if got := p.targets(); got != tt.want || !strings.Contains(told, tt.message) {
			t.Errorf("%s: %s, want %s and %q: %s", name, got, tt.want, tt.message, told)
		}
	}
}
