package suite

import (
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

// TestPayload pins that policies for JSON documents are judged on the suite's payload,
// and that exceptions which are not read are not passed over in silence.
func TestPayload(t *testing.T) {
	files := map[string]string{
		"policy.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: images}
spec:
  evaluation: {mode: JSON}
  matchConditions: [{name: stages, expression: "has(object.Stages)"}]
  validations: [{expression: "object.Stages.all(s, s.From != 'scratch')", message: not from scratch}]
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: other}
spec:
  evaluation: {mode: JSON}
  matchConditions: [{name: none, expression: "has(object.nothing)"}]
  validations: [{expression: "false"}]
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: excepted}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "false"}]
`,
		"exception.yaml": `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: let-through, namespace: default}
spec: {policyRefs: [{name: excepted, kind: ValidatingPolicy}]}
`,
		"payload.json": `{"Stages": [{"From": "scratch"}]}`,
		"cm.yaml":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [cm.yaml], exceptions: [exception.yaml], jsonPayload: payload.json, results: [
  {policy: images, isValidatingPolicy: true, result: fail},
  {policy: images, isValidatingPolicy: true, result: pass},
  {policy: other, isValidatingPolicy: true, result: skip},
  {policy: excepted, isValidatingPolicy: true, kind: ConfigMap, resources: [a], result: skip}]}`,
	}
	want := ` | payload.json | fail | pass | Ok (JSON document)
 | payload.json | pass | fail | Want pass, got fail
 | payload.json | skip | pass | Ok (JSON document)
 | ConfigMap/a | skip | pass | Ok`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPayloadOfSeveral: a payload is one document. A file with more, with none, or with something behind
// the document that cannot be read is judged by none of them.
func TestPayloadOfSeveral(t *testing.T) {
	files := map[string]string{
		"policy.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: staged}
spec:
  evaluation: {mode: JSON}
  validations: [{expression: "object.stage == 'one'"}]
`,
		"two.yaml":       "stage: one\n---\nstage: two\n",
		"stream.json":    `{"stage": "one"} {"stage": "two"}`,
		"junk.yaml":      "{stage: one} and more\n",
		"none.yaml":      "# nothing\n",
		"dir/a.yaml":     "stage: one\n",
		"dir/b.yaml":     "stage: two\n",
		"commented.yaml": "# one\n---\nstage: one\n",
		"kyverno-test.yaml": `{policies: [policy.yaml], jsonPayloads: [two.yaml, stream.json, junk.yaml, none.yaml, dir, commented.yaml], results: [
  {policy: staged, isValidatingPolicy: true, result: pass}]}`,
	}
	want := ` | two.yaml | pass | notjudged | two.yaml has 2 documents, and a JSON payload is one
 | stream.json | pass | notjudged | stream.json has 2 documents, and a JSON payload is one
 | junk.yaml | pass | notjudged | junk.yaml is no JSON object: something that cannot be read follows the document in braces; correct it, or put --- between documents
 | none.yaml | pass | notjudged | none.yaml has 0 documents, and a JSON payload is one
 | dir | pass | notjudged | dir has 2 documents, and a JSON payload is one
 | commented.yaml | pass | pass | Ok (JSON document)`
	if d := textdiff.Values(want, ran(t, folder(t, files))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
