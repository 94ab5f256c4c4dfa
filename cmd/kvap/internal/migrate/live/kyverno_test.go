package live

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/controller/webhook/registration"
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

// From 1.20 on Kyverno carries out no policy of kyverno.io, whatever is left of it from the
// version before: its word that it is ready, and webhooks. Policies in CEL it does.
func TestKyverno120CarriesOutNoLegacyPolicy(t *testing.T) {
	const generates = `{metadata: {name: made}, kind: ClusterPolicy, apiVersion: kyverno.io/v1, status: {ready: true}, spec: {rules: [
  {name: r, match: {any: [{resources: {kinds: [Namespace]}}]}, generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: a, namespace: "{{ request.object.metadata.name }}", data: {data: {a: b}}}}]}}`
	legacy := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(generates), &legacy.Object); err != nil {
		t.Fatal(err)
	}
	inCEL := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": map[string]any{"name": "p"}, "status": map[string]any{"ready": true},
		"spec": map[string]any{"validations": []any{map[string]any{"expression": "true"}}},
	}}
	for version, carried := range map[string]bool{"1.19.4": true, "1.20.0": false, "1.20.0-rc.1": false, "1.21.3": false, "2.0.0": false, "": true, "1.2.0": true} {
		k := kyvernoWatch{version: version}
		k.add([]admissionregistrationv1.ValidatingWebhook{{Name: "validate.kyverno.svc-fail", Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{"*"},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}},
		}}}})
		if got := k.judges(legacy); got.Yes != carried {
			t.Errorf("Kyverno %q carries out a ClusterPolicy: %v (%s)", version, got.Yes, got.Why)
		}
		if got := k.judges(inCEL); !got.Yes {
			t.Errorf("Kyverno %q carries out no ValidatingPolicy: %s", version, got.Why)
		}
	}
}
