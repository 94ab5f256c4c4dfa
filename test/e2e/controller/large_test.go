//go:build e2e

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// tooLarge are policies that are short, and double something again and again.
func tooLarge() map[string]string {
	rule := func(name, context, key string) string {
		return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: " + name + "}\nspec:\n  background: false\n  rules:\n  - name: r\n" +
			"    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n" + context +
			fmt.Sprintf("    validate: {message: m, failureAction: Audit, deny: {conditions: {all: [{key: %q, operator: Equals, value: never}]}}}\n", "{{ "+key+" }}")
	}
	var lists strings.Builder
	lists.WriteString("    context:\n    - {name: v0, variable: {jmesPath: request.object.data}}\n")
	for i := range 39 {
		fmt.Fprintf(&lists, "    - {name: v%d, variable: {jmesPath: \"[v%d, v%[2]d]\"}}\n", i+1, i)
	}
	return map[string]string{
		"lists":       rule("lists", "", "request.object.data.x"+strings.Repeat(" | [@, @]", 32)),
		"variables":   rule("variables", lists.String(), "v39"),
		"repetitions": rule("repetitions", "", "regex_match('"+strings.Repeat("(a{1000})", 900)+"', request.object.metadata.name)"),
		"replaced":    rule("replaced", "", "request.object.metadata.name"+strings.Repeat(" | replace_all(@, '', 'aaaaaaaaaa')", 6)),
	}
}

// Policies that are too large say so, and hold up no other one.
func TestTooLarge(t *testing.T) {
	shared.clear(t)
	shared.control(t, enforcing())
	bombs := tooLarge()
	for _, text := range bombs {
		shared.apply(t, text)
	}
	began := time.Now()
	shared.apply(t, requires("owners", "owner", "Enforce"))
	testcluster.Soon(t, "the other policy denies", func() bool { return apierrors.IsInvalid(shared.tryCreate(t.Context(), nil)) })
	t.Logf("enforced after %v", time.Since(began))
	for name := range bombs {
		of := name + ".clusterpolicies.kyverno.io"
		testcluster.Soon(t, name+" is known", func() bool { return len(shared.translation(t, of).Status.Rules) == 1 })
		if rule := shared.translation(t, of).Status.Rules[0]; rule.Target == "native" {
			t.Errorf("%s: %+v", name, rule)
		}
	}
	if err := shared.tryCreate(t.Context(), map[string]string{"owner": "me"}); err != nil {
		t.Errorf("with the label: %v", err)
	}
}
