package scan

import (
	"strings"
	"testing"
)

// Rules that read what a controller writes into an object, or hand the object on as it is, are
// known by their text.
func TestReadsWhole(t *testing.T) {
	const text = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p, generation: 3, resourceVersion: "7"}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: The object is fine., deny: {conditions: {any: [{key: "KEY", operator: Equals, value: x}]}}}
status: {ready: true}
`
	for key, want := range map[string]bool{
		"{{ request.object.spec.nodeName }}":              false,
		"{{ request.object.metadata.labels.owner }}":      false,
		"{{ request.object.status.phase }}":               true,
		"{{ request.object.metadata.resourceVersion }}":   true,
		"{{ to_string(request.object) }}":                 true,
		"{{ request.object | keys(@) | join('', @) }}":    true,
		"{{request.object}}":                              true,
		"{{ request.object.metadata.annotations.other }}": false,
	} {
		p := policiesOf(t, strings.Replace(text, "KEY", key, 1))
		if got := readsWhole(p.Compiled.Rules); got != want {
			t.Errorf("%s: reads the whole is %t", key, got)
		}
	}
}

// The same policy of another version says the same.
func TestFingerprint(t *testing.T) {
	one := policiesOf(t, scanned)
	other := policiesOf(t, scanned+"status: {ready: true}\n")
	edited := policiesOf(t, strings.Replace(scanned, "It has an owner.", "It has one.", 1))
	if one.fingerprint(one.Compiled.Rules) != other.fingerprint(other.Compiled.Rules) {
		t.Error("a status makes another policy")
	}
	if one.fingerprint(one.Compiled.Rules) == edited.fingerprint(edited.Compiled.Rules) {
		t.Error("an edited policy is the same")
	}
}
