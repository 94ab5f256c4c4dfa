package translate_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// denyingMatch is a policy that denies whatever its match and exclude blocks mean.
func denyingMatch(match, exclude string) string {
	return fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: never
  annotations: {pod-policies.kyverno.io/autogen-controllers: none}
spec:
  background: false
  validationFailureAction: Enforce
  rules:
    - name: never
      match: %s
      exclude: %s
      validate: {deny: {}}
`, match, exclude)
}

func gadget(apiVersion string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"Gadget","metadata":{"name":"g","namespace":"app"}}`, apiVersion)
}

// What a selector leaves open of a kind that is not known is asked of the request:
// resource rules have no wildcards but *.
func TestGuessedKinds(t *testing.T) {
	t.Parallel()
	p := translateText(t, denyingMatch(`{any: [{resources: {kinds: [Gadget]}}]}`, `{any: [{resources: {kinds: [x.io/v1/Gadget]}}]}`), setting{})
	p.try(t, []trial{
		{name: "excluded group", object: gadget("x.io/v1"), want: "nomatch"},
		{name: "other group", object: gadget("y.io/v1"), want: "deny refused"},
		{name: "other version", object: gadget("x.io/v2"), want: "deny refused"},
	})
	p = translateText(t, denyingMatch(`{any: [{resources: {kinds: ["*.io/v1*/Gadget"]}}]}`, `{}`), setting{})
	p.try(t, []trial{
		{name: "group and version as the wildcards", object: gadget("x.io/v1beta1"), want: "deny refused"},
		{name: "not the group", object: gadget("x.com/v1"), want: "nomatch"},
		{name: "not the version", object: gadget("x.io/v2"), want: "nomatch"},
	})
}

// A selector that Kubernetes refuses matches nothing, even where it is negative.
func TestInvalidSelectors(t *testing.T) {
	t.Parallel()
	for _, selector := range []string{
		`{matchExpressions: [{key: a, operator: NotIn, values: ["b c"]}]}`,
		`{matchExpressions: [{key: "a b", operator: DoesNotExist}]}`,
		`{matchExpressions: [{key: a, operator: DoesNotExist}, {key: "a b", operator: NotIn, values: [x]}]}`,
	} {
		p := translateText(t, denyingMatch(`{any: [{resources: {kinds: [Pod], selector: `+selector+`}}]}`, `{}`), setting{})
		p.try(t, []trial{{name: selector, object: pod("", ""), want: "nomatch"}})
	}
}

// A Namespace is in no namespace whose labels a filter could select, and unlike
// other objects outside of namespaces it has no empty labels either.
func TestNamespaceSelectorOfAnyKind(t *testing.T) {
	t.Parallel()
	const without = `{matchExpressions: [{key: env, operator: DoesNotExist}]}`
	p := translateText(t, denyingMatch(`{any: [{resources: {kinds: ["*"], namespaceSelector: `+without+`}}]}`, `{}`), setting{})
	p.try(t, []trial{
		{name: "namespace", object: `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"app"}}`, want: "allow"},
		{name: "outside", object: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"app"}}`, want: "deny refused"},
		{name: "inside", object: pod("", ""), want: "deny refused"},
	})
}

// The options of a connection have no metadata, so no name; only * matches that.
func TestOptionsHaveNoMetadata(t *testing.T) {
	t.Parallel()
	const options = `{"apiVersion":"v1","kind":"PodExecOptions","command":["sh"]}`
	connect := func(r *admissionv1.AdmissionRequest) {
		r.Resource.Resource, r.SubResource, r.Name, r.Namespace = "pods", "exec", "web", "app"
	}
	for _, tt := range []struct{ names, want string }{{`"*"`, "deny refused"}, {`"?*"`, "nomatch"}, {`web`, "nomatch"}} {
		p := translateText(t, denyingMatch(`{any: [{resources: {kinds: [Pod/exec], namespaces: [app], names: [`+tt.names+`]}}]}`, `{}`), setting{})
		if len(p.result.Objects) == 0 && tt.want == "nomatch" {
			continue
		}
		p.try(t, []trial{{name: tt.names, operation: "CONNECT", object: options, want: tt.want, edit: connect}})
	}
	p := translateText(t, strings.Replace(denyingMatch(`{any: [{resources: {kinds: [Pod/exec]}}]}`, `{}`), "{deny: {}}", `{pattern: {metadata: {namespace: "x*"}}}`, 1), setting{})
	if got := p.targets(); got != "webhook KV201 KV120" {
		t.Errorf("a pattern about their metadata is %s", got)
	}
}

// An override that no namespace can hit is none: the API server would refuse a
// binding with its selector.
func TestImpossibleOverrides(t *testing.T) {
	t.Parallel()
	for overrides, want := range map[string]string{
		`[{action: Enforce, namespaceSelector: {matchExpressions: [{key: a, operator: NotIn, values: ["b c"]}]}}]`: "Audit{}",
		`[{action: Enforce, namespaceSelector: {matchLabels: {a: "x*"}}}]`:                                         "Audit{}",
		`[{action: Enforce, namespaceSelector: {matchLabels: {"a b": x}}}]`:                                        "Audit{}",
		`[{action: Enforce, namespaces: ["A b"]}]`:                                                                 "Audit{}",
		`[{action: Enforce, namespaces: ["A b", app]}]`:                                                            "Deny enforce{name=app} Audit audit{name notin app}",
	} {
		p := translateText(t, overriding("Pod", "Audit", overrides), setting{})
		if got := bindingsText(p.result.Objects[0].Draft.Bindings); got != want {
			t.Errorf("%s: got %s, want %s", overrides, got, want)
		}
	}
}
