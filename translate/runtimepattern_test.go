package translate_test

import (
	"fmt"
	"testing"

	"github.com/kvap/kvap/interp"
)

const sameAccount = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: same}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    validate:
      message: refused
      pattern:
        spec:
          %s: "{{ request.object.metadata.labels.app }}"
`

func TestRuntimePattern(t *testing.T) {
	t.Parallel()
	account := func(label, name string) string {
		spec := ""
		if name != "-" {
			spec = fmt.Sprintf(`"serviceAccountName":%q`, name)
		}
		return pod(fmt.Sprintf(`,"labels":{"app":%q}`, label), spec)
	}
	tests := []struct{ label, name, want string }{
		{"builder", "builder", "allow"},
		{"builder", "default", "deny refused"},
		{"builder", "-", "deny refused"},
		{"5", "5", "allow"},
		{"5", "5.0", "deny refused"}, // deviation 15, and all below
		{"5", "6", "deny refused"},
		{"5", "-", "deny refused"},
		{"0", "-", "deny refused"},
		{"1h", "60m", "deny refused"},
		{"1Gi", "1024Mi", "deny refused"},
		{"1Gi", "a", "deny refused"},
		{"m", "0", "deny refused"},
		{"Ki", "0", "deny refused"},
		{"E", "0.0", "deny refused"},
		{"e-5", "-", "deny refused"},
		{"m", "Ki", "deny refused"},
		{"m", "1", "deny refused"},
		{"mi", "0", "deny refused"},
		{"K", "-", "deny refused"},
		{"1-5", "1-5", "allow"},
		{"1-5", "3", "deny refused"},
	}
	text := fmt.Sprintf(sameAccount, "serviceAccountName")
	p := translateText(t, text, setting{})
	if got := p.targets(); got != "native KV305" {
		t.Fatalf("%s: %v", got, p.result.Diagnostics)
	}
	for _, tt := range tests {
		o := account(tt.label, tt.name)
		p.try(t, []trial{{name: tt.label + " " + tt.name, object: o, want: tt.want}})
		status, decided := map[string]string{"allow": "pass", "deny refused": "fail"}[tt.want]
		if got := kyvernoStatus(t, text, &interp.Offline{}, objectRequest(t, "CREATE", o, "")); decided && got != status {
			t.Errorf("%s %s: the interpreter says %s, want %s", tt.label, tt.name, got, status)
		}
	}
	p.try(t, []trial{{name: "no label", object: pod("", ""), want: "deny refused: refused"}})
}

// Kyverno fills in variables first: what anchors or other keys say does not matter.
func TestRuntimePatternOptional(t *testing.T) {
	t.Parallel()
	p := translateText(t, fmt.Sprintf(sameAccount, "=(serviceAccountName)"), setting{})
	p.try(t, []trial{
		{name: "missing", object: pod(`,"labels":{"app":"a"}`, ""), want: "allow"},
		{name: "other", object: pod(`,"labels":{"app":"a"}`, `"serviceAccountName":"b"`), want: "deny refused"},
		{name: "no label", object: pod("", ""), want: "deny refused: refused"},
	})
}
