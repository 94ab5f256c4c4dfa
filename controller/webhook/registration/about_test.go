package registration

import "testing"

// A policy is about what its rules match, in whatever form they say it, and about the controllers
// that rules for pods are made for.
func TestAbout(t *testing.T) {
	pattern := func(kind string) string {
		return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec: {rules: [{name: r, match: {any: [{resources: {kinds: [" + kind +
			"]}}]}, validate: {message: m, pattern: {spec: {x: \"?*\"}}}}]}\n"
	}
	inCEL := func(group, resource string) string {
		return "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: ['" + group +
			"'], apiVersions: [v1], operations: [CREATE], resources: [" + resource + "]}]}\n  validations: [{expression: 'true'}]\n"
	}
	for _, tt := range []struct {
		text, group, resource string
		want                  bool
	}{
		{pattern("ConfigMap"), "", "configmaps", true},
		{pattern("ConfigMap"), "", "secrets", false},
		{pattern("ConfigMap"), "example.com", "configmaps", false},
		{pattern("Pod"), "apps", "deployments", true},
		{pattern("'*'"), "apps", "deployments", true},
		{inCEL("", "configmaps"), "", "configmaps", true},
		{inCEL("apps", "configmaps"), "", "configmaps", false},
		{inCEL("", "pods"), "apps", "deployments", true},
		{inCEL("", "pods/ephemeralcontainers"), "", "pods", true},
		{inCEL("*", "'*'"), "apps", "deployments", true},
	} {
		if got := About(parse(t, []byte(tt.text))[0], kinds(t))(tt.group, tt.resource); got != tt.want {
			t.Errorf("%s/%s: %t\n%s", tt.group, tt.resource, got, tt.text)
		}
	}
}
