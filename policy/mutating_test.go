package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

const mutating = `apiVersion: policies.kyverno.io/v1
kind: NamespacedMutatingPolicy
metadata: {name: p, namespace: shop}
spec:
  failurePolicy: Ignore
  reinvocationPolicy: IfNeeded
  webhookConfiguration: {timeoutSeconds: 5}
  evaluation:
    mode: JSON
    admission: {enabled: true}
    background: {enabled: false}
    mutateExisting: {enabled: true}
    skipBackgroundRequests: false
    useServerSideApply: true
  autogen:
    podControllers: {controllers: [jobs]}
    mutatingAdmissionPolicy: {enabled: true}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions: [{name: a, expression: b}]
  variables: [{name: c, expression: d}]
  mutations:
    - {patchType: ApplyConfiguration, applyConfiguration: {expression: e}}
    - {patchType: JSONPatch, jsonPatch: {expression: f}}
  auditAnnotations: [{key: g, valueExpression: h}]
  targetMatchConstraints:
    expression: i
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [secrets]}]
  targetMatchConditions: [{name: j, expression: k}]
`

func TestMutatingPolicy(t *testing.T) {
	f, ds := policy.Parse("p.yaml", []byte(mutating))
	if len(ds) > 0 || len(f.Policies) != 1 {
		t.Fatal(ds)
	}
	p := f.Policies[0]
	rule := func(operation, resource string) *policy.MatchConstraints {
		return &policy.MatchConstraints{Rules: []policy.ResourceRule{{
			Groups: []string{""}, Versions: []string{"v1"}, Resources: []string{resource}, Operations: []string{operation}, Scope: "*",
		}}}
	}
	yes := true
	want := &policy.Mutating{
		MatchConstraints: rule("CREATE", "pods"),
		MatchConditions:  []policy.CEL{{Name: "a", Expression: "b"}},
		Variables:        []policy.CEL{{Name: "c", Expression: "d"}},
		Mutations: []policy.Mutation{
			{PatchType: policy.ApplyConfiguration, Expression: "e"}, {PatchType: policy.JSONPatch, Expression: "f"},
		},
		AuditAnnotations:   []policy.CEL{{Name: "g", Expression: "h"}},
		ReinvocationPolicy: "IfNeeded", Autogen: []string{"jobs"}, AutogenMAP: &yes,
		Existing: true, ReplacesAtomic: true,
		Targets: rule("UPDATE", "secrets"), TargetExpression: "i", TargetConditions: []policy.CEL{{Name: "j", Expression: "k"}},
		Evaluation: policy.Evaluation{BackgroundOff: true, Mode: "JSON"},
	}
	if d := cmp.Diff(want, p.Mutating, cmpopts.IgnoreTypes(diag.Pos{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if p.FailurePolicy != policy.Ignore || !p.Admission || p.Background || !p.Namespaced() || !p.InCEL() || p.Invalid || !p.Mutating.ChangesOthers() {
		t.Errorf("%+v", p)
	}
	if at := p.Mutating.Mutations[1].Pos; at.Line != 24 || at.Path != "spec.mutations[1]" {
		t.Errorf("the second mutation is at %+v", at)
	}
}

// What is not said has its default, in all versions.
func TestMutatingDefaults(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		f, ds := policy.Parse("p.yaml", []byte(`
apiVersion: policies.kyverno.io/`+version+`
kind: MutatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
`))
		if len(ds) > 0 || len(f.Policies) != 1 {
			t.Fatal(ds)
		}
		p := f.Policies[0]
		m := p.Mutating
		if p.FailurePolicy != policy.Fail || !p.Admission || !p.Background || m.ReinvocationPolicy != "Never" || !m.SkipBackground ||
			m.Existing || m.ReplacesAtomic || m.Autogen != nil || m.ChangesOthers() {
			t.Errorf("%s: %+v %+v", version, p, m)
		}
	}
}

// What is wrong is told at its line.
func TestMutatingErrors(t *testing.T) {
	for _, c := range []struct {
		from, to string
		code     diag.Code
		line     int
	}{
		{"failurePolicy: Ignore", "failurePolicy: Never", diag.OutOfRange, 5},
		{"IfNeeded", "Always", diag.OutOfRange, 6},
		{"timeoutSeconds: 5", "timeoutSeconds: 50", diag.OutOfRange, 7},
		{"mode: JSON", "mode: Envoy", diag.OutOfRange, 9},
		{"mutateExisting: {", "mutateExistng: {", diag.UnknownKey, 12},
		{"useServerSideApply: true", "useServerSideApply: yes please", diag.WrongType, 14},
		{"mutatingAdmissionPolicy", "validatingAdmissionPolicy", diag.UnknownKey, 17},
		{"resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [pods]}]", "resourceRules: []", diag.Missing, 19},
		{"operations: [CREATE]", "operations: [PATCH]", diag.OutOfRange, 19},
		{"matchConditions: [{name: a, expression: b}]", "matchConditions: [{name: a}]", diag.Missing, 20},
		{"variables: [{name: c, expression: d}]", "variables: {c: d}", diag.WrongType, 21},
		{"patchType: ApplyConfiguration, applyConfiguration: {expression: e}", "patchType: Merge, applyConfiguration: {expression: e}", diag.OutOfRange, 23},
		{"patchType: ApplyConfiguration, ", "", diag.Missing, 23},
		{", applyConfiguration: {expression: e}", "", diag.Missing, 23},
		{"applyConfiguration: {expression: e}", "applyConfiguration: {}", diag.Missing, 23},
		{"jsonPatch: {expression: f}", "jsonPatch: {expression: f}, applyConfiguration: {expression: f}", diag.Conflict, 24},
		{"auditAnnotations: [{key: g, ", "auditAnnotations: [{", diag.Missing, 25},
		{"    expression: i", "    expressions: [i]", diag.UnknownKey, 27},
		{"  targetMatchConditions", "  targetMatchCondition", diag.UnknownKey, 29},
		{"  mutations:", "  mutation:", diag.UnknownKey, 22},
	} {
		text := strings.Replace(mutating, c.from, c.to, 1)
		f, ds := policy.Parse("p.yaml", []byte(text))
		if len(ds) != 1 || ds[0].Code != c.code || ds[0].Line != c.line || ds[0].Severity != diag.Error || !f.Policies[0].Invalid {
			t.Errorf("%s: %v", c.to, ds)
		}
	}
	if f, ds := policy.Parse("p.yaml", []byte(strings.Replace(mutating, "io/v1", "io/v2", 1))); !ds.HasErrors() || len(f.Policies) > 0 {
		t.Errorf("version v2: %v", ds)
	}
	if _, ds := policy.Parse("p.yaml", []byte(strings.Replace(mutating, "MutatingPolicy", "MutatinPolicy", 1))); !ds.HasErrors() {
		t.Errorf("a misspelt kind: %v", ds)
	}
}

// Every policy of the corpus is read, and of each there is something to do.
func TestMutatingCorpus(t *testing.T) {
	count := 0
	corpusFilesIn(t, "mutatingpolicy", func(path string) bool { return strings.HasSuffix(path, "/policy.yaml") }, func(path string, data []byte) {
		f, ds := policy.Parse(path, data)
		if ds.HasErrors() || len(f.Policies) == 0 {
			t.Errorf("%s: %v", path, ds)
		}
		for _, p := range f.Policies {
			if p.Mutating == nil || len(p.Mutating.Mutations) == 0 {
				t.Errorf("%s: %+v", path, p)
			}
			count++
		}
	})
	if count < 50 {
		t.Errorf("only %d policies found", count)
	}
}

// The kinds of a namespace have no version v1alpha1, and those of the cluster have three.
func TestVersionsOfKindsInCEL(t *testing.T) {
	for kind, versions := range map[string]string{
		"MutatingPolicy": "v1 v1beta1 v1alpha1", "NamespacedMutatingPolicy": "v1 v1beta1",
		"ValidatingPolicy": "v1 v1beta1 v1alpha1", "NamespacedValidatingPolicy": "v1 v1beta1",
	} {
		var read []string
		for _, version := range []string{"v1", "v1beta1", "v1alpha1", "v2"} {
			text := strings.NewReplacer("policies.kyverno.io/v1", "policies.kyverno.io/"+version, "NamespacedMutatingPolicy", kind).Replace(mutating)
			if strings.Contains(kind, "Validating") {
				text = "apiVersion: policies.kyverno.io/" + version + "\nkind: " + kind + "\nmetadata: {name: p, namespace: shop}\nspec: {validations: [{expression: 'true'}]}\n"
			}
			if f, _ := policy.Parse("p.yaml", []byte(text)); len(f.Policies) == 1 {
				read = append(read, version)
			}
		}
		if got := strings.Join(read, " "); got != versions {
			t.Errorf("%s: read are %s, want %s", kind, got, versions)
		}
	}
}
