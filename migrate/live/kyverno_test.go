package live

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/webhook/registration"
)

// Kyverno is not seen to judge by a policy as long as the API server asks it about a part
// only of what the policy is about, or about other things.
func TestKyvernoJudges(t *testing.T) {
	const both = `{metadata: {name: both}, kind: ClusterPolicy, apiVersion: kyverno.io/v1, status: {ready: true}, spec: {rules: [
  {name: r, match: {any: [{resources: {kinds: [ConfigMap, Secret]}}]}, validate: {message: m, pattern: {metadata: {labels: {a: "?*"}}}}}]}}`
	policy := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(both), &policy.Object); err != nil {
		t.Fatal(err)
	}
	hook := func(name string, operation admissionregistrationv1.OperationType, group string, resources ...string) admissionregistrationv1.ValidatingWebhook {
		return admissionregistrationv1.ValidatingWebhook{Name: name, Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
		}}}
	}
	const fail = "validate.kyverno.svc-fail"
	for name, one := range map[string]struct {
		hooks []admissionregistrationv1.ValidatingWebhook
		want  bool
	}{
		"all":                     {[]admissionregistrationv1.ValidatingWebhook{hook(fail, "CREATE", "", "configmaps", "secrets")}, true},
		"in two":                  {[]admissionregistrationv1.ValidatingWebhook{hook(fail, "*", "", "configmaps"), hook("validate.kyverno.svc-ignore", "*", "", "secrets")}, true},
		"everything":              {[]admissionregistrationv1.ValidatingWebhook{hook(fail, "*", "*", "*/*")}, true},
		"one of two":              {[]admissionregistrationv1.ValidatingWebhook{hook(fail, "*", "", "configmaps")}, false},
		"another group":           {[]admissionregistrationv1.ValidatingWebhook{hook(fail, "*", "apps", "configmaps", "secrets")}, false},
		"another operation":       {[]admissionregistrationv1.ValidatingWebhook{hook(fail, "CONNECT", "", "configmaps", "secrets")}, false},
		"for another policy":      {[]admissionregistrationv1.ValidatingWebhook{hook(fail+"-finegrained-other", "*", "", "configmaps", "secrets")}, false},
		"for this policy":         {[]admissionregistrationv1.ValidatingWebhook{hook(fail+"-finegrained-both", "*", "", "configmaps", "secrets")}, true},
		"nothing but cleaning up": {[]admissionregistrationv1.ValidatingWebhook{hook("kyverno-cleanup-controller.kyverno.svc", "*", "*", "*")}, false},
	} {
		k := kyvernoWatch{served: registration.Table{
			{Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Namespaced: true}, {Version: "v1", Kind: "Secret", Plural: "secrets", Namespaced: true},
		}}
		k.add(one.hooks)
		if got := k.judges(policy); got.Yes != one.want {
			t.Errorf("%s: Kyverno is seen to judge: %v (%s); want %v", name, got.Yes, got.Why, one.want)
		}
	}
}
