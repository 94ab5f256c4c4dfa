package suite

import (
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

const mutatingPolicies = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: first}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  matchConditions: [{name: a, expression: "object.metadata.name != 'left'"}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"team": object.metadata.labels.team + "!"}}}'}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: last}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data", value: {"team": string(object.metadata.?labels.team.orValue("none")), "asked": string(has(request.object.metadata.labels))}}]'}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: others}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  targetMatchConstraints: {expression: object}
  mutations: []
`

// Policies in CEL run behind those with rules, and a row has the object behind all.
func TestMutatingRows(t *testing.T) {
	got := ran(t, folder(t, map[string]string{
		"policy.yaml": mutatingPolicies + "---\n" + mutateFirst,
		"resources.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: left}
`,
		"patched.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {team: red!}, annotations: {team: red}}
data: {team: red!, asked: "false"}
`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], results: [
{policy: first, isMutatingPolicy: true, kind: ConfigMap, resources: [left], result: skip},
{policy: last, isMutatingPolicy: true, kind: ConfigMap, resources: [a], patchedResources: patched.yaml, failOnMissingResources: true, result: pass},
{policy: last, kind: ConfigMap, resources: [a], result: skip},
{policy: others, isMutatingPolicy: true, kind: ConfigMap, resources: [a], result: pass},
]}`,
	}))
	const want = ` | ConfigMap/left | skip | pass | Ok (webhook)
 | ConfigMap/a | pass | pass | Ok (webhook)
 | ConfigMap/a | skip | fail | Want skip, got pass
 | ConfigMap/a | pass | excluded | no rule looks at the resource`
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDeployedMutations pins that native policies that mutate are judged as they are, and that
// what they make of a resource is compared.
func TestDeployedMutations(t *testing.T) {
	policy := func(name, bound string) string {
		return `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: ` + name + `}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  reinvocationPolicy: Never
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': object.data.team}}}"}
` + bound
	}
	files := map[string]string{
		"policies.yaml": policy("everywhere", "") + "---\n" + policy("bound", `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: bound}
spec: {policyName: bound, matchResources: {objectSelector: {matchLabels: {bound: "yes"}}}}
`),
		"resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {team: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: marked, labels: {bound: "yes"}}, data: {team: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}
`,
		"patched.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, labels: {team: a}}, data: {team: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: marked, labels: {bound: "yes", team: b}}, data: {team: a}}
`,
		"kyverno-test.yaml": `{policies: [policies.yaml], resources: [resources.yaml], results: [
  {policy: everywhere, kind: ConfigMap, resources: [plain], isMutatingAdmissionPolicy: true, result: pass, patchedResources: patched.yaml},
  {policy: everywhere, kind: ConfigMap, resources: [bare], isMutatingAdmissionPolicy: true, result: error},
  {policy: bound, kind: ConfigMap, resources: [plain], isMutatingAdmissionPolicy: true, result: skip},
  {policy: bound, kind: ConfigMap, resources: [marked], result: pass, patchedResources: patched.yaml}]}`,
	}
	want := ` | ConfigMap/plain | pass | pass | Ok
 | ConfigMap/bare | error | pass | Ok
 | ConfigMap/plain | skip | pass | Excluded
 | ConfigMap/marked | pass | fail | ConfigMap/default/marked differs from patched.yaml`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
