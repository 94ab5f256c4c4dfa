package webhook

import (
	"strings"
	"testing"
)

const generatingPolicies = `
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: makes}
spec:
  evaluation: {synchronize: {enabled: true}, skipBackgroundRequests: SKIP}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  generate: [{expression: 'generator.Apply("prod", [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}])'}]
`

// A GeneratingPolicy starts its work where the webhook must not fail, and denies nothing,
// also where the work cannot be kept.
func TestGeneratingPolicyStarts(t *testing.T) {
	var kept started
	c := start(t, Options{Start: kept.start})
	c.Set(set(policies(t, strings.Replace(generatingPolicies, "SKIP", "true", 1))))
	if got := c.ask(t, "/validate/ignore", plain); !got.Allowed || len(got.Warnings) != 0 {
		t.Fatalf("%+v", got)
	}
	if len(kept.work) != 1 || kept.work[0].Rule != "makes" || kept.work[0].Remove || kept.work[0].Changes || kept.work[0].Object["kind"] != "ConfigMap" {
		t.Errorf("kept %+v", kept.work)
	}
	kept.err = errTest("no room")
	if got := c.ask(t, "/validate/ignore", plain); !got.Allowed || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "no room") {
		t.Errorf("%+v", got)
	}
}

type errTest string

func (e errTest) Error() string { return string(e) }

// What the program itself writes starts nothing, unless the policy says so.
func TestGeneratingPolicySkipsOwn(t *testing.T) {
	for skip, want := range map[string]int{"true": 0, "false": 1} {
		var kept started
		c := start(t, Options{Start: kept.start, User: "me"})
		c.Set(set(policies(t, strings.Replace(generatingPolicies, "SKIP", skip, 1))))
		if got := c.ask(t, "/validate/ignore", plain, `{"userInfo": {"username": "me"}}`); !got.Allowed || len(kept.work) != want {
			t.Errorf("skip %s: %+v, kept %v", skip, got, kept.work)
		}
	}
}

// A MutatingPolicy that changes existing objects starts that at the place of what validates,
// beside what it changes at admission; one with targets changes nothing there.
func TestMutatingPolicyStarts(t *testing.T) {
	const text = `
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: changes}
spec:
  evaluation: {mutateExisting: {enabled: true}, skipBackgroundRequests: SKIP}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  TARGETS
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": "x"}}}'}
`
	for targets, patched := range map[string]bool{`targetMatchConstraints: {expression: 'resource.List("v1", "secrets", "prod")'}`: false, "": true} {
		for skip, want := range map[string]int{"true": 0, "false": 1} {
			var kept started
			c := start(t, Options{Start: kept.start, User: "me"})
			c.Set(set(policies(t, strings.NewReplacer("SKIP", skip, "TARGETS", targets).Replace(text))))
			if got := c.ask(t, "/validate/fail", plain, `{"userInfo": {"username": "me"}}`); !got.Allowed || len(kept.work) != want || want == 1 && !kept.work[0].Changes {
				t.Errorf("skip %s: %+v, kept %v", skip, got, kept.work)
			}
			if targets == "" {
				if got := c.ask(t, "/mutate/fail/once", plain); !got.Allowed || (len(got.Patch) > 0) != patched {
					t.Errorf("%+v", got)
				}
			}
		}
	}
}
