package controller

import (
	"cmp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// TestStatusOfRulesThatNobodyServes has no rule counted as served that nothing carries
// out: whoever switched Kyverno off for it would lose it.
func TestStatusOfRulesThatNobodyServes(t *testing.T) {
	p := &policy.Policy{Name: "p"}
	mutating := &policy.Rule{Name: "label", Mutate: &policy.Mutate{}}
	generating := &policy.Rule{Name: "quota", Generate: &policy.Generate{}}
	f, _ := policy.Parse("p.yaml", []byte(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: signed
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages: [{cosignOCI11: true, mutateDigest: false, imageReferences: ["*"]}]
`))
	verifying := f.Policies[0].Rules[0]
	verifying.Match = nil
	existing := &policy.Rule{Name: "others", Mutate: &policy.Mutate{Existing: true}}
	for _, tt := range []struct {
		name                 string
		rules                []*policy.Rule
		webhook, unsupported int32
		reason               string
	}{
		{"mutates what is admitted", []*policy.Rule{mutating}, 1, 0, "Serving"},
		{"generates", []*policy.Rule{mutating, generating}, 2, 0, "Serving"},
		{"verifies", []*policy.Rule{verifying}, 0, 1, "NotCarriedOut"},
		{"changes what exists", []*policy.Rule{existing}, 1, 0, "Serving"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := &passResult{compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{}}}
			for _, r := range tt.rules {
				o.rules[p] = append(o.rules[p], &compile.Rule{Policy: p, Source: r, Target: translate.Webhook})
			}
			got := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
			if got.Webhook != tt.webhook || got.Unsupported != tt.unsupported {
				t.Errorf("webhook %d, unsupported %d; want %d and %d", got.Webhook, got.Unsupported, tt.webhook, tt.unsupported)
			}
			said := map[string]metav1.Condition{}
			for _, c := range got.Conditions {
				said[c.Type] = c
			}
			if said[v1alpha1.ConditionFallbackActive].Reason != tt.reason {
				t.Errorf("FallbackActive: %+v", said[v1alpha1.ConditionFallbackActive])
			}
			if wanted := tt.unsupported == 0; (said[v1alpha1.ConditionReady].Status == metav1.ConditionTrue) != wanted {
				t.Errorf("Ready: %+v; want ready: %t", said[v1alpha1.ConditionReady], wanted)
			}
		})
	}
}

// A policy for scans only is judged where objects are scanned, and nowhere else.
func TestStatusOfScansOnly(t *testing.T) {
	p := &policy.Policy{Name: "p", Background: true}
	rule := &compile.Rule{
		Policy: p, Source: &policy.Rule{Name: "r", Validate: &policy.Validate{}}, Target: translate.Unsupported,
		Reason: "admission: false", Codes: []diag.Code{diag.BackgroundOnly},
	}
	for _, scans := range []bool{false, true} {
		o := &passResult{compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{p: {rule}}}}
		if scans {
			o.scans = func([]*compile.Rule) (string, bool) { return "", false }
		}
		got := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{})
		ready := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady)
		if (ready.Status == metav1.ConditionTrue) != scans || (got.Unsupported == 0) != scans || !scans && !strings.Contains(ready.Message, "--reports") {
			t.Errorf("scans %t: %+v, %d unsupported", scans, ready, got.Unsupported)
		}
	}
	p.Background = false // off for scans as well
	o := &passResult{compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{p: {rule}}}, scans: func([]*compile.Rule) (string, bool) { return "", false }}
	if got := o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, v1alpha1.PolicyTranslationStatus{}); got.Unsupported != 1 {
		t.Errorf("off for scans too: %d unsupported", got.Unsupported)
	}
}

// Where reports are not up to date the status says so, and the policy is ready all the same. A
// leader that has not scanned yet leaves what was said before.
func TestStatusOfReports(t *testing.T) {
	p := &policy.Policy{Name: "p", Background: true}
	rules := map[*policy.Policy][]*compile.Rule{p: {{Policy: p, Source: &policy.Rule{Name: "r", Validate: &policy.Validate{}}, Target: translate.Native}}}
	var before v1alpha1.PolicyTranslationStatus
	for _, tt := range []struct {
		problem string
		known   bool
		want    metav1.ConditionStatus
		message string
	}{
		{"", false, "", ""},
		{"", true, metav1.ConditionTrue, "objects that are there are scanned, and reports are up to date"},
		{"secrets cannot be read: forbidden", true, metav1.ConditionFalse, "secrets cannot be read: forbidden"},
		{"", false, metav1.ConditionFalse, "secrets cannot be read: forbidden"},
	} {
		o := &passResult{compileResult: compileResult{rules: rules}, scans: func([]*compile.Rule) (string, bool) { return tt.problem, tt.known }}
		before = o.statusOf(&policySource{policy: p, mode: v1alpha1.ModeEnforce}, before)
		said := cmp.Or(meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReported), &metav1.Condition{})
		if said.Status != tt.want || said.Message != tt.message {
			t.Errorf("%+v: got %+v", tt, said)
		}
		if ready := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady); strings.Contains(ready.Message, "secrets") {
			t.Errorf("Ready: %+v", ready)
		}
	}
}

// A policy that the webhook leaves out is not one that it serves, and others are.
func TestStatusOfLeftOut(t *testing.T) {
	p := &policy.Policy{Name: "p"}
	o := &passResult{
		compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{
			p: {{Policy: p, Source: &policy.Rule{Name: "r", Validate: &policy.Validate{}}, Target: translate.Webhook}},
		}},
		problems: []FallbackProblem{
			{Source: v1alpha1.PolicyReference{Name: "left"}, Message: "it could lock the cluster up", LeftOut: true},
			{Source: v1alpha1.PolicyReference{Name: "risky"}, Message: "no node can join"},
			{Source: v1alpha1.PolicyReference{Name: "poor"}, Message: "may not create", Stuck: "PermissionMissing"},
			{Source: v1alpha1.PolicyReference{Name: "stuck"}, Message: "cannot be written down", Stuck: "BackgroundFailed"},
		},
	}
	for name, want := range map[string]metav1.Condition{
		"left":  {Status: metav1.ConditionFalse, Reason: "LeftOut", Message: "it could lock the cluster up"},
		"risky": {Status: metav1.ConditionTrue, Reason: "Serving", Message: "no node can join"},
		"poor":  {Status: metav1.ConditionFalse, Reason: "PermissionMissing", Message: "may not create"},
		"stuck": {Status: metav1.ConditionFalse, Reason: "BackgroundFailed", Message: "cannot be written down"},
		"fine":  {Status: metav1.ConditionTrue, Reason: "Serving"},
	} {
		s := &policySource{ref: v1alpha1.PolicyReference{Name: name}, policy: p, mode: v1alpha1.ModeEnforce}
		got := meta.FindStatusCondition(o.statusOf(s, v1alpha1.PolicyTranslationStatus{}).Conditions, v1alpha1.ConditionFallbackActive)
		if got.Status != want.Status || got.Reason != want.Reason || !strings.Contains(got.Message, want.Message) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A policy with an expression that does not compile is not ready, in shadow neither: there
// it is to be found out before it is enforced.
func TestStatusOfBroken(t *testing.T) {
	p := &policy.Policy{Name: "p"}
	broken, fine := v1alpha1.PolicyReference{Name: "broken"}, v1alpha1.PolicyReference{Name: "fine"}
	o := &passResult{
		compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{p: {{Policy: p, Target: translate.Webhook}}}},
		problems:      []FallbackProblem{{Source: broken, Message: "variable x: undeclared reference", Broken: true}},
	}
	for _, mode := range []string{v1alpha1.ModeEnforce, v1alpha1.ModeShadow} {
		for ref, want := range map[v1alpha1.PolicyReference]string{broken: "NotCompiled", fine: "Compiled"} {
			conditions := o.statusOf(&policySource{ref: ref, policy: p, mode: mode}, v1alpha1.PolicyTranslationStatus{}).Conditions
			if got := meta.FindStatusCondition(conditions, v1alpha1.ConditionCompiled); got.Reason != want {
				t.Errorf("%s in mode %s: %+v", ref.Name, mode, got)
			}
			if ready := meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionReady); ready != (ref == fine) {
				t.Errorf("%s in mode %s: ready is %t", ref.Name, mode, ready)
			}
		}
	}
}

// A policy whose rule can do nothing but err is not ready, and says why, in shadow too: there
// it is to be found out before it is enforced.
func TestStatusOfRulesThatErr(t *testing.T) {
	p := &policy.Policy{Name: "p"}
	poor, refused, errs := v1alpha1.PolicyReference{Name: "poor"}, v1alpha1.PolicyReference{Name: "refused"}, v1alpha1.PolicyReference{Name: "errs"}
	o := &passResult{
		gone:          func(by string) bool { return by == "gone" },
		compileResult: compileResult{rules: map[*policy.Policy][]*compile.Rule{p: {{Policy: p, Target: translate.Webhook}}}},
		problems: []FallbackProblem{
			{Source: poor, Message: "the ConfigMap team/limits does not exist", Missing: true},
			{Source: refused, Message: "the registry may not be asked", Stuck: ReasonRegistryNotAllowed},
		},
	}
	for _, mode := range []string{v1alpha1.ModeEnforce, v1alpha1.ModeShadow} {
		for ref, want := range map[v1alpha1.PolicyReference]struct {
			condition, reason, message string
			stalls                     bool
		}{
			poor:    {v1alpha1.ConditionParamsResolved, "Missing", "team/limits does not exist", false},
			refused: {v1alpha1.ConditionFallbackActive, ReasonRegistryNotAllowed, "may not be asked", true},
			errs:    {v1alpha1.ConditionFallbackActive, "RuleErrs", "rule r errs on each request that it is asked about; kvap eval shows why: no such key", false},
		} {
			var before v1alpha1.PolicyTranslationStatus
			if ref == errs {
				rules := []v1alpha1.ErringRule{{Rule: "r", Message: "no such key"}}
				before.Erring = []v1alpha1.ErringRules{{By: "gone", Rules: rules[:0]}, {By: "there", Rules: rules}, {By: "before", Generation: 7, Rules: rules}}
			}
			status := o.statusOf(&policySource{ref: ref, policy: p, mode: mode}, before)
			if ref == errs && (len(status.Erring) != 1 || status.Erring[0].By != "there") {
				t.Errorf("%+v", status.Erring)
			}
			conditions := status.Conditions
			for _, kind := range []string{want.condition, v1alpha1.ConditionReady} {
				got := meta.FindStatusCondition(conditions, kind)
				if got.Status != metav1.ConditionFalse || got.Reason != want.reason || !strings.Contains(got.Message, want.message) {
					t.Errorf("%s in mode %s: %+v", ref.Name, mode, got)
				}
			}
			if meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionStalled) != want.stalls {
				t.Errorf("%s in mode %s: stalled is not %t", ref.Name, mode, want.stalls)
			}
		}
	}
}
