package translate_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

const celPolicy = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: host
  annotations:
    pod-policies.kyverno.io/autogen-controllers: none
spec:
  background: false
  rules:
    - name: network
      match:
        any:
          - resources:
              kinds: [Pod]
              operations: [CREATE, UPDATE, DELETE]
      validate:
        failureAction: Enforce
        message: no host network
        cel:
          expressions:
            - expression: "!has(object.spec.hostNetwork) || !object.spec.hostNetwork"
            - expression: object.spec.priority < 10
              messageExpression: "'priority ' + string(object.spec.priority) + ' is too high'"
              reason: Forbidden
`

func TestCELRule(t *testing.T) {
	t.Parallel()
	p := translateText(t, celPolicy, setting{})
	if got := p.targets(); got != "native" {
		t.Fatalf("%s\n%v", got, p.result.Diagnostics)
	}
	t.Log(p.yaml(t))
	p.try(t, []trial{
		{name: "pass", object: pod("", `"priority": 1`), want: "allow"},
		{name: "fail with the message of the rule", object: pod("", `"priority": 1, "hostNetwork": true`), want: "deny refused: no host network"},
		{name: "fail with an expression", object: pod("", `"priority": 20`), want: "deny refused: priority 20 is too high"},
		{name: "an error is a violation", object: pod("", ``), want: "deny refused: no host network"},
		{name: "a deletion has no object", operation: "DELETE", object: pod("", `"priority": 1`), want: "deny refused"},
		{name: "an old violation is no excuse", operation: "UPDATE", object: pod("", `"priority": 20`), want: "deny refused"},
		{name: "another kind", object: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"app"}}`, want: "nomatch"},
		{name: "ephemeral containers", operation: "UPDATE", object: pod("", `"priority": 20`), want: "deny refused",
			edit: func(r *admissionv1.AdmissionRequest) { r.SubResource = "ephemeralcontainers" }},
	})
}

// oneCELRule is a policy with one CEL rule on ConfigMaps.
func oneCELRule(spec, rule, cel string) string {
	return `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: p
spec:
  background: false
` + indent(2, spec) + `
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE, UPDATE]}}]}
` + indent(6, rule) + `
      validate:
        failureAction: Enforce
        cel:
` + indent(10, cel)
}

func indent(n int, text string) string {
	text = strings.Trim(text, "\n")
	return strings.Repeat(" ", n) + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", n))
}

func configMap(meta, data string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"app"` + meta + `},"data":{` + data + `}}`
}

const small = `expressions: [{expression: "int(object.data.size) < 10", message: too large}]`

// A precondition that is false skips the rule; one that errs is a violation, unless
// another is false.
func TestCELPreconditions(t *testing.T) {
	t.Parallel()
	const conditions = `
celPreconditions:
  - {name: match, expression: "object.metadata.labels.kind == 'sized'"}
  - {name: enabled, expression: "variables.enabled"}
`
	const body = `
variables:
  - {name: out, expression: "object.metadata.annotations.off"}
  - {name: enabled, expression: "variables.out == 'no'"}
` + small
	trials := []trial{
		{name: "pass", object: configMap(`,"labels":{"kind":"sized"},"annotations":{"off":"no"}`, `"size":"1"`), want: "allow"},
		{name: "fail", object: configMap(`,"labels":{"kind":"sized"},"annotations":{"off":"no"}`, `"size":"11"`), want: "deny refused: too large"},
		{name: "skip", object: configMap(`,"labels":{"kind":"other"},"annotations":{"off":"no"}`, `"size":"11"`), want: "nomatch"},
		{name: "skip for one though the other errs", object: configMap(`,"annotations":{"off":"yes"}`, `"size":"11"`), want: "nomatch"},
		{name: "an error is a violation", object: configMap(`,"annotations":{"off":"no"}`, `"size":"1"`), want: "deny refused"},
		{name: "two errors", object: configMap(``, `"size":"1"`), want: "deny refused"},
		{name: "an error of another kind", object: configMap(`,"labels":{"kind":"sized"},"annotations":{"off":"no"}`, `"size":"x"`), want: "error refused"},
	}
	for _, policy := range []string{"", "failurePolicy: Ignore"} {
		p := translateText(t, oneCELRule(policy, conditions, body), setting{})
		if got := p.targets(); got != "native" {
			t.Fatalf("%s\n%v", got, p.result.Diagnostics)
		}
		p.try(t, trials)
	}
}

// Behind a namespace selector with wildcards, which neither an object nor a match
// condition can ask, the preconditions guard the checks.
func TestCELPreconditionsBehindSelectors(t *testing.T) {
	t.Parallel()
	text := strings.Replace(oneCELRule("", `celPreconditions: [{name: sized, expression: "object.data.kind == 'sized'"}]`, small),
		"kinds: [ConfigMap]", "kinds: [ConfigMap], namespaceSelector: {matchLabels: {env: 'pro*'}}", 1)
	p := translateText(t, text, setting{namespaces: map[string]map[string]string{"app": {"env": "prod"}}})
	other := func(s string) string { return strings.Replace(s, `"namespace":"app"`, `"namespace":"other"`, 1) }
	p.try(t, []trial{
		{name: "pass", object: configMap("", `"kind":"sized","size":"1"`), want: "allow"},
		{name: "fail", object: configMap("", `"kind":"sized","size":"11"`), want: "deny refused"},
		{name: "skip", object: configMap("", `"kind":"x","size":"11"`), want: "allow"},
		{name: "error", object: configMap("", `"size":"1"`), want: "deny refused"},
		{name: "no match", object: other(configMap("", `"size":"1"`)), want: "allow"},
	})
}

const limited = `
paramKind: {apiVersion: v1, kind: ConfigMap}
paramRef: {name: limits, namespace: settings, parameterNotFoundAction: %s}
expressions: [{expression: "int(object.data.size) < int(params.data.max)", message: too large}]
`

func limits(namespace, max string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"limits","namespace":"` + namespace + `","labels":{"for":"p"}},"data":{"max":"` + max + `"}}`
}

func TestCELParams(t *testing.T) {
	t.Parallel()
	with := []string{limits("settings", "10")}
	for _, tt := range []struct {
		name, spec, action, notFound, size, want string
		params                                   []string
	}{
		{"pass", "", "Enforce", "Deny", "1", "allow", with},
		{"fail", "", "Enforce", "Deny", "11", "deny refused", with},
		{"missing", "", "Enforce", "Deny", "1", "error refused", nil},
		{"missing and allowed", "", "Enforce", "Allow", "11", "nomatch", nil},
		{"missing under Audit", "", "Audit", "Deny", "1", "nomatch", nil},
		{"missing under Ignore", "failurePolicy: Ignore", "Enforce", "Deny", "1", "nomatch", nil},
		{"fail under Ignore", "failurePolicy: Ignore", "Enforce", "Deny", "11", "deny refused", with},
		{"fail under Audit", "", "Audit", "Deny", "11", "deny", with},
		{"an error of the expression", "failurePolicy: Ignore", "Enforce", "Deny", "x", "error refused", with},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(oneCELRule(tt.spec, "", fmt.Sprintf(limited, tt.notFound)), "failureAction: Enforce", "failureAction: "+tt.action, 1)
			p := translateText(t, text, setting{params: tt.params})
			if got := p.targets(); got != "native KV308" {
				t.Fatalf("%s\n%v", got, p.result.Diagnostics)
			}
			p.try(t, []trial{{object: configMap("", `"size":"`+tt.size+`"`), want: tt.want}})
		})
	}
}

// Every one of several params must be satisfied; without a namespace they are those
// of the object's.
func TestCELParamsBySelector(t *testing.T) {
	t.Parallel()
	cel := strings.Replace(fmt.Sprintf(limited, "Deny"), "name: limits, namespace: settings", "selector: {matchLabels: {for: p}}", 1)
	p := translateText(t, oneCELRule("", "", cel), setting{params: []string{limits("app", "10"), limits("other", "1"), strings.Replace(limits("app", "5"), `"limits"`, `"more"`, 1)}})
	p.try(t, []trial{
		{name: "under both", object: configMap("", `"size":"4"`), want: "allow"},
		{name: "under one", object: configMap("", `"size":"7"`), want: "deny refused"},
	})
}

func TestCELTargets(t *testing.T) {
	t.Parallel()
	expression := func(text string) string { return `expressions: [{expression: "` + text + `"}]` }
	const kinds = "[ConfigMap]"
	for _, tt := range []struct{ name, kinds, spec, rule, cel, want, message string }{
		{"syntax", kinds, "", "", expression("object.data.a =="), "webhook KV112", "at 1:17"},
		{"unknown function", kinds, "", "", expression("http.Get('https://a').ok"), "webhook KV202", "http.Get"},
		{"unknown global function", kinds, "", "", expression("image('a').registry() == 'a'"), "webhook KV202", "image"},
		{"unknown variable", kinds, "", "", expression("thing == 1"), "webhook KV112", "undeclared reference to 'thing'"},
		{"variable that reads itself", kinds, "", "", "variables: [{name: a, expression: 'variables.a || variables.a'}]\n" + expression("variables.a"), "webhook KV112", "undefined field 'a'"},
		{"variables that read each other", kinds, "", "", "variables: [{name: a, expression: 'variables.b || variables.b'}, {name: b, expression: 'variables.a || variables.a'}]\n" + expression("variables.a"), "webhook KV112", "undefined field 'b'"},
		{"variable that reads one before it", kinds, "", "", "variables: [{name: a, expression: 'true'}, {name: b, expression: 'variables.a || variables.a'}]\n" + expression("variables.b"), "native", ""},
		{"wrong type", kinds, "", "", expression("object.data.a"), "webhook KV201", "must evaluate to bool"},
		{"params without a reference", kinds, "", "", "paramKind: {apiVersion: v1, kind: ConfigMap}\n" + expression("params.data.a == 'a'"), "webhook KV112", "params"},
		{"newer function", kinds, "", "", expression("object.data.a.split(',').distinct().size() == 1"), "webhook KV213", "distinct"},
		{"options", kinds, "", "", expression("request.options.fieldManager == 'a'"), "webhook KV201", "request.options"},
		{"namespace of a Namespace", "[Namespace]", "", "", expression("request.namespace != 'a'"), "webhook KV201", "request.namespace"},
		{"kind of a subresource", "[Pod/exec]", "", "", expression("request.kind.kind == 'Pod'"), "webhook KV201", "request.kind"},
		{"subresource", "[Pod/exec]", "", "", expression("request.subResource == 'exec'"), "webhook KV201", "request.subResource"},
		{"no subresource", kinds, "", "", expression("!has(request.subResource)"), "native", ""},
		{"unused variable of Kyverno", kinds, "", "", "variables: [{name: a, expression: images.a}]\n" + expression("true"), "webhook KV202", "images"},
		{"params of a namespace that there is not", "[ConfigMap, ClusterRole]", "failurePolicy: Ignore", "", "paramKind: {apiVersion: v1, kind: ConfigMap}\nparamRef: {name: a}\n" + expression("true"), "webhook KV201", "may have none"},
		{"params of a namespace that there is not, which denies", "[ConfigMap, ClusterRole]", "", "", "paramKind: {apiVersion: v1, kind: ConfigMap}\nparamRef: {name: a}\n" + expression("true"), "native KV308", ""},
		{"constant audit annotation", kinds, "", "", "auditAnnotations: [{key: a, valueExpression: \"'x'\"}]\n" + expression("true"), "native", ""},
		{"reason", kinds, "", "", "expressions: [{expression: 'true', reason: Unauthorized}]", "native KV310", "Unauthorized"},
		{"message expression", kinds, "", "", "expressions: [{expression: 'has(object.data)', messageExpression: thing}]", "native KV303", "messageExpression"},
		{"message expression of a wrong type", kinds, "", "", "expressions: [{expression: 'has(object.data)', messageExpression: '1'}]", "native KV303", "messageExpression"},
		{"audit annotation", kinds, "", "", "auditAnnotations: [{key: a, valueExpression: object.data.a}]\n" + expression("true"), "native KV310", "audit annotation a"},
		{"match conditions", kinds, "webhookConfiguration: {matchConditions: [{name: a, expression: 'object.data.a =='}]}", "", expression("true"), "webhook KV112", "does not compile"},
		{"match conditions of Kyverno", kinds, "webhookConfiguration: {matchConditions: [{name: a, expression: 'images.a == 1'}]}", "", expression("true"), "webhook KV202", "images"},
		{"match conditions with an authorizer", kinds, "webhookConfiguration: {matchConditions: [{name: a, expression: \"authorizer.requestResource.check('a').allowed()\"}]}", "", expression("true"), "webhook KV201", "without an authorizer"},
		{"match conditions that Ignore lets pass", kinds, "failurePolicy: Ignore\nwebhookConfiguration: {matchConditions: [{name: a, expression: 'true'}]}", "", expression("true"), "webhook KV201", "Ignore"},
		{"namespace in preconditions", kinds, "", "celPreconditions: [{name: a, expression: \"namespaceObject.metadata.name == 'a'\"}]", expression("true"), "webhook KV201", "namespaceObject"},
		{"null namespace in preconditions", kinds, "", "celPreconditions: [{name: a, expression: \"namespaceObject == null\"}]", expression("true"), "native", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(oneCELRule(tt.spec, tt.rule, tt.cel), "kinds: [ConfigMap], operations: [CREATE, UPDATE]", "kinds: "+tt.kinds+", operations: [CREATE, UPDATE, DELETE, CONNECT]", 1)
			p := translateText(t, text, setting{})
			if got := p.targets(); got != tt.want {
				t.Errorf("got %s, want %s\n%v", got, tt.want, p.result.Diagnostics)
			}
			messages := ""
			for _, d := range p.result.Diagnostics {
				messages += d.Message + "\n"
				if d.Line == 0 {
					t.Errorf("no place: %v", d)
				}
			}
			if !strings.Contains(messages, tt.message) {
				t.Errorf("got %q, want %q in it", messages, tt.message)
			}
		})
	}
}

// The request is what Kyverno makes up: no dry run, the name of the object also
// where a collection is deleted.
func TestCELRequest(t *testing.T) {
	t.Parallel()
	text := strings.Replace(oneCELRule("", "", `
expressions:
  - {expression: "!request.dryRun", message: dry}
  - {expression: "request.name == 'c' && request.namespace == 'app'", message: name}
  - {expression: "request.requestKind.kind == 'ConfigMap' && request.userInfo.username == 'alice'", message: kind}
`), ", operations: [CREATE, UPDATE]", "", 1)
	p := translateText(t, text, setting{})
	dry := true
	p.try(t, []trial{
		{name: "creation", object: configMap("", ""), want: "allow"},
		{name: "deletion", operation: "DELETE", object: configMap("", ""), want: "allow"},
		{name: "of a collection", operation: "DELETE", object: configMap("", ""), want: "allow", edit: func(r *admissionv1.AdmissionRequest) { r.Name = "" }},
		{name: "dry run", object: configMap("", ""), want: "allow", edit: func(r *admissionv1.AdmissionRequest) { r.DryRun = &dry }},
		{name: "another user", object: configMap("", ""), want: "deny refused: kind", edit: func(r *admissionv1.AdmissionRequest) { r.UserInfo.Username = "bob" }},
	})
}

// CEL rules that bring nothing but expressions share an object, also with others.
func TestCELPacks(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: p
spec:
  background: false
  validationFailureAction: Enforce
  rules:
    - name: a
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
      validate: {cel: {expressions: [{expression: has(object.data), message: no data}, {expression: "!has(object.binaryData)", messageExpression: "'binary'"}]}}
    - name: b
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE], names: [x*]}}]}
      validate: {cel: {expressions: [{expression: "object.data.size() > 1"}]}}
    - name: c
      match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
      validate: {cel: {variables: [{name: d, expression: object.data}], expressions: [{expression: "variables.d.size() < 3"}]}}
`
	p := translateText(t, text, setting{})
	if len(p.result.Objects) != 2 || len(p.result.Objects[0].Draft.Members) != 2 {
		t.Errorf("%d objects, %d members\n%s", len(p.result.Objects), len(p.result.Objects[0].Draft.Members), p.yaml(t))
	}
	p.try(t, []trial{
		{name: "pass", object: configMap("", `"a":"b"`), want: "allow"},
		{name: "first rule", object: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"app"},"data":{"a":"b"},"binaryData":{"x":"eA=="}}`, want: "deny refused: [a] binary"},
		{name: "second rule", object: strings.Replace(configMap("", `"a":"b"`), `"c"`, `"xc"`, 1), want: "deny refused: [b] failed expression: object.data.size() > 1"},
		{name: "third rule", object: configMap("", `"a":"b","b":"b","c":"b"`), want: "deny refused: failed expression: variables.d.size() < 3"},
	})
}

// A namespaced Policy binds its namespace alone.
func TestCELInNamespacedPolicy(t *testing.T) {
	t.Parallel()
	text := strings.Replace(oneCELRule("", "", small), "kind: ClusterPolicy\nmetadata:", "kind: Policy\nmetadata:\n  namespace: app", 1)
	p := translateText(t, text, setting{})
	p.try(t, []trial{
		{name: "here", object: configMap("", `"size":"11"`), want: "deny refused"},
		{name: "elsewhere", object: strings.Replace(configMap("", `"size":"11"`), `"app"`, `"other"`, 1), want: "nomatch"},
	})
}

// The policy's own match conditions come before all rules, under their own names.
func TestMatchConditions(t *testing.T) {
	t.Parallel()
	text := oneCELRule(`webhookConfiguration: {matchConditions: [{name: match, expression: "object.metadata.name != 'free'"}]}`, "", small)
	text = strings.Replace(text, "kinds: [ConfigMap]", "kinds: [ConfigMap], names: [c, free, risky]", 1)
	p := translateText(t, text, setting{})
	var names []string
	for _, c := range p.result.Objects[0].Policy.Spec.MatchConditions {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "match match-2" {
		t.Errorf("got %s", got)
	}
	p.try(t, []trial{
		{name: "fail", object: configMap("", `"size":"11"`), want: "deny refused"},
		{name: "condition", object: strings.Replace(configMap("", `"size":"11"`), `"c"`, `"free"`, 1), want: "nomatch"},
		{name: "name", object: strings.Replace(configMap("", `"size":"11"`), `"c"`, `"x"`, 1), want: "nomatch"},
	})
}

// Rules for pods look at the template of a controller.
func TestCELAutogen(t *testing.T) {
	t.Parallel()
	text := strings.Replace(celPolicy, "    pod-policies.kyverno.io/autogen-controllers: none\n", "    a: b\n", 1)
	p := translateText(t, text, setting{})
	job := func(spec string) string {
		return `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"web","namespace":"app"},"spec":{"template":{"spec":{` + spec + `}}}}`
	}
	p.try(t, []trial{
		{name: "pass", object: job(`"priority": 1`), want: "allow"},
		{name: "fail", object: job(`"priority": 1, "hostNetwork": true`), want: "deny refused: no host network"},
		{name: "error", object: job(``), want: "deny refused"},
		{name: "deletion", operation: "DELETE", object: job(`"priority": 1`), want: "deny refused"},
	})
}
