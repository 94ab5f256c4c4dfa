//go:build e2e

package controller

import (
	"strings"
	"testing"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// A mistake in an expression of the author's own is told with rule and path.
func TestTypeWarning(t *testing.T) {
	shared.control(t, enforcing())
	shared.apply(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: typo}
spec:
  background: false
  rules:
  - name: few-replicas
    match: {any: [{resources: {kinds: [Deployment]}}]}
    validate:
      cel:
        expressions:
        - expression: "object.replicas <= 5"
          message: Too many replicas.
`)
	name := "typo.clusterpolicies.kyverno.io"
	testcluster.Soon(t, "the type checker's warning is told", func() bool {
		return shared.condition(t, name, v1alpha1.ConditionTypeChecked).Reason == "Warning"
	})
	warnings := shared.translation(t, name).Status.Rules[0].Warnings
	if len(warnings) == 0 {
		t.Error("the row of the rule has no warning")
	}
	for _, w := range warnings { // one for each object
		if w.Known || w.Rule != "few-replicas" || !strings.Contains(w.Warning, "undefined field 'replicas'") ||
			w.Path != "spec.rules[0].validate.cel.expressions[0]" {
			t.Errorf("%+v", w)
		}
	}
}
