package controller

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// A rule about no kind that the cluster serves judges nothing, as where its kind is
// misspelt: the policy says so, and is not ready. Of kinds that are missing beside others it
// only says so.
func TestStatusOfMissingKinds(t *testing.T) {
	builtin, err := schema.Builtin("1.34")
	if err != nil {
		t.Fatal(err)
	}
	rule := func(kinds string) string {
		return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [%s]}}]}
    validate: {message: m, pattern: {metadata: {name: "?*"}}}
`, kinds)
	}
	validating := func(group, resource string) string {
		return fmt.Sprintf(`apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%s], apiVersions: [v1], resources: [%s], operations: [CREATE]}]}
  validations: [{expression: "true"}]
`, group, resource)
	}
	for _, tt := range []struct {
		name, text, says string
		ready            bool
	}{
		{"a kind", rule("Deployment"), "", true},
		{"a kind with group and subresource", rule("apps/v1/Deployment/scale"), "", true},
		{"any kind", rule(`"*"`), "", true},
		{"a pattern", rule("Deploy*"), "", true},
		{"misspelt", rule("Deploymnet"), "no kind Deploymnet", false},
		{"a pattern that matches none", rule("Deploymn*"), "no kind Deploymn*", false},
		{"another group", rule("batch/v1/Deployment"), "no kind batch/v1/Deployment", false},
		{"misspelt beside another", rule("Deployment, Deploymnet"), "no kind Deploymnet", true},
		{"a resource", validating("apps", "deployments/scale"), "", true},
		{"any resource", validating("apps", `"*"`), "", true},
		{"a misspelt resource", validating("apps", "deployment"), "no kind deployment", false},
	} {
		p := readPolicy(t, tt.text)
		r := &compile.Rule{Policy: p}
		if len(p.Rules) > 0 {
			r.Source = p.Rules[0]
		}
		o := &passResult{compileResult: compileResult{schemas: builtin, rules: map[*policy.Policy][]*compile.Rule{p: {r}}}}
		conditions := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{}).Conditions
		if ready := meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady); ready != tt.ready {
			t.Errorf("%s: ready is %t", tt.name, ready)
		}
		said := ""
		if c := meta.FindStatusCondition(conditions, "KindsServed"); c != nil {
			said = c.Message
		}
		if (tt.says == "") == strings.Contains(said, "no kind") || !strings.Contains(said, tt.says) {
			t.Errorf("%s: it says %q", tt.name, said)
		}
	}
}

// readPolicy reads a text with one policy.
func readPolicy(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, found := parsePolicy(v1alpha1.PolicyReference{}, []byte(text))
	if p == nil || found.HasErrors() {
		t.Fatalf("%v\n%s", found, text)
	}
	return p
}
