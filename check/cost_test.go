package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/check"
)

// measured is what the expressions of a policy on a resource cost.
func measured(t *testing.T, group, resource string, expressions ...string) []check.Cost {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: subject}
spec:
  matchConstraints:
    resourceRules:
      - {apiGroups: [%q], apiVersions: [v1], resources: [%s], operations: [UPDATE]}
  validations:
`, group, resource)
	for _, e := range expressions {
		fmt.Fprintf(&b, "    - expression: %q\n", e)
	}
	return find(t, "policy.yaml", []byte(b.String()))[0].Cost[:len(expressions)]
}

// The old object is as large as the new one, whichever of them is read.
func TestOldObjectIsLarge(t *testing.T) {
	costs := measured(t, "", "pods", "object.metadata.labels.all(k, k != 'a')", "oldObject.metadata.labels.all(k, k != 'a')")
	if costs[0].Measured != costs[1].Measured || costs[1].Measured < 100 {
		t.Errorf("of the new object %d, of the old one %d", costs[0].Measured, costs[1].Measured)
	}
}

// What is only asked for is there, and is more than nothing.
func TestAskedForIsNotEmpty(t *testing.T) {
	costs := measured(t, "", "pods",
		"object.spec.volumes.all(v, has(v.hostPath) && dyn(v.hostPath) != {} && object.spec.containers.all(c, c.volumeMounts.all(m, m.name != 'a')))")
	if costs[0].Measured < 10_000 {
		t.Errorf("measured %d", costs[0].Measured)
	}
}

// Roles have many rules of a few resources, or few of many.
func TestRolesAreLarge(t *testing.T) {
	const clean = "object.rules.all(r, r.resources.all(x, !x.matches('^nodes.*proxy$')))"
	for _, c := range measured(t, "rbac.authorization.k8s.io", "clusterroles", clean) {
		if c.Measured > c.Limit || c.Measured < c.Limit/100 {
			t.Errorf("measured %d", c.Measured)
		}
	}
}
