package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kvap/kvap/policy"
)

// foreign are the kinds that Kyverno 1.19 and two other engines register, in the versions
// that they serve. What stands behind is a spec that has nothing wrong with it; of a kind
// that is read in no version it does not matter.
const foreign = `
kyverno.io/v1,v2beta1 ClusterPolicy {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {spec: {hostPID: false}}}}]}
kyverno.io/v1,v2beta1 Policy {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {spec: {hostPID: false}}}}]}
kyverno.io/v2,v2beta1 PolicyException {exceptions: [{policyName: beside, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod]}}]}}
kyverno.io/v2,v2beta1 CleanupPolicy {schedule: "0 0 * * *", match: {any: [{resources: {kinds: [Pod]}}]}}
kyverno.io/v2,v2beta1 ClusterCleanupPolicy {schedule: "0 0 * * *", match: {any: [{resources: {kinds: [Pod]}}]}}
kyverno.io/v2,v2beta1,v2alpha1 GlobalContextEntry {kubernetesResource: {version: v1, resource: pods}}
kyverno.io/v2 UpdateRequest {}
policies.kyverno.io/v1,v1beta1,v1alpha1 ValidatingPolicy {MATCH, validations: [{expression: "true"}]}
policies.kyverno.io/v1,v1beta1 NamespacedValidatingPolicy {MATCH, validations: [{expression: "true"}]}
policies.kyverno.io/v1,v1beta1,v1alpha1 MutatingPolicy {MATCH, mutations: []}
policies.kyverno.io/v1,v1beta1 NamespacedMutatingPolicy {MATCH, mutations: []}
policies.kyverno.io/v1,v1beta1,v1alpha1 GeneratingPolicy {MATCH, generate: [{expression: "true"}]}
policies.kyverno.io/v1,v1beta1 NamespacedGeneratingPolicy {MATCH, generate: [{expression: "true"}]}
policies.kyverno.io/v1,v1beta1,v1alpha1 DeletingPolicy {MATCH, schedule: "0 0 * * *"}
policies.kyverno.io/v1,v1beta1 NamespacedDeletingPolicy {MATCH, schedule: "0 0 * * *"}
policies.kyverno.io/v1,v1beta1,v1alpha1 ImageValidatingPolicy {MATCH, attestors: [], validations: [{expression: "true"}]}
policies.kyverno.io/v1,v1beta1 NamespacedImageValidatingPolicy {MATCH, attestors: [], validations: [{expression: "true"}]}
policies.kyverno.io/v1,v1beta1,v1alpha1 PolicyException {policyRefs: [{kind: ValidatingPolicy, name: native}]}
reports.kyverno.io/v1 ClusterEphemeralReport {}
reports.kyverno.io/v1 EphemeralReport {}
wgpolicyk8s.io/v1alpha2 ClusterPolicyReport {}
wgpolicyk8s.io/v1alpha2 PolicyReport {}
templates.gatekeeper.sh/v1,v1beta1,v1alpha1 ConstraintTemplate {}
constraints.gatekeeper.sh/v1beta1 K8sRequiredLabels {}
mutations.gatekeeper.sh/v1,v1beta1,v1alpha1 Assign {}
mutations.gatekeeper.sh/v1,v1beta1,v1alpha1 AssignMetadata {}
mutations.gatekeeper.sh/v1,v1beta1,v1alpha1 ModifySet {}
mutations.gatekeeper.sh/v1alpha1 AssignImage {}
config.gatekeeper.sh/v1alpha1 Config {}
syncset.gatekeeper.sh/v1alpha1 SyncSet {}
expansion.gatekeeper.sh/v1beta1,v1alpha1 ExpansionTemplate {}
externaldata.gatekeeper.sh/v1beta1,v1alpha1 Provider {}
status.gatekeeper.sh/v1beta1 ConstraintPodStatus {}
connection.gatekeeper.sh/v1alpha1 Connection {}
policies.kubewarden.io/v1,v1alpha2 ClusterAdmissionPolicy {}
policies.kubewarden.io/v1,v1alpha2 AdmissionPolicy {}
policies.kubewarden.io/v1 ClusterAdmissionPolicyGroup {}
policies.kubewarden.io/v1 AdmissionPolicyGroup {}
policies.kubewarden.io/v1,v1alpha2 PolicyServer {}
`

// beside are the policies that the exceptions are from.
const beside = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: beside}
spec:
  rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, pattern: {spec: {hostPID: false}}}}]
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: native}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "true"}]
`

// No document is uncounted: of each kind that Kyverno and two other engines register the
// report has a line, a row of its own or a diagnostic at its place.
func TestNoDocumentIsUncounted(t *testing.T) {
	dir, env := workplace(t)
	file := "---\n" + beside
	type document struct {
		kind string
		line int
	}
	var documents []document
	const match = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}`
	for line := range strings.Lines(strings.TrimSpace(foreign)) {
		at, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		kind, spec, _ := strings.Cut(rest, " ")
		group, versions, _ := strings.Cut(at, "/")
		for version := range strings.SplitSeq(versions, ",") {
			file += "---\n"
			documents = append(documents, document{group + "/" + version + " " + kind, 1 + strings.Count(file, "\n")})
			file += fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: d%d, namespace: shop}\nspec: %s\n", group, version, kind, len(documents), strings.Replace(spec, "MATCH", match, 1))
		}
	}
	folder := filepath.Join(dir, "all")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("kvap", "convert", "all", "--report", "-", "--report-format", "json")
	cmd.Path = filepath.Join(dir, "bin", "kvap")
	cmd.Dir, cmd.Env = dir, env
	out, _ := cmd.Output() // what is not read makes it end with 4
	var report struct {
		Policies []struct {
			Kind  string
			Name  string
			Rules []struct{ Line int }
		}
		Diagnostics []struct {
			Code string
			Line int
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rows := map[string]bool{}
	for _, p := range report.Policies {
		rows[p.Kind+" "+p.Name] = len(p.Rules) > 0
	}
	for i, d := range documents {
		_, kind, _ := strings.Cut(d.kind, " ")
		counted := rows[fmt.Sprintf("%s d%d", kind, i+1)]
		for _, one := range report.Diagnostics {
			counted = counted || one.Line == d.line
		}
		if !counted {
			t.Errorf("there is no line about the %s", d.kind)
		}
	}
	if !policy.MayHold([]byte(file)) {
		t.Error("a folder would pass the file over")
	}
}
