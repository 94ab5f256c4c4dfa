package convert

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/translate"
)

// costsOf are the costs with policies, each given by its spec.
func costsOf(t *testing.T, specs ...string) []string {
	t.Helper()
	flags := DefaultFlags()
	flags.Pack = string(translate.PackMatch)
	choices, err := flags.Choices()
	if err != nil {
		t.Fatal(err)
	}
	var sources []input.Source
	for i, spec := range specs {
		text := fmt.Sprintf("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p%d}\nspec: {%s}\n", i, spec)
		sources = append(sources, input.Source{Name: fmt.Sprintf("p%d.yaml", i), Data: []byte(text)})
	}
	done := Compile(sources, choices)
	if done.Found.HasErrors() {
		t.Fatal(done.Found)
	}
	var out []string
	for _, c := range done.RequestCosts(choices.Translate.Schemas) {
		out = append(out, fmt.Sprintf("%s %d > %s + %d", strings.Trim(c.Group+"/"+c.Resource, "/"), c.Before.Kyverno, c.After, c.After.Objects))
	}
	return out
}

// TestRequestCosts: Kyverno has a webhook for each verb and failure policy, and one for
// each policy with conditions; what is native calls none.
func TestRequestCosts(t *testing.T) {
	const (
		kinds   = "match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}"
		pattern = "validate: {message: m, pattern: {metadata: {labels: {team: '?*'}}}}"
		native  = "rules: [{name: r, " + kinds + ", " + pattern + "}]"
		asking  = "rules: [{name: r, " + kinds + ", context: [{name: all, apiCall: {urlPath: /api/v1/namespaces}}], validate: {message: m, " +
			"deny: {conditions: {all: [{key: '{{ all.items }}', operator: Equals, value: a}]}}}}]"
		mutating = "rules: [{name: r, " + kinds + ", mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}}]"
		images   = "rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, verifyImages: [{cosignOCI11: true, mutateDigest: false, imageReferences: ['*']}]}]"
		within   = "rules: [{name: r, match: {any: [{resources: {kinds: [ConfigMap], namespaces: [a], operations: [CREATE]}}]}, " + pattern + "}]"
		all      = "rules: [{name: r, match: {any: [{resources: {kinds: ['*'], operations: [CREATE]}}]}, " + pattern + "}]"
	)
	for _, tt := range []struct {
		name  string
		specs []string
		want  []string
	}{
		{"native", []string{native}, []string{"configmaps 1 > 0 + 1"}},
		{"one call for many", []string{native, within, asking}, []string{"configmaps 1 > 1 (kvap) + 1"}},
		{"both failure policies", []string{native, "failurePolicy: Ignore, " + native}, []string{"configmaps 2 > 0 + 2"}},
		{"conditions", []string{native, "webhookConfiguration: {matchConditions: [{name: c, expression: 'true'}]}, " + asking}, []string{"configmaps 2 > 1 (kvap) + 1"}},
		{"mutate", []string{native, mutating}, []string{"configmaps 2 > 1 (kvap) + 1"}},
		{"everything", []string{native, all}, []string{"configmaps 1 > 0 + 2", "*/* 1 > 0 + 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := textdiff.Values(tt.want, costsOf(t, tt.specs...)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if got := costsOf(t, images)[0]; !strings.HasSuffix(got, "2 > 2 (Kyverno) + 0") {
		t.Errorf("images, which stay with Kyverno: %s", got)
	}
	if got := strings.Join(costsOf(t, images), "\n"); !strings.Contains(got, "\napps/deployments 2 > 2 (Kyverno) + 0") {
		t.Errorf("images of pod controllers, of which Kyverno asks too:\n%s", got)
	}
}
