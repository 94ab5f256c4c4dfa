package incluster

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/controller/webhook/registration"
)

// Kyverno's kinds are kvap's to look at where Kyverno does not.
func TestPolicyChecks(t *testing.T) {
	there := []string{"kyverno-resource-validating-webhook-cfg", "kyverno-policy-validating-webhook-cfg"}
	for _, c := range []struct {
		checks        PolicyChecks
		others        []string
		kyverno, some bool
	}{
		{CheckAuto, there, false, true},
		{CheckAuto, there[:1], true, true},
		{CheckAll, there, true, true},
		{CheckOwn, nil, false, true},
		{CheckNone, nil, false, false},
	} {
		if kyverno, some := c.checks.of(c.others); kyverno != c.kyverno || some != c.some {
			t.Errorf("%s beside %v is %v, %v", c.checks, c.others, kyverno, some)
		}
	}
}

// A growing cluster serves one kind more each time that it is asked.
type growing struct {
	now, later registration.Table
}

func (g *growing) Table() *registration.Table { return &g.now }

func (g *growing) Refresh() error {
	g.now, g.later = append(g.now, g.later...), nil
	return nil
}

func reviewer(t *testing.T) *policyReviewer {
	t.Helper()
	served := &growing{
		now: registration.Table{
			{Version: "v1", Kind: "Pod", Plural: "pods", Namespaced: true, Subresources: []string{"exec"}},
			{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true},
			{Version: "v1", Kind: "Namespace", Plural: "namespaces"},
		},
		later: registration.Table{{Group: "example.com", Version: "v1", Kind: "Region", Plural: "regions"}},
	}
	r, err := newPolicyReviewer(served, cel.Default, controller.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const written = "apiVersion: kvap.dev/v1alpha1\nkind: Policy\nmetadata: {name: written, namespace: team, uid: x, generation: 3, managedFields: []}\nspec:\n  rules:\n  - name: one\n    match: {any: [{resources: {kinds: [ConfigMap]}}]}\n"

// What is refused and warned of has its words first, and its code and place behind.
func TestPolicyReview(t *testing.T) {
	r := reviewer(t)
	for _, c := range []struct{ text, refusal, warning string }{
		{written + "    validate: {failureAction: Enforce, message: No., pattern: {metadata: {labels: {a: b}}}}\nstatus: {ready: true}\n", "", ""},
		{written + "    validate: {pattern: {metadata: {labels: {a: \"{{ request.userInfo.username }}\"}}}}\n", "variable {{ request.userInfo.username }} is not allowed in background mode (background: true, the default): a scan knows no user; set background: false (KV601 at spec.rules[0].validate.pattern.metadata.labels.a)", ""},
		{strings.Replace(written, "ConfigMap", "Region", 1) + "    validate: {deny: {}}\n", "Region is a kind outside of namespaces", ""},
		{strings.Replace(written, "ConfigMap", "Unheard", 1) + "    validate: {pattern: {metadata: {labels: {a: b}}}}\n", "", "the cluster serves no kind Unheard, so the rule is about none of its objects until it does; correct the name, or install the kind (KV603 at spec.rules[0].match.any[0].resources.kinds[0])"},
		{written + "    context: [{name: all, apiCall: {urlPath: /api/v1/namespaces/team/pods}}]\n    validate: {deny: {conditions: {all: [{key: \"{{ all.items | length(@) }}\", operator: GreaterThan, value: 3}]}}}\n", "", "the rule one will not be native: "},
		{strings.Replace(written, "ConfigMap", "Pod", 1) + "    validate: {pattern: {spec: {securityContext: \"!x\"}}}\n", "", "(KV330 at spec.rules[0]"},
		{"apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: old}\nspec:\n  schedule: soon\n  match: {any: [{resources: {kinds: [Pod]}}]}\n", "(KV605 at spec.schedule)", ""},
		{"apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: documents}\nspec:\n  evaluation: {mode: Envoy}\n  validations: [{expression: \"true\"}]\n", "", "mode cannot be"},
	} {
		refusals, warnings := r.review(t.Context(), parsed(t, c.text), nil)
		has := func(list []string, want string) bool {
			return want == "" && len(list) == 0 || want != "" && slices.ContainsFunc(list, func(text string) bool { return strings.Contains(text, want) })
		}
		if !has(refusals, c.refusal) || c.refusal == "" && !has(warnings, c.warning) {
			t.Errorf("refused: %q, want %q\nwarned: %q, want %q\n%s", refusals, c.refusal, warnings, c.warning, c.text)
		}
	}
}

// An update is compared with what it replaces.
func TestPolicyReviewOfUpdates(t *testing.T) {
	r := reviewer(t)
	text := written + "    generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, namespace: team, name: made, data: {data: {a: b}}}\n"
	before := parsed(t, text)
	for change, want := range map[string]string{"kinds: [ConfigMap]=kinds: [Pod]": "KV608", "name: one=name: two": "KV608", "a: b=a: c": ""} {
		old, with, _ := strings.Cut(change, "=")
		refusals, _ := r.review(t.Context(), parsed(t, strings.Replace(text, old, with, 1)), before)
		if got := strings.Join(refusals, "\n"); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s is refused: %q, want %q", change, got, want)
		}
	}
	refusals, warnings := r.review(t.Context(), parsed(t, strings.Replace(text, "name: made", "name: other", 1)), before)
	if len(refusals) > 0 || !strings.HasPrefix(strings.Join(warnings, "\n"), "no synchronization will be performed to the old target resource upon policy updates") {
		t.Errorf("refused: %q, warned: %q", refusals, warnings)
	}
}
