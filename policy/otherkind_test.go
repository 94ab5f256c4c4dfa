package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

func TestException(t *testing.T) {
	f, ds := policy.Parse("e.yaml", []byte(`apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: e, namespace: ns}
spec:
  background: false
  exceptions:
    - {policyName: ns/p, ruleNames: [r, autogen-*]}
  match: {any: [{resources: {kinds: [Pod], names: [a*]}}]}
  conditions: {any: []}
  podSecurity: [{controlName: Seccomp}]
`))
	if len(ds) > 0 || len(f.Exceptions) != 1 {
		t.Fatal(ds)
	}
	e := f.Exceptions[0]
	if e.Invalid || e.Name != "e" || e.Namespace != "ns" || e.Background || e.Exceptions[0].PolicyName != "ns/p" ||
		len(e.Exceptions[0].RuleNames) != 2 || e.Match.Any[0].Names[0].Value != "a*" || e.Conditions.Any == nil || e.PodSecurity[0].ControlName != "Seccomp" {
		t.Errorf("%+v", e)
	}
}

func TestValidatingPolicy(t *testing.T) {
	p := parseGood(t, `apiVersion: policies.kyverno.io/v1beta1
kind: NamespacedValidatingPolicy
metadata: {name: v, namespace: ns}
spec:
  failurePolicy: Ignore
  validationActions: [Audit, Warn]
  evaluation: {mode: JSON, admission: {enabled: false}, background: {enabled: true}}
  autogen: {podControllers: {controllers: [deployments]}, validatingAdmissionPolicy: {enabled: true}}
  webhookConfiguration: {timeoutSeconds: 5}
  matchConstraints:
    matchPolicy: Exact
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: "*", resourceNames: [a]}]
  matchConditions: [{name: a, expression: b}]
  variables: [{name: c, expression: d}]
  validations: [{expression: e, message: f, messageExpression: g, reason: h}]
  auditAnnotations: [{key: i, valueExpression: j}]
`)
	v := p.Validating
	want := &policy.Validating{
		MatchConstraints: v.MatchConstraints,
		MatchConditions:  []policy.CEL{{Name: "a", Expression: "b"}},
		Variables:        []policy.CEL{{Name: "c", Expression: "d"}},
		Validations:      []policy.CELValidation{{Expression: "e", Message: "f", MessageExpression: "g", Reason: "h"}},
		AuditAnnotations: []policy.CEL{{Name: "i", Expression: "j"}},
		Actions:          []string{"Audit", "Warn"},
		Autogen:          []string{"deployments"},
		AutogenVAP:       v.AutogenVAP,
		Evaluation:       policy.Evaluation{AdmissionOff: true, Mode: "JSON"},
	}
	if d := cmp.Diff(want, v, cmpopts.IgnoreTypes(diag.Pos{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if p.Action != policy.Audit || p.FailurePolicy != policy.Ignore || p.Admission || !p.Background || !*v.AutogenVAP || !p.Namespaced() || p.Namespace != "ns" {
		t.Errorf("%+v", p)
	}
	if got := policy.Expand(p); len(got) > 0 {
		t.Errorf("it has rules: %v", got)
	}
}

// Policies of kvap.dev say the same as Kyverno's; its other kinds are passed over.
func TestOwnKinds(t *testing.T) {
	own := parseGood(t, strings.Replace(small, "kyverno.io/v1", "kvap.dev/v1alpha1", 1))
	want := parseGood(t, small)
	if d := cmp.Diff(want.Rules, own.Rules, cmpopts.IgnoreTypes(diag.Pos{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-Kyverno's +own):\n%s", d)
	}
	f, ds := policy.Parse("p.yaml", []byte("apiVersion: kvap.dev/v1alpha1\nkind: Params\nmetadata: {name: p}\n"))
	if len(f.Policies) != 0 || ds.HasErrors() {
		t.Errorf("%d policies, %v", len(f.Policies), ds)
	}
	if _, ds := policy.Parse("p.yaml", []byte(strings.Replace(small, "kyverno.io/v1", "kvap.dev/v1", 1))); !ds.HasErrors() {
		t.Error("a version that does not exist is read")
	}
}

// Where admission is off for Kyverno's sake, the policy judges requests.
func TestHandedOver(t *testing.T) {
	off := strings.Replace(small, "spec:\n", "spec:\n  admission: false\n", 1)
	if parseGood(t, off).Admission {
		t.Error("a policy with admission: false judges requests")
	}
	marked := strings.Replace(off, "{name: small}", `{name: small, annotations: {kvap.dev/kyverno: "off"}}`, 1)
	if !parseGood(t, marked).Admission {
		t.Error("a policy that was handed over to kvap judges no requests")
	}
	const validating = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v, annotations: {kvap.dev/kyverno: "off"}}
spec:
  evaluation: {admission: {enabled: false}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "true"}]
`
	p := parseGood(t, validating)
	if !p.Admission || p.Validating.AdmissionOff {
		t.Error("a ValidatingPolicy that was handed over to kvap judges no requests")
	}
	if p := parseGood(t, strings.Replace(validating, `"off"`, `"on"`, 1)); p.Admission {
		t.Error("a ValidatingPolicy whose admission is off judges requests")
	}
}
