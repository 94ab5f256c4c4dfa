package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/diag"
)

// onePod is a policy of one rule for Pods that are created.
func onePod(message, body string) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Enforce
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
    validate:
      message: '%s'
      %s
`, message, body)
}

// TestMessageOfVariablesAlone: a message that is nothing but variables is a text to the API
// server too, which takes no message expression of unknown type.
func TestMessageOfVariablesAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ message, want string }{
		{"{{ request.object.metadata.name }}", "web"},
		{"{{ request.object.metadata.name }}{{ request.object.metadata.namespace }}", "webapp"},
	} {
		p := translateText(t, onePod(tt.message, `pattern: {metadata: {labels: {team: "?*"}}}`), setting{})
		if p.targets() != "native" {
			t.Errorf("%s: %s: %v", tt.message, p.targets(), p.result.Diagnostics)
			continue
		}
		p.try(t, []trial{{name: tt.message, object: pod("", containers("containers", "")), want: "deny refused: " + tt.want}})
	}
}

// TestMessageVariables: of a message each variable is filled in that has a native form. The
// others are shown as they are written and told of, once, in the words of the author; and no
// other {{ }} is shown to anybody, also where the message expression errs.
func TestMessageVariables(t *testing.T) {
	t.Parallel()
	const pattern = `pattern: {metadata: {labels: {team: "?*"}}}`
	const each = `foreach: [{list: request.object.spec.containers, pattern: {image: "!*:latest"}}]`
	bad := pod("", containers("containers", `"name":"main","image":"nginx:latest"`))
	for _, tt := range []struct{ name, message, body, want, constant, left string }{
		{
			"all are filled in", "{{ request.object.metadata.name }} by {{ request.userInfo.username }}.", pattern,
			"web by alice.", "metadata.name by request.userInfo.username.", "",
		},
		{
			"one is left", "{{ request.object.metadata.name }} at {{ time_now() }} by {{ request.userInfo.username }}.", pattern,
			"web at {{ time_now() }} by alice.", "metadata.name at {{ time_now() }} by request.userInfo.username.", "{{ time_now() }} in the message has",
		},
		{
			"two are left", "{{ nothing }}{{ time_now() }} {{ request.object.metadata.name }}", pattern,
			"{{ nothing }}{{ time_now() }} web", "{{ nothing }}{{ time_now() }} metadata.name", "{{ nothing }} and {{ time_now() }} in the message have",
		},
		{
			"all are left", "at {{time_now()}}", pattern,
			"at {{ time_now() }}", "at {{ time_now() }}", "{{ time_now() }} in the message has",
		},
		{
			"nothing else is written", "{{ request.object.metadata.name }}", pattern,
			"web", "validation error: rule r failed", "",
		},
		{
			"a text that is not there", "{{ request.object.metadata.labels.team }} at {{ request.object.metadata.name }}", pattern,
			"<none> at web", "metadata.labels.team at metadata.name", "",
		},
		{
			"a list of texts", "{{ request.object.spec.containers[].name }} and {{ request.object.spec.containers[].image }}", pattern,
			`["main"] and ["nginx:latest"]`, "spec.containers[].name and spec.containers[].image", "",
		},
		{
			"a list of some texts", "{{ request.object.spec.containers[?name == ''none''].image }} and {{ request.object.spec.containers[].imagePullPolicy }}", pattern,
			`[] and []`, "spec.containers[?name == 'none'].image and spec.containers[].imagePullPolicy", "",
		},
		{
			"a list that may be missing", "{{ request.object.spec.initContainers[].name }} of {{ request.object.metadata.name }}", pattern,
			"{{ request.object.spec.initContainers[].name }} of web", "{{ request.object.spec.initContainers[].name }} of metadata.name",
			"{{ request.object.spec.initContainers[].name }} in the message has",
		},
		{
			"an escape is none", `\{{ x }} {{ time_now() }}`, pattern,
			"{{ x }} {{ time_now() }}", "{{ x }} {{ time_now() }}", "{{ time_now() }} in the message has",
		},
		{
			"an element beside one that is left", "{{ element.name }} at {{ time_now() }}", each,
			"main at {{ time_now() }}", "name at {{ time_now() }}", "{{ time_now() }} in the message has",
		},
	} {
		p := translateText(t, onePod(tt.message, tt.body), setting{})
		if p.targets() != "native" && p.targets() != "native KV303" {
			t.Fatalf("%s: %s: %v", tt.name, p.targets(), p.result.Diagnostics)
		}
		p.try(t, []trial{{name: tt.name, object: bad, want: "deny refused: " + tt.want}})
		if got := p.result.Objects[0].Policy.Spec.Validations[0].Message; got != tt.constant {
			t.Errorf("%s: the constant message is %q, want %q", tt.name, got, tt.constant)
		}
		var told []string
		for _, d := range p.result.Diagnostics {
			if d.Code == diag.MessageVariable {
				told = append(told, d.Message)
			}
		}
		if len(told) > 1 || !strings.HasPrefix(strings.Join(told, ""), tt.left) || tt.left == "" && told != nil {
			t.Errorf("%s: told %q, want one %q", tt.name, told, tt.left)
		}
	}
}

// TestCostlyVariable: KV312 is told also where the loops of a rule are in a variable, as the
// elements are that a message names.
func TestCostlyVariable(t *testing.T) {
	t.Parallel()
	const each = `foreach:
      - list: request.object.spec.volumes
        deny:
          conditions:
            any:
            - key: "{{ request.object.spec.[containers, initContainers][].volumeMounts[?name == ''{{element.name}}'' && readOnly][] | length(@) }}"
              operator: Equals
              value: 0`
	p := translateText(t, onePod("no", strings.ReplaceAll(each, "''", "'")), setting{})
	if vars := p.result.Objects[0].Policy.Spec.Variables; len(vars) == 0 {
		t.Fatal("the rule has no variable, so that this test shows nothing")
	}
	if got := p.targets(); got != "native KV312" {
		t.Errorf("%s: %v", got, p.result.Diagnostics)
	}
}
