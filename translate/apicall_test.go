package translate_test

import (
	"strings"
	"testing"
)

func calling(entry, jmesPath string) string {
	text := strings.Replace(reading(`{key: "{{ cm }}", operator: Equals, value: web}`), "configMap: {name: allowed}", entry, 1)
	return strings.Replace(text, "PATH", jmesPath, 1)
}

func TestAPICalls(t *testing.T) {
	t.Parallel()
	namespace := `apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: "PATH"}`
	review := func(spec string) string {
		return `apiCall: {urlPath: /apis/authorization.k8s.io/v1/subjectaccessreviews, method: POST, jmesPath: "PATH", data: [{key: kind, value: SubjectAccessReview}, {key: apiVersion, value: authorization.k8s.io/v1}, {key: spec, value: ` + spec + `}]}`
	}
	user := `user: "{{ request.userInfo.username }}", groups: "{{ request.userInfo.groups }}"`
	tests := []struct{ name, text, targets, contains string }{
		{"a label", calling(namespace, "metadata.labels.team || ''"), "native", "namespaceObject.metadata"},
		{"an annotation", calling(namespace, "metadata.annotations.team"), "native", "namespaceObject.metadata.annotations.team"},
		{"what namespaceObject does not have", calling(namespace, "metadata.uid"), "webhook KV204", ""},
		{"another namespace", strings.Replace(calling(namespace, "metadata.name"), "{{ request.namespace }}", "other", 1), "webhook KV204", ""},
		{"a kind without a namespace", strings.Replace(calling(namespace, "metadata.name"), "kinds: [Pod]", "kinds: [Node]", 1), "webhook KV204", ""},
		{"a list", strings.Replace(calling(namespace, "items[]"), "/{{ request.namespace }}", "", 1), "webhook KV204", ""},
		{"access", calling(review(`{`+user+`, resourceAttributes: {resource: secrets, verb: get}}`), "status.allowed"), "webhook KV204", ""},
		{"a service", calling(`apiCall: {service: {url: "https://a"}, jmesPath: "PATH"}`, "a"), "webhook KV204", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.HasPrefix(tt.name, "access") {
				tt.text = strings.Replace(tt.text, "value: web", "value: true", 1)
			}
			p := translateText(t, tt.text, setting{})
			if got := p.targets(); got != tt.targets {
				t.Fatalf("got %s, want %s: %v", got, tt.targets, p.result.Diagnostics)
			}
			flat := func(s string) string { return strings.ReplaceAll(strings.Join(strings.Fields(s), ""), "'", "") }
			if !strings.Contains(flat(p.yaml(t)), flat(tt.contains)) {
				t.Errorf("%q is not in\n%s", tt.contains, p.yaml(t))
			}
		})
	}
}

// A namespace of which only the labels are known was not read: the call is an error,
// and its default stands in where it has one.
func TestNamespaceNotKnown(t *testing.T) {
	t.Parallel()
	namespace := `apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: "PATH"}`
	p := translateText(t, calling(namespace, "metadata.labels.team || ''"), setting{})
	p.try(t, []trial{{name: "error", object: labelled("web"), want: "deny refused: refused"}})
	withDefault := strings.Replace(namespace, "apiCall: {", "apiCall: {default: web, ", 1)
	p = translateText(t, calling(withDefault, "metadata.labels.team || ''"), setting{})
	p.try(t, []trial{{name: "default", object: labelled("web"), want: "deny refused"}})
}
