//go:build e2e

package migrate

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/test/e2e/testcluster"
)

// Without an override, enforce goes by a comparison: what Kyverno reports of the objects
// that are there, in either kind of report, and what kvap's webhook said in shadow of
// the requests that Kyverno admitted.
func TestEvidence(t *testing.T) {
	c := shared
	c.Apply(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: shop}}
---
{apiVersion: v1, kind: Secret, metadata: {name: old, namespace: shop}}`) // they are removed once Kyverno is gone
	k, _ := c.startKyverno(t)
	c.apply(t, strings.TrimSpace(policies))
	s := c.stream(t)
	c.control(t)
	c.migrate(t, 0, "shadow", "labelled", "asks")
	c.Apply(t, "{apiVersion: v1, kind: Secret, metadata: {name: new, namespace: shop, labels: {team: blue}}}")
	testcluster.Soon(t, "the webhook has said something in shadow", func() bool {
		translation := &v1alpha1.PolicyTranslation{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: "asks.clusterpolicies.kyverno.io"}, translation); err != nil {
			t.Fatal(err)
		}
		rules := []v1alpha1.ShadowRule{}
		for _, by := range translation.Status.Shadow {
			rules = append(rules, by.Rules...)
		}
		return len(rules) == 1 && rules[0].Passed > 0
	})
	c.migrate(t, 1, "enforce", "labelled", "--yes") // nobody has compared
	for _, group := range []string{"wgpolicyk8s.io", "openreports.io"} {
		k.report(t, group)
		out := c.migrate(t, 0, "compare", "labelled", "asks")
		for _, row := range []string{"asks", "labelled"} {
			if !strings.Contains(lineOf(out, row), "reports 2") && !strings.Contains(lineOf(out, row), "reports 1") {
				t.Errorf("%s: the report of %s says nothing of %s", group, group, row)
			}
		}
		if !strings.Contains(lineOf(out, "asks"), "shadow 1") {
			t.Errorf("what was said in shadow is no evidence")
		}
	}
	c.migrate(t, 0, "enforce", "labelled", "asks", "--yes", "--settle", "2s")
	s.check(t, "enforce")
	c.migrate(t, 0, "rollback", "--all", "--yes", "--settle", "2s")
	s.check(t, "rollback")
}

// lineOf is the line of a table that begins with a word.
func lineOf(table, word string) string {
	for line := range strings.SplitSeq(table, "\n") {
		if strings.HasPrefix(line, word+" ") {
			return line
		}
	}
	return ""
}
