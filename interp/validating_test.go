package interp

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// validatingPolicy is a policy on Widgets, unless spec says what it matches.
func validatingPolicy(spec string) string {
	if !strings.Contains(spec, "matchConstraints") {
		spec = `matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: ["*"], resources: [widgets], operations: ["*"]}]}` + "\n" + spec
	}
	return `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
` + indent(2, spec) + "\n"
}

// validates judges the creation of a Widget by one validation.
func validates(t *testing.T, expression string, world World) RuleResult {
	t.Helper()
	source := validatingPolicy(`validations: [{expression: "` + strings.ReplaceAll(expression, `"`, `\"`) + `", message: bad}]`)
	return judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: w, namespace: team, labels: {a: b}}, spec: {x: 1, text: t, "on": true}}`))}, world)
}

func TestValidations(t *testing.T) {
	for _, tt := range []struct {
		expression string
		want       Status
	}{
		{"object.spec.x == 1", Pass},
		{"object.spec.x == 2", Fail},
		{"object.spec.y == 1", Error},
		{"request.namespace == 'team'", Pass},
		{"namespaceObject.metadata.name == 'team'", Pass},
		{"object.spec.text.orValue('z') == 't'", Pass}, // a plain value is its own
		{"object.spec.?text.orValue('z') == 't'", Pass},
		{"object.spec.?zz.orValue('z') == 'z'", Pass},
		{"object.spec.?zz.or(object.spec.?text).orValue('z') == 't'", Pass},
		{"object.spec.on.orValue(false)", Pass},
		{"oldObject != null && oldObject == {} && !has(oldObject.metadata)", Pass}, // none is an empty one
		{"request.oldObject == null && request.object.spec.x == 1", Pass},
		{"has(request.subResource) || has(request.uid)", Error}, // there is no request.uid
		{"!has(request.subResource) && request.kind.kind == 'Widget'", Pass},
		{"exceptions.allowedImages.size() == 0 && !('x' in exceptions.allowedValues)", Pass},
		{"object.spec.?on.orValue(1 / 0 == 1)", Error}, // no boolean: it does not compile
		{"nothing(1)", Error},
	} {
		if got := validates(t, tt.expression, nil); got.Status != tt.want {
			t.Errorf("%s: want %s, got %s (%s)", tt.expression, tt.want, got.Status, got.Message)
		}
	}
}

func TestValidatingConditionsAndMessages(t *testing.T) {
	for _, tt := range []struct {
		spec    string
		want    Status
		message string
	}{
		{"validations: [{expression: 'false'}]", Fail, "failed expression: false"},
		{"validations: [{expression: 'false', message: bad}]", Fail, "bad"},
		{"validations: [{expression: 'false', message: bad, messageExpression: \"'x is ' + string(object.spec.x)\"}]", Fail, "x is 1"},
		{"validations: [{expression: 'false', messageExpression: \"object.spec.zz\"}]", Error, "must evaluate to string"},
		{"validations: [{expression: 'false', message: a}, {expression: 'object.zz == 1'}]", Fail, "a"},
		{"validations: [{expression: 'object.zz == 1'}, {expression: 'false', message: a}]", Error, "no such key"},
		{"matchConditions: [{name: a, expression: 'false'}]\nvalidations: [{expression: 'false'}]", Skip, ""},
		{"matchConditions: [{name: a, expression: 'object.zz == 1'}]\nvalidations: [{expression: 'false'}]", Error, "no such key"},
		{"matchConditions: [{name: a, expression: 'object.zz == 1'}, {name: b, expression: 'false'}]\nvalidations: [{expression: 'false'}]", Skip, ""},
		{"variables: [{name: v, expression: 'object.spec.x + 1'}, {name: w, expression: 'variables.v + 1'}]\nvalidations: [{expression: 'variables.w == 3'}]", Pass, ""},
		{"matchConditions: [{name: a, expression: 'variables.v == 1'}]\nvariables: [{name: v, expression: '1'}]\nvalidations: [{expression: 'true'}]", Error, "undefined field"},
		{"failurePolicy: Ignore\nmatchConditions: [{name: a, expression: 'object.zz == 1'}]\nvalidations: [{expression: 'false'}]", Skip, "skip"},
		{"validations: [{expression: 'false', message: bad, messageExpression: \"''\"}]", Fail, "failed expression"},
		{"variables: [{name: v, expression: 'object.zz'}]\nvalidations: [{expression: 'true'}]", Pass, ""}, // nobody asks for it
		{"evaluation: {admission: {enabled: false}}\nvalidations: [{expression: 'false'}]", None, ""},
		{"evaluation: {mode: JSON}\nvalidations: [{expression: 'false'}]", None, ""},
	} {
		got := judgeOne(t, validatingPolicy(tt.spec), &Request{Admission: create(object(t, `{metadata: {name: w, namespace: team}, spec: {x: 1}}`))}, nil)
		if got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: want %s (%s), got %s (%s)", tt.spec, tt.want, tt.message, got.Status, got.Message)
		}
	}
}

func TestValidatingMatch(t *testing.T) {
	rule := func(more string) string {
		return `matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]` + more + "}\nvalidations: [{expression: 'false'}]"
	}
	for _, tt := range []struct {
		more string
		want Status
	}{
		{``, Fail},
		{`, excludeResourceRules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"], resourceNames: [w]}]`, None},
		{`, excludeResourceRules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"], resourceNames: [v]}]`, Fail},
		{`, objectSelector: {matchLabels: {a: b}}`, Fail},
		{`, objectSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}`, None},
		{`, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: team}}`, Fail},
		{`, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "te*"}}`, Error}, // no label's value
	} {
		got := judgeOne(t, validatingPolicy(rule(tt.more)), &Request{Admission: create(object(t, `{metadata: {name: w, namespace: team, labels: {a: b}}}`))}, nil)
		if got.Status != tt.want {
			t.Errorf("%s: want %s, got %s (%s)", tt.more, tt.want, got.Status, got.Message)
		}
	}
}

func TestValidatingForms(t *testing.T) {
	const pods = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
validations: [{expression: "object.spec.hostNetwork.orValue(false) == false && object.metadata.?labels.?app.orValue('') != ''"}]
`
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a}, spec: {template: {metadata: {labels: {app: x}}, spec: {hostNetwork: HOST}}}}`
	for _, tt := range []struct {
		more, host string
		want       map[string]Status
	}{
		{"", "false", map[string]Status{"p": None, "autogen-p": Pass, "autogen-cronjob-p": None}},
		{"", "true", map[string]Status{"p": None, "autogen-p": Fail, "autogen-cronjob-p": None}},
		{"autogen: {podControllers: {controllers: [cronjobs]}}", "true", map[string]Status{"p": None, "autogen-cronjob-p": None}},
		{"autogen: {podControllers: {controllers: []}}", "true", map[string]Status{"p": None}},
	} {
		got := map[string]Status{}
		for _, r := range judgeAll(t, validatingPolicy(pods+tt.more), &Request{Admission: create(object(t, strings.ReplaceAll(deployment, "HOST", tt.host)))}, nil) {
			got[r.Rule] = r.Status
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v", tt.more, got)
		}
		for rule, want := range tt.want {
			if got[rule] != want {
				t.Errorf("%q %s %s: want %s, got %s", tt.more, tt.host, rule, want, got[rule])
			}
		}
	}
}

func TestValidatingIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("late"))
	f := parse(t, validatingPolicy("validations: [{expression: 'true'}]"))
	got := New(f.Policies, nil, &Offline{}, Limits{}).Judge(ctx, &Request{Admission: create(object(t, `{}`))})
	if got[0].Status != Error {
		t.Errorf("got %s", got[0].Status)
	}
}

// The namespace of a Namespace is the one that is stored.
func TestValidatingStoredNamespace(t *testing.T) {
	policy := validatingPolicy(`matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [namespaces], operations: [CREATE, UPDATE]}]}
validations: [{expression: "namespaceObject.metadata.labels.env == 'stored'"}]
`)
	namespace := func(env string) map[string]any {
		return object(t, `{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {env: `+env+`}}}`)
	}
	admission := create(namespace("new"))
	admission["namespace"], admission["name"], admission["operation"] = "team", "team", "UPDATE"
	admission["oldObject"] = namespace("stored")
	world := &Offline{Objects: []map[string]any{namespace("stored")}}
	if got := judgeOne(t, policy, &Request{Admission: admission}, world); got.Status != Pass {
		t.Errorf("%s (%s)", got.Status, got.Message)
	}
}
