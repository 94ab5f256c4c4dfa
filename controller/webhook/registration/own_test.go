package registration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

const denyAll = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [%s]}, clusterRoles: [edit]}]}
    validate: {failureAction: Enforce, message: m, deny: {}}
`

// ownConditions are those that keep kvap's own objects, and deletions of policies, away from
// an entry for some kinds.
func ownConditions(t *testing.T, kind string) []admissionregistrationv1.MatchCondition {
	t.Helper()
	objects, _ := Configure(parse(t, fmt.Appendf(nil, denyAll, kind)), kinds(t), options())
	return slices.DeleteFunc(objects.Validating.Webhooks[0].MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
		return c.Name != ownName && c.Name != sourcesName
	})
}

// onEverything is a policy of the API server that denies all requests, but for those that its
// conditions and what it leaves out keep away.
func onEverything(name string, conditions []admissionregistrationv1.MatchCondition, exclude []vap.ResourceRule) *admissionregistrationv1.ValidatingAdmissionPolicy {
	fail, equivalent := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent
	rule := func(r vap.ResourceRule) admissionregistrationv1.NamedRuleWithOperations {
		out := admissionregistrationv1.NamedRuleWithOperations{ResourceNames: r.Names, RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Rule: admissionregistrationv1.Rule{APIGroups: r.Groups, APIVersions: r.Versions, Resources: r.Resources},
		}}
		for _, o := range r.Operations {
			out.Operations = append(out.Operations, admissionregistrationv1.OperationType(o))
		}
		return out
	}
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail, MatchConditions: conditions, Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
			MatchConstraints: &admissionregistrationv1.MatchResources{
				MatchPolicy: &equivalent, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{rule(everything())},
			},
		},
	}
	for _, r := range exclude {
		p.Spec.MatchConstraints.ExcludeResourceRules = append(p.Spec.MatchConstraints.ExcludeResourceRules, rule(r))
	}
	return p
}

func everything() vap.ResourceRule {
	return vap.ResourceRule{Groups: []string{"*"}, Versions: []string{"*"}, Resources: []string{"*/*"}, Operations: []string{"*"}}
}

// The webhook is not sent what native policies leave out, and is sent everything else.
// (Of configurations of webhooks the API server asks none.)
func TestOwnObjects(t *testing.T) {
	own := vap.OwnObjects([]vap.ResourceRule{everything()})
	sent, native := onEverything("sent", ownConditions(t, `"*"`), nil), onEverything("native", nil, own)
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, p := range []*admissionregistrationv1.ValidatingAdmissionPolicy{sent, native} {
		bindings = append(bindings, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: p.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		})
	}
	judge, err := apiserver.NewJudge([]*admissionregistrationv1.ValidatingAdmissionPolicy{sent, native}, bindings, apiserver.JudgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups, resources, names := []string{"", "apps"}, []string{"configmaps", "deployments/scale", "policyexceptions"}, []string{"a", ""} // without one: of a collection, or generated
	for _, r := range own {
		if r.Groups[0] != admissionregistrationv1.GroupName {
			groups, resources, names = append(groups, r.Groups...), append(resources, r.Resources...), append(names, r.Names...)
		}
	}
	outcomes := map[apiserver.Outcome]int{}
	for _, group := range groups {
		for _, resource := range resources {
			for _, name := range names {
				for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update, admissionv1.Delete} {
					r := requestFor(group, resource, name, operation)
					got, err := judge.Review(t.Context(), r, nil)
					if err != nil {
						t.Fatal(err)
					}
					if got[0].Outcome != got[1].Outcome {
						t.Errorf("%s of %s/%s %q: the webhook %s, native policies %s", operation, group, resource, name, got[0].Outcome, got[1].Outcome)
					}
					outcomes[got[0].Outcome]++
				}
			}
		}
	}
	if outcomes[apiserver.NoMatch] == 0 || outcomes[apiserver.Deny] == 0 {
		t.Errorf("nothing is shown: %v", outcomes)
	}
}

// requestFor is a request about an object, of which the names of kinds do not matter.
func requestFor(group, resource, name string, operation admissionv1.Operation) *admissionv1.AdmissionRequest {
	resource, sub, _ := strings.Cut(resource, "/")
	r := &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: group, Version: "v1", Kind: "Thing"},
		Resource:    metav1.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
		SubResource: sub, Name: name, Namespace: "app", Operation: operation,
	}
	object := runtime.RawExtension{Raw: []byte(`{"apiVersion":"kvap.dev/v1","kind":"Thing","metadata":{}}`)}
	if operation != admissionv1.Delete {
		r.Object = object
	}
	if operation != admissionv1.Create {
		r.OldObject = object
	}
	return r
}

// Only entries that could be sent such objects have the conditions.
func TestOwnObjectsAreMentionedWhereTheyMatter(t *testing.T) {
	for kind, want := range map[string][]string{
		`"*"`: {ownName, sourcesName}, `"*/*"`: {ownName, sourcesName}, "Lease": {ownName}, `"kyverno.io/v1/*"`: {sourcesName},
		"Pod": nil, `"apps/v1/*"`: nil, "Deployment/scale": nil,
	} {
		var got []string
		for _, c := range ownConditions(t, kind) {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	if left := sources([]ruleTarget{
		{"*", "*", "*", anyScope, "*"}, {"kyverno.io", "v1", "clusterpolicies", anyScope, "DELETE"},
	}); slices.Contains(left, "kyverno.io/clusterpolicies") || !slices.Contains(left, "kyverno.io/policies") {
		t.Errorf("beside a kind that a rule names, %v are left out", left)
	}
}
