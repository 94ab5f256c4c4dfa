package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/translate"
)

func labelled(value string) string {
	return pod(fmt.Sprintf(`,"labels":{"app":%q},"finalizers":["a.io/x","b.io/y"]`, value), "")
}

// reading is a policy that denies where a label is, by an operator, in the data of
// a ConfigMap.
func reading(condition string) string {
	return `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: configured}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    context:
    - name: cm
      configMap: {name: allowed}
    validate:
      message: refused
      deny:
        conditions:
          any:
          - ` + condition + "\n"
}

func TestConfigMapTexts(t *testing.T) {
	t.Parallel()
	label, finalizers := "{{ request.object.metadata.labels.app }}", "{{ request.object.metadata.finalizers }}"
	tests := []struct {
		name, key, op, value string // value is the text in the ConfigMap
		label                string
		want                 string
	}{
		{"a word", label, "AnyIn", "web", "web", "deny refused"},
		{"another word", label, "AnyIn", "web", "db", "allow"},
		{"not a word", label, "AnyNotIn", "web", "db", "deny refused"},
		{"a wildcard", label, "AllIn", "w*", "web", "deny refused"},
		{"one character", label, "AllIn", "w?b", "web", "deny refused"},
		{"no regular expression", label, "AllIn", `w.b`, "web", "allow"},
		{"a backslash", label, "AllIn", `\E.*`, "web", "allow"},
		{"a list", label, "AnyIn", `["db", "web"]`, "web", "deny refused"},
		{"a list without it", label, "AnyIn", `["db"]`, "web", "allow"},
		{"not in a list", label, "AllNotIn", `["db"]`, "web", "deny refused"},
		{"wildcards in a list", label, "AnyIn", `["w*"]`, "web", "deny refused"}, // deviation 15
		{"an empty list", label, "AnyNotIn", "[ ]", "web", "deny refused"},
		{"JSON that is no list", label, "AnyIn", `"web"`, "web", "allow"},
		{"not in JSON that is no list", label, "AnyNotIn", `"web"`, "web", "deny refused"}, // deviation 15
		{"not in a number", label, "AnyNotIn", "5", "web", "deny refused"},                 // deviation 15
		{"a number", label, "AnyIn", "5", "5", "deny refused"},
		{"an empty text", label, "AnyIn", "", "web", "allow"},
		{"a list key, some", finalizers, "AnyIn", `["a.io/*"]`, "", "deny refused"},
		{"a list key, all", finalizers, "AllIn", `["a.io/*"]`, "", "allow"},
		{"a list key, not all", finalizers, "AnyNotIn", `["a.io/*"]`, "", "deny refused"},
		{"a list key, none", finalizers, "AllNotIn", `["a.io/*"]`, "", "allow"},
		{"a list key and a word", finalizers, "AnyIn", "b.io/?", "", "deny refused"},
		{"a list key and a number", finalizers, "AllNotIn", "7", "", "deny refused"}, // deviation 15
		{"equal", label, "Equals", "w*", "web", "deny refused"},
		{"not equal", label, "NotEquals", "w*", "web", "allow"},
		{"equal durations", label, "Equals", "60m", "1h", "allow"},               // deviation 15
		{"equal quantities", label, "Equals", "1024Mi", "1Gi", "allow"},          // deviation 15
		{"a quantity and a wildcard", label, "Equals", "*", "5", "deny refused"}, // deviation 15
		{"a number and a list", label, "Equals", `["5"]`, "5", "allow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := reading(fmt.Sprintf(`{key: %q, operator: %s, value: "{{ cm.data.words }}"}`, tt.key, tt.op))
			cm := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"allowed","namespace":"default"},"data":{"words":%q}}`, tt.value)
			p := translateText(t, text, setting{params: []string{cm}})
			if got := p.targets(); !strings.HasPrefix(got, "native") {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			p.try(t, []trial{{name: "native", object: labelled(tt.label), want: tt.want}})
			world := &interp.Offline{Objects: []map[string]any{object(t, cm)}}
			status := map[string]string{"deny refused": "fail", "allow": "pass"}[tt.want]
			if got := kyvernoStatus(t, text, world, objectRequest(t, "CREATE", labelled(tt.label), "")); got != status {
				t.Errorf("the interpreter says %s, want %s", got, status)
			}
		})
	}
}

// What wrote a text decides how it is read, whatever led to it. What may be the request's is left
// to the webhook.
func TestConfigMapOrigins(t *testing.T) {
	t.Parallel()
	const cm = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"allowed","namespace":"default"},"data":{"list":"[\"db\",\"web\"]","web":"[\"db\",\"web\"]"}}`
	for _, tt := range []struct{ name, entries, value, want string }{
		{"before a default", "", "cm.data.list || ''", "deny refused"},
		{"by a name of the request", "", `cm.data."{{ request.object.metadata.name }}"`, "deny refused"},
		{"by a name of the request, before a default", "", `cm.data."{{ request.object.metadata.name }}" || ''`, "deny refused"},
		{"as a default", "", "request.object.metadata.labels.none || cm.data.list", "webhook fail"},
		{"behind a condition", "", "request.object.metadata.name && cm.data.list", "webhook fail"},
		{"a part of what is put together", "", "{a: cm.data.list, b: request.namespace}.a", "deny refused"},
		{"as a text", "", "'{{ cm.data.list }}'", "deny refused"},
		{"by to_string", "", "to_string(cm.data.list)", "deny refused"},
		{"by to_string, before a default", "", "to_string(cm.data.list) || ''", "deny refused"},
		{"a variable", `{name: v, variable: {value: "{{ cm.data.list }}"}}`, "v", "deny refused"},
		{"a variable of a variable", `{name: u, variable: {jmesPath: cm.data}}, {name: v, variable: {value: "{{ u.list || '' }}"}}`, "v", "deny refused"},
		{"a variable's part", `{name: v, variable: {value: {a: "{{ cm.data.list }}", b: "{{ request.namespace }}"}}}`, "v.a", "deny refused"},
		{"a variable's default", `{name: v, variable: {jmesPath: request.object.metadata.labels.none, default: "{{ cm.data.list }}"}}`, "v", "webhook fail"},
		{"a wildcard of the policy beside the request", "", "[request.namespace, 'w*']", "deny refused"},
		{"a wildcard of the policy in a variable", `{name: v, variable: {value: ["{{ request.namespace }}", "w*"]}}`, "v", "deny refused"},
		{"the request's", "", "request.object.metadata.annotations.list", "webhook pass"},
		{"the request's before the ConfigMap's", "", "request.object.metadata.annotations.list || cm.data.list", "webhook pass"},
		{"the request's beside the ConfigMap's", "", "{a: cm.data.list, b: request.object.metadata.annotations.list}.b", "webhook pass"},
		{"the request's in a text", "", "'{{ request.object.metadata.annotations.list }}'", "webhook pass"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := reading(fmt.Sprintf(`{key: "{{ request.object.metadata.labels.app }}", operator: AnyIn, value: %q}`, "{{ "+tt.value+" }}"))
			entries := "    context: [{name: cm, configMap: {name: allowed}}, " + tt.entries + "]\n"
			text = strings.Replace(text, "    context:\n    - name: cm\n      configMap: {name: allowed}\n", entries, 1)
			p := translateText(t, text, setting{params: []string{cm}})
			status, left := strings.CutPrefix(tt.want, "webhook ")
			if got := p.targets(); strings.HasPrefix(got, "native") == left {
				t.Fatalf("%s: %v", got, p.result.Diagnostics)
			}
			labelled := pod(`,"labels":{"app":"web"},"annotations":{"list":"[\"web\"]"}`, "")
			if !left {
				p.try(t, []trial{{name: "native", object: labelled, want: tt.want}})
				status = map[string]string{"deny refused": "fail", "allow": "pass"}[tt.want]
			}
			if got := kyvernoStatus(t, text, &interp.Offline{Objects: []map[string]any{object(t, cm)}}, objectRequest(t, "CREATE", labelled, "")); got != status {
				t.Errorf("the interpreter says %s, want %s", got, status)
			}
		})
	}
}

func TestConfigMapErrors(t *testing.T) {
	t.Parallel()
	cm := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"allowed","namespace":"default"},"data":{"words":"[1]","list":"[\"a\", \"w*\"]","split":"a,w?b","start":"we"}}`
	condition := func(value string) string {
		return fmt.Sprintf(`{key: "{{ request.object.metadata.labels.app }}", operator: AnyIn, value: %q}`, value)
	}
	tests := []struct {
		name, condition string
		params          []string
		want            string
	}{
		{"no ConfigMap", condition("{{ cm.data.list }}"), nil, "error refused"},
		{"no such key", condition("{{ cm.data.nothing }}"), []string{cm}, "error refused"},
		{"a default for it", condition("{{ cm.data.nothing || 'web' }}"), []string{cm}, "deny refused"},
		{"a list of numbers", condition("{{ cm.data.words }}"), []string{cm}, "error refused: neither_text"},
		{"beside a text of the policy", condition("{{ cm.data.words }}-x"), []string{cm}, "allow"},
		{"beside a wildcard of the policy", condition("{{ cm.data.start }}*"), []string{cm}, "deny refused"},
		{"behind a bracket of the policy", condition("[{{ cm.data.start }}]"), []string{cm}, "error refused: neither_text"},
		{"parsed", condition("{{ parse_json(cm.data.list) }}"), []string{cm}, "deny refused"},
		{"parsed, but no list", condition("{{ parse_json(cm.data.split) }}"), []string{cm}, "deny refused: refused"},
		{"split", condition("{{ split(cm.data.split, ',') }}"), []string{cm}, "deny refused"},
		{"in a longer text", `{key: "{{ request.object.metadata.labels.app }}", operator: Equals, value: "w{{ cm.metadata.name }}"}`, []string{cm}, "allow"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, reading(tt.condition), setting{params: tt.params})
			p.try(t, []trial{{name: "native", object: labelled("web"), want: tt.want}})
		})
	}
}

// manyChoices is a text that is put together from so many choices that it is one expression.
const manyChoices = "{{ request.object.metadata.annotations.a || request.object.metadata.annotations.b || cm.data.words }}-" +
	"{{ request.object.metadata.annotations.c || request.object.metadata.annotations.d || cm.data.words }}"

func TestConfigMapPlace(t *testing.T) {
	t.Parallel()
	text := reading(`{key: "{{ request.object.metadata.labels.app }}", operator: AnyIn, value: "{{ cm.data.words }}"}`)
	tests := []struct{ name, text, targets, contains string }{
		{"the default namespace", text, "native KV308 KV313", "namespace: default"},
		{"the object's namespace", strings.Replace(text, "{name: allowed}", `{name: allowed, namespace: "{{ request.namespace }}"}`, 1), "native KV308 KV313", "name: allowed\n    parameterNotFoundAction: Deny"},
		{"the policy's namespace", strings.Replace(strings.Replace(text, "ClusterPolicy", "Policy", 1), "name: configured", "name: configured, namespace: app", 1), "native KV308 KV313", "namespace: app\n    parameterNotFoundAction"},
		// What the request puts in is no pattern, so the text as a whole is none either.
		{"beside a text of the request", strings.Replace(text, "{{ cm.data.words }}", "{{ cm.data.words }}-{{ request.object.metadata.annotations.x }}", 1), "webhook KV201", ""},
		{"beside one in a choice", strings.Replace(text, "{{ cm.data.words }}", "team-{{ request.object.metadata.annotations.x || cm.data.words }}", 1), "webhook KV201", ""},
		{"among many choices", strings.Replace(text, "{{ cm.data.words }}", manyChoices, 1), "webhook KV201", ""},
		{"beside a number", strings.Replace(text, "{{ cm.data.words }}", "{{ cm.data.words }}-{{ request.object.metadata.generation }}", 1), "webhook KV201", ""},
		{"beside a text of the policy", strings.Replace(text, "{{ cm.data.words }}", "{{ cm.data.words }}-x", 1), "native KV308", ""}, // [a]-x is no list to Kyverno
		{"a name that is a variable", strings.Replace(text, "{name: allowed}", `{name: "{{ request.name }}"}`, 1), "webhook KV204", ""},
		{"audit", strings.Replace(text, "Enforce", "Audit", 1), "native KV308 KV313", "parameterNotFoundAction: Allow"},
		{"two", strings.Replace(strings.Replace(text, "configMap: {name: allowed}", "configMap: {name: allowed}\n    - name: cm2\n      configMap: {name: other}", 1), "cm.data.words }}", "cm.data.words }}{{ cm2.data.x }}", 1), "webhook KV204", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := translateText(t, tt.text, setting{})
			if got := p.targets(); got != tt.targets {
				t.Errorf("got %s, want %s", got, tt.targets)
			}
			if !strings.Contains(p.yaml(t), tt.contains) {
				t.Errorf("%q is not in\n%s", tt.contains, p.yaml(t))
			}
		})
	}
}

func TestOwnParams(t *testing.T) {
	t.Parallel()
	text := reading(`{key: "{{ request.object.metadata.labels.app }}", operator: AnyIn, value: "{{ cm.data.words }}"}`)
	object := `{"apiVersion":"kvap.dev/v1alpha1","kind":"Params","metadata":{"name":"allowed","namespace":"default"},"data":{"words":"web"}}`
	p := translateText(t, text, setting{own: translate.ParamsKvap, params: []string{object}})
	if got := p.targets(); got != "native KV313" {
		t.Error(got)
	}
	p.try(t, []trial{{name: "native", object: labelled("web"), want: "deny refused"}})
}

// A Policy that reads a ConfigMap of another namespace errs always; the denial says which
// policy, and why, however its object is guarded.
func TestForeignConfigMap(t *testing.T) {
	t.Parallel()
	request := objectRequest(t, "CREATE", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"team","labels":{"app":"web"}}}`, "")
	request.Namespace = "team"
	for _, condition := range []string{
		`{key: "{{ request.object.metadata.labels.app }}", operator: Equals, value: "{{ cm.data.a }}"}`,
		`{key: "{{ cm.data.a }}", operator: Equals, value: x}`,
	} {
		text := strings.NewReplacer("kind: ClusterPolicy", "kind: Policy", "{name: configured}", "{name: configured, namespace: team}", "kinds: [Pod]", "kinds: [ConfigMap]",
			"configMap: {name: allowed}", "configMap: {name: allowed, namespace: theirs}").Replace(reading(condition))
		for _, s := range []setting{{}, {guard: translate.GuardNever}, {pack: translate.PackMatch}, {pack: translate.PackRule}} {
			p := translateText(t, text, s)
			outcome, refused, message := p.verdict(t, request)
			if want := "the Policy team/configured may read ConfigMaps of its own namespace only, and not theirs/allowed"; !refused || !strings.Contains(message, want) {
				t.Errorf("%s, %+v: %s, refused %t: %s; want a text with: %s", condition, s, outcome, refused, message, want)
			}
		}
	}
}
