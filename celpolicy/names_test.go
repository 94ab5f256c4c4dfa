package celpolicy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/fixtures"
)

// objectsOf are the objects of a text with policies, written as kind, namespace and name, and as
// they are.
func objectsOf(t *testing.T, text string) (names []string, out []celpolicy.Object) {
	t.Helper()
	for _, one := range convertFixture(t, fixtures.Fixture{Name: t.Name(), Policy: []byte(text)}).Policies {
		for _, o := range one.Objects {
			names = append(names, strings.Join([]string{o.Kind, o.Namespace, o.Name}, "/"))
			out = append(out, o)
		}
	}
	return names, out
}

func rules(kind, metadata string, resources ...string) string {
	text := "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: " + metadata + "\nspec:\n  rules:\n"
	for _, r := range resources {
		text += "  - name: " + strings.ToLower(r) + "\n    match: {any: [{resources: {kinds: [v1/" + r + "]}}]}\n    validate: {message: wrong, pattern: {metadata: {labels: {x: '?*'}}}}\n"
	}
	return text + "---\n"
}

// No two objects have one name, whatever the names of policies and rules.
func TestNames(t *testing.T) {
	here := "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: here}\nspec:\n  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [''], apiVersions: [v1], resources: [pods]}]}\n  validations: [{expression: 'true'}]\n"
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"one", rules("ClusterPolicy", "{name: a}", "Secret"), []string{"ValidatingPolicy//a"}},
		{"of a rule", rules("ClusterPolicy", "{name: a}", "Secret", "ConfigMap") + rules("ClusterPolicy", "{name: a-secret}", "Secret"),
			[]string{"ValidatingPolicy//a-secret-2", "ValidatingPolicy//a-configmap", "ValidatingPolicy//a-secret"}},
		{"of a namespace", rules("Policy", "{name: a, namespace: hr}", "Secret") + rules("Policy", "{name: a, namespace: shop}", "Secret") + rules("ClusterPolicy", "{name: a}", "Secret"),
			[]string{"NamespacedValidatingPolicy/hr/a", "NamespacedValidatingPolicy/shop/a", "ValidatingPolicy//a"}},
		{"in CEL already", rules("ClusterPolicy", "{name: here}", "Secret") + here, []string{"ValidatingPolicy//here-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := objectsOf(t, tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

// The API server takes no two conditions of one name, and of two variables Kyverno knows one.
func TestNamesWithin(t *testing.T) {
	_, ignoring := objectsOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a}
spec:
  failurePolicy: Ignore
  validationFailureAction: Enforce
  webhookConfiguration: {matchConditions: [{name: violated, expression: "request.userInfo.username != 'x'"}]}
  rules:
  - name: b
    match: {any: [{resources: {kinds: [v1/ConfigMap]}}]}
    validate: {message: m, pattern: {metadata: {labels: {x: "?*"}}}}
`)
	_, authored := objectsOf(t, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: a}
spec:
  validationFailureAction: Enforce
  rules:
  - name: b
    match: {any: [{resources: {kinds: [v1/ConfigMap], operations: [CREATE]}}]}
    validate:
      cel:
        paramKind: {apiVersion: v1, kind: ConfigMap}
        paramRef: {name: c, namespace: ops, parameterNotFoundAction: Deny}
        variables: [{name: params, expression: object.metadata.name}]
        expressions: [{expression: params.metadata.name == variables.params}]
`)
	var conditions, variables []string
	for _, o := range slices.Concat(ignoring, authored) {
		for _, m := range o.Spec.MatchConditions {
			conditions = append(conditions, m.Name)
		}
		for _, v := range o.Spec.Variables {
			variables = append(variables, v.Name)
		}
	}
	if want := []string{"violated", "violated2"}; !slices.Equal(conditions, want) {
		t.Errorf("conditions: got %v, want %v", conditions, want)
	}
	if want := []string{"params2", "params"}; !slices.Equal(variables, want) {
		t.Errorf("variables: got %v, want %v", variables, want)
	}
}

// Kyverno takes no policy of a namespace that says http anywhere.
func TestNoHTTP(t *testing.T) {
	_, made := objectsOf(t, `
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: routes, namespace: shop}
spec:
  rules:
  - name: b
    match: {any: [{resources: {kinds: [networking.istio.io/v1/VirtualService]}}]}
    validate: {message: m, pattern: {spec: {http: [{timeout: "?*"}]}}}
`)
	if len(made) != 1 {
		t.Fatal("there is no object")
	}
	for _, v := range made[0].Spec.Validations {
		if strings.Contains(v.Expression, "(http,") || strings.Contains(v.Expression, "http.?timeout") {
			t.Error(v.Expression)
		}
	}
}
