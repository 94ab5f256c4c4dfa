package translate_test

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
)

// TestGroupWithoutVersion: what Kyverno takes for a subresource of a kind that is a group, is told so,
// with what was meant.
func TestGroupWithoutVersion(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"apps/Deployment":                 "apps/Deployment is the subresource Deployment of a kind apps, which no cluster has, so it matches nothing; with its group, the kind is written apps/v1/Deployment",
		"networking.k8s.io/Ingress":       "networking.k8s.io/Ingress is the subresource Ingress of a kind networking.k8s.io, which no cluster has, so it matches nothing; with its group, the kind is written networking.k8s.io/v1/Ingress",
		"nowhere.example.com/Contraption": "nowhere.example.com/Contraption is the subresource Contraption of a kind nowhere.example.com, which no cluster has, so it matches nothing; with its group, the kind is written nowhere.example.com/*/Contraption",
		"Gadgt/scale":                     "the kind Gadgt is not known",
	} {
		text := strings.Replace(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [KIND]}}]}
    validate: {message: wrong, deny: {}}
`, "KIND", kind, 1)
		told := ""
		for _, d := range compileText(t, text, setting{}).Diagnostics {
			if d.Code == diag.GuessedResource {
				told = d.Message
			}
		}
		if !strings.HasPrefix(told, want) {
			t.Errorf("%s: told %q, want %q", kind, told, want)
		}
	}
}
