package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
)

// aPolicy is a policy with the rules, each given by its kind and body.
func aPolicy(name, action, rules string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: " + name + "}\nspec:\n" +
		"  validationFailureAction: " + action + "\n  rules:\n" + rules
}

const (
	labelled = `  - name: labelled
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`
	unknown = `  - name: guessed
    match: {any: [{resources: {kinds: [x.io/v1/Widget], operations: [CREATE]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
`
	lookedUp = `  - name: asks
    match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
    context: [{name: all, apiCall: {urlPath: /api/v1/namespaces}}]
    validate: {message: wrong, deny: {conditions: {all: [{key: "{{ all.items }}", operator: Equals, value: a}]}}}
`
	generating = `  - name: quota
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate: {apiVersion: v1, kind: ConfigMap, name: c, namespace: "{{request.object.metadata.name}}", data: {data: {a: b}}}
`
	verifying = `  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{cosignOCI11: true, mutateDigest: false, imageReferences: ["*"]}]
`
	broken = `  - name: broken
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: wrong, pattern: {metadata: {labels: {team: "?*"}}}, deny: {}}
`
)

func plan(t *testing.T, sources ...string) report.Plan {
	t.Helper()
	return MakePlan(compiled(t, sources...), nil, nil)
}

// Policies of kyverno.io have no effect from Kyverno 1.20 on, and are gone with 1.21; those
// in CEL go on; those of kvap.dev have left it.
func TestPlanAhead(t *testing.T) {
	own := strings.Replace(aPolicy("own", "Audit", labelled), "kyverno.io/v1", "kvap.dev/v1alpha1", 1)
	cel := `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: cel}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "true", message: no}]
`
	got := map[string]report.Ahead{}
	for _, p := range plan(t, aPolicy("old", "Audit", labelled), own, cel).Policies {
		got[p.Name] = p.Kyverno
	}
	want := map[string]report.Ahead{"old": {On120: report.NoEffect, On121: report.Gone}, "own": {}, "cel": {On120: report.AsNow, On121: report.AsNow}}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("what becomes of policies (-want +got):\n%s", d)
	}
}

func compiled(t *testing.T, sources ...string) compile.Result {
	t.Helper()
	schemas, err := schema.Builtin(cel.Default.String())
	if err != nil {
		t.Fatal(err)
	}
	in := compile.Input{}
	for _, text := range sources {
		f, found := policy.Parse("policy.yaml", []byte(text))
		in.Policies = append(in.Policies, f.Policies...)
		in.Found = append(in.Found, found...)
	}
	return compile.Policies(in, compile.Options{Translate: translate.Options{
		Release: cel.Default, Schemas: schemas, Pack: translate.PackMatch,
	}})
}

// TestWaves has a policy of each sort in the wave where it belongs.
func TestWaves(t *testing.T) {
	for _, tt := range []struct {
		name, action, rules string
		becomes             string
		wave                int
	}{
		{"audits", "Audit", labelled, "native", auditing},
		{"enforces", "Enforce", labelled, "native", enforcing},
		{"surprises", "Enforce", unknown, "native", different},
		{"asks", "Enforce", lookedUp, "webhook", remaining},
		{"half", "Audit", labelled + lookedUp, "mixed", remaining},
		{"generates", "Audit", generating, "webhook", remaining},
		{"verifies", "Audit", verifying, "unsupported", staying},
		{"wrong", "Audit", labelled + broken, "unsupported", staying},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := plan(t, aPolicy(tt.name, tt.action, tt.rules)).Policies[0]
			if got.Becomes != tt.becomes || got.Wave != tt.wave {
				t.Errorf("becomes %s in wave %d; want %s in wave %d\n%+v", got.Becomes, got.Wave, tt.becomes, tt.wave, got.Rules)
			}
		})
	}
}

// TestEveryPolicyIsInOneWave also changes the order of the files, which must not
// show.
func TestEveryPolicyIsInOneWave(t *testing.T) {
	sources := []string{
		aPolicy("b", "Audit", labelled), aPolicy("a", "Enforce", unknown), aPolicy("d", "Audit", lookedUp),
		aPolicy("c", "Audit", labelled), aPolicy("e", "Audit", broken),
	}
	got := plan(t, sources...)
	seen := map[string]int{}
	for _, w := range got.Waves {
		for _, name := range w.Policies {
			seen[name]++
		}
	}
	if diff := textdiff.Values(map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1}, seen); diff != "" {
		t.Errorf("how often each policy is in a wave (-want +got):\n%s", diff)
	}
	slices.Reverse(sources)
	if diff := textdiff.Values(got, plan(t, sources...)); diff != "" {
		t.Errorf("the order of the files shows (-one +other):\n%s", diff)
	}
}

// TestFewestViolationsFirst: within a wave, what the fewest objects violate goes first;
// a riskier wave stays behind.
func TestFewestViolationsFirst(t *testing.T) {
	result := compiled(t, aPolicy("a", "Audit", labelled), aPolicy("b", "Audit", labelled), aPolicy("c", "Enforce", labelled))
	violations := map[*compile.Rule]report.Violations{}
	for _, r := range result.Rules {
		v := report.Violations{}
		if r.Policy.Name == "a" {
			v.Add(report.Violator{Kind: "ConfigMap", Name: "x"}, "")
		}
		violations[r] = v
	}
	var got []string
	for _, p := range MakePlan(result, nil, violations).Policies {
		got = append(got, p.Name)
	}
	if want := []string{"b", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("the order is %v; want %v", got, want)
	}
}
