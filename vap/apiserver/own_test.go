package apiserver

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/vap"
)

// denying is a policy that denies what its resource rules match.
func denying(rules ...vap.ResourceRule) *vap.Draft {
	return &vap.Draft{
		Base: "deny", Constraints: vap.Constraints{Rules: rules},
		Validations: []vap.Validation{{Expr: cel.False(), Message: "no"}}, Members: []vap.Member{{Policy: "deny", Rule: "r"}},
		Bindings: []vap.Binding{{Actions: []string{"Deny"}}},
	}
}

func ruleFor(group, resource string, operations ...string) vap.ResourceRule {
	return vap.ResourceRule{Groups: []string{group}, Versions: []string{"*"}, Resources: []string{resource}, Operations: operations}
}

func onEverything() vap.ResourceRule { return ruleFor("*", "*/*", "*") }

// A policy on every kind judges nothing that kvap's controller writes, and no deletion of
// a policy of kvap.dev, and everything else.
func TestOwnObjects(t *testing.T) {
	for _, tt := range []struct {
		group, resource, sub, name string
		operation                  admissionv1.Operation
		want                       Outcome
	}{
		{"kvap.dev", "policytranslations", "", "a", admissionv1.Create, NoMatch},
		{"kvap.dev", "policytranslations", "", "a", admissionv1.Update, NoMatch},
		{"kvap.dev", "policytranslations", "", "a", admissionv1.Delete, NoMatch},
		{"kvap.dev", "policytranslations", "status", "a", admissionv1.Update, NoMatch},
		{"kvap.dev", "generaterequests", "", "a", admissionv1.Create, NoMatch},
		{"kvap.dev", "generaterequests", "status", "a", admissionv1.Update, NoMatch},
		{"kvap.dev", "generaterequests", "", "a", admissionv1.Delete, NoMatch},
		{"kvap.dev", "params", "", "a", admissionv1.Create, NoMatch},
		{"kvap.dev", "params", "", "a", admissionv1.Update, NoMatch},
		{"kvap.dev", "params", "", "a", admissionv1.Delete, NoMatch},
		{"kvap.dev", "policies", "", "a", admissionv1.Delete, NoMatch},
		{"kvap.dev", "clusterpolicies", "", "a", admissionv1.Delete, NoMatch},
		{"kvap.dev", "migrations", "", "a", admissionv1.Delete, NoMatch},
		{"kvap.dev", "policies", "", "a", admissionv1.Create, Deny},
		{"kvap.dev", "clusterpolicies", "", "a", admissionv1.Update, Deny},
		{"kvap.dev", "others", "", "a", admissionv1.Delete, Deny},
		{"kyverno.io", "clusterpolicies", "", "a", admissionv1.Delete, NoMatch},
		{"kyverno.io", "policies", "", "a", admissionv1.Delete, NoMatch},
		{"kyverno.io", "policies", "", "a", admissionv1.Update, Deny},
		{"kyverno.io", "policyexceptions", "", "a", admissionv1.Delete, Deny},
		{"policies.kyverno.io", "validatingpolicies", "", "a", admissionv1.Delete, NoMatch},
		{"policies.kyverno.io", "namespacedvalidatingpolicies", "", "a", admissionv1.Delete, NoMatch},
		{"coordination.k8s.io", "leases", "", "kvap-controller.kvap.dev", admissionv1.Create, NoMatch},
		{"coordination.k8s.io", "leases", "", "kvap-controller.kvap.dev", admissionv1.Update, NoMatch},
		{"coordination.k8s.io", "leases", "", "another", admissionv1.Update, Deny},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "kvap-webhook", admissionv1.Create, NoMatch},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", "", "kvap-webhook", admissionv1.Delete, NoMatch},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "kvap-webhook", admissionv1.Update, NoMatch},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "kvap-webhook-probe", admissionv1.Create, NoMatch},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", "", "another", admissionv1.Update, Deny},
		{"", "secrets", "", "kvap-webhook", admissionv1.Update, Deny},
		{"", "pods", "status", "a", admissionv1.Update, Deny},
	} {
		// The names of kinds do not matter; the API server matches resources.
		r := &admissionv1.AdmissionRequest{
			UID: "1", Kind: metav1.GroupVersionKind{Group: tt.group, Version: "v1", Kind: "Thing"},
			Resource:    metav1.GroupVersionResource{Group: tt.group, Version: "v1", Resource: tt.resource},
			SubResource: tt.sub, Name: tt.name, Namespace: "app", Operation: tt.operation,
		}
		object := runtime.RawExtension{Raw: []byte(`{"apiVersion":"` + tt.group + `/v1","kind":"Thing","metadata":{"name":"` + tt.name + `"}}`)}
		if tt.group == "" {
			object.Raw = []byte(`{"apiVersion":"v1","kind":"Thing","metadata":{"name":"` + tt.name + `"}}`)
		}
		if tt.operation != admissionv1.Delete {
			r.Object = object
		}
		if tt.operation != admissionv1.Create {
			r.OldObject = object
		}
		if got := verdicts(t, judge(t, JudgeOptions{}, denying(onEverything())), r, nil); got[0].Outcome != tt.want {
			t.Errorf("%s of %s/%s/%s %s: %s, want %s", tt.operation, tt.group, tt.resource, tt.sub, tt.name, got[0].Outcome, tt.want)
		}
	}
}

// Only policies that could judge such objects mention them.
func TestOwnObjectsAreMentionedWhereTheyMatter(t *testing.T) {
	own := func(d *vap.Draft) []admissionregistrationv1.NamedRuleWithOperations {
		return emit(t, d, vap.EmitOptions{}).Policy.Spec.MatchConstraints.ExcludeResourceRules
	}
	for _, tt := range []struct {
		name string
		rule vap.ResourceRule
		want int
	}{
		{"everything", onEverything(), 6},
		{"each kind", ruleFor("*", "*", "CREATE", "DELETE"), 6},
		{"what is made", ruleFor("*", "*", "CREATE"), 3},
		{"each status", ruleFor("*", "*/status", "UPDATE"), 1},
		{"each part of another name", ruleFor("*", "*/scale", "UPDATE"), 0},
		{"kinds of kvap", ruleFor("kvap.dev", "*", "*"), 2},
		{"policies of any group", ruleFor("*", "policies", "DELETE"), 1},
		{"all of a group of policies", ruleFor("kyverno.io", "*", "DELETE"), 1},
		{"policies that a rule names", ruleFor("kyverno.io", "clusterpolicies", "DELETE"), 0},
		{"policies of any group that change", ruleFor("*", "policies", "UPDATE"), 0},
		{"all parts of a kind", ruleFor("kvap.dev", "params/*", "*"), 1},
		{"Leases", ruleFor("coordination.k8s.io", "leases", "UPDATE"), 1},
		{"Pods", ruleFor("", "pods", "*"), 0},
		{"all of a group", ruleFor("apps", "*/*", "*"), 0},
	} {
		if got := own(denying(tt.rule)); len(got) != tt.want {
			t.Errorf("%s: %d rules, want %d: %v", tt.name, len(got), tt.want, got)
		}
	}
	named := own(denying(onEverything(), ruleFor("kyverno.io", "clusterpolicies", "DELETE")))
	if sources := named[len(named)-2]; !slices.Equal(sources.Resources, []string{"policies"}) {
		t.Errorf("beside a kind that it names, a rule on everything leaves out %v", sources.Resources)
	}
	d := denying(onEverything())
	d.Constraints.Exclude = []vap.ResourceRule{ruleFor("", "pods", "*")}
	if got := own(d); len(got) != 7 || got[0].Resources[0] != "pods" {
		t.Errorf("what the policy leaves out itself: %v", got)
	}
}
