package translate_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestAnyName: the text * of a name stands for every word of AnyIn where the API server takes it
// as a name, and is not asked for where it does not.
func TestAnyName(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"ConfigMap": false, "apps/v1/Deployment": false,
		"v1/Event": true, "certificates.k8s.io/v1/CertificateSigningRequest": true, "ClusterRole": true, "unheard.io/v1/Thing": true,
	} {
		p := translateText(t, fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [%s], operations: [CREATE]}}]}
    validate:
      failureAction: Enforce
      message: m
      deny: {conditions: {any: [{key: "{{ request.object.metadata.name }}", operator: AnyIn, value: [a, b]}]}}
`, kind), setting{})
		var all strings.Builder
		for _, o := range p.result.Objects {
			for _, c := range o.Policy.Spec.MatchConditions {
				all.WriteString(c.Expression)
			}
			for _, v := range o.Policy.Spec.Validations {
				all.WriteString(v.Expression)
			}
		}
		if got := strings.Contains(all.String(), "'*'"); got != want || all.Len() == 0 {
			t.Errorf("%s: got %t, want %t: %s", kind, got, want, all.String())
		}
	}
}
