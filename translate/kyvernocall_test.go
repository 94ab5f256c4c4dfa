package translate_test

import (
	"strings"
	"testing"
)

// The own namespace, by a function of Kyverno's, is namespaceObject; another one, or what is
// asked of the whole object, is the webhook's.
func TestOwnNamespace(t *testing.T) {
	t.Parallel()
	const get = `resource.Get("v1", "namespaces", "", request.namespace)`
	policy := func(expression, resources string) string {
		text := strings.Replace(validatingPolicy, `"!(object.metadata.name.startsWith('system-'))"`, "'true'", 1)
		text = strings.Replace(text, "!has(object.spec.hostNetwork)", "object.metadata.name != ''", 1)
		if resources, groups, several := strings.Cut(resources, " in "); several {
			text = strings.NewReplacer("[pods]", "["+resources+"]", `apiGroups: [""]`, "apiGroups: ["+groups+"]").Replace(text)
		}
		text = strings.Replace(text, "[pods]", "["+resources+"]", 1)
		return strings.Replace(text, `object.metadata.?labels.team.orValue('')`, "'"+expression+"'", 1)
	}
	for _, tt := range []struct{ name, expression, resources, want string }{
		{"its labels", get + `.metadata.?labels[?"team"].orValue("")`, "configmaps", "native"},
		{"as a whole", `string(` + get + ` == {})`, "configmaps", "webhook KV202"},
		{"another one", `resource.Get("v1", "namespaces", "", "default").metadata.name`, "configmaps", "webhook KV202"},
		{"of what is in none", get + `.metadata.name`, "namespaces", "webhook KV202"},
		{"of kinds in two groups", get + `.metadata.name`, `configmaps in "", x.io`, "webhook KV202"},
		{"of everything", get + `.metadata.name`, `"*"`, "webhook KV202"},
		{"another kind", `resource.Get("v1", "nodes", "", request.namespace).metadata.name`, "configmaps", "webhook KV202"},
		{"a ConfigMap", `resource.Get("v1", "configmaps", "default", "a").data.a`, "configmaps", "webhook KV202"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, policy(tt.expression, tt.resources), setting{namespaces: map[string]map[string]string{"app": {"checked": "yes", "team": "a"}, "none": {"checked": "yes"}}})
			if got := p.targets(); got != tt.want {
				t.Fatalf("%s, want %s\n%v", got, tt.want, p.result.Diagnostics)
			}
			if tt.name != "its labels" {
				return
			}
			object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","namespace":"app"},"spec":{}}`
			p.try(t, []trial{
				{name: "a team", object: object, want: "allow"},
				{name: "none", object: strings.Replace(object, `"app"`, `"none"`, 1), want: "deny refused: a team, please"},
			})
		})
	}
}
