package interp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
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
		{"object.spec.?on.orValue(1 / 0 == 1)", Error}, // no boolean: it does not compile
		{"nothing(1)", Error},
	} {
		if got := validates(t, tt.expression, nil); got.Status != tt.want {
			t.Errorf("%s: want %s, got %s (%s)", tt.expression, tt.want, got.Status, got.Message)
		}
	}
}

func TestKyvernoFunctions(t *testing.T) {
	world := &Offline{
		Time: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Answers: map[string][]byte{
			"/api/v1/namespaces/team/configmaps/c": []byte(`{"data": {"k": "v"}}`),
			"/apis/apps/v1/deployments":            []byte(`{"items": [{"metadata": {"name": "d"}}]}`),
			"/api/v1/pods?labelSelector=a%3Db":     []byte(`{"items": []}`),
			"https://service/x":                    []byte(`{"ok": true}`),
		},
		Globals: map[string]any{"g.names": []any{"a"}},
		Images:  map[string]map[string]any{"nginx": {"config": map[string]any{"user": "1"}}},
	}
	for _, expression := range []string{
		"resource.Get('v1', 'configmaps', 'team', 'c').data.k == 'v'",
		"resource.List('apps/v1', 'deployments', '').items.exists(d, d.metadata.name == 'd')",
		"resource.List('v1', 'pods', '', {'a': 'b'}).items.size() == 0",
		"http.Get('https://service/x').ok == true",
		"http.Post('https://service/x', {'a': [1, 2], 'b': [3]}).ok == true",
		"http.Get('https://service/x', {'h': 'v'}).ok == true",
		"globalContext.Get('g', 'names')[0] == 'a'",
		"image.GetMetadata('nginx').config.user == '1'",
		"['nginx'].all(image, image.startsWith('nginx'))",
		"image('ghcr.io/a/b:1').registry() == 'ghcr.io'",
		"image('ghcr.io/a/b:1').repository() == 'a/b' && image('ghcr.io/a/b:1').tag() == '1' && image('nginx').identifier() == 'latest'",
		"image('nginx') == image('docker.io/nginx') && !image('nginx').containsDigest() && image('nginx').digest() == ''",
		"isImage('nginx') && !isImage('a b')",
		"parseServiceAccount('system:serviceaccount:ns:sa') == {'Name': 'sa', 'Namespace': 'ns'}",
		"parseServiceAccount('alice').Name == ''",
		"md5('a').size() == 32 && sha1('a').size() == 40 && sha256('a').size() == 64",
		"math.round(3.14159, 2) == 3.14",
		"json.unmarshal('{\"a\": [1]}').a[0] == 1",
		"yaml.parse('a: b').a == 'b'",
		"random('[a]{3}') == 'aaa' && random().size() == 8",
		"listObjToMap([{'n': 'a'}], [{'v': 1}], 'n', 'v') == {'a': 1}",
		"time.now() == timestamp('2026-03-04T05:06:07Z')",
		"time.truncate(time.now(), duration('1h')) == timestamp('2026-03-04T05:00:00Z')",
		"time.toCron(time.now()) == '6 5 4 3 3'",
	} {
		if got := validates(t, expression, world); got.Status != Pass {
			t.Errorf("%s: %s (%s)", expression, got.Status, got.Message)
		}
	}
	for _, tt := range []struct{ expression, message string }{
		{"resource.Get('v1', 'pods', 'a', 'b') == {}", "resource.Get: there is no answer for /api/v1/namespaces/a/pods/b"},
		{"image.GetMetadata('redis') == {}", "nothing is known of the image redis"},
		{"image('a b').tag() == ''", "image: "},
		{"listObjToMap([{}], [], 'n', 'v') == {}", "as many"},
		{"math.round(1.0, -1) == 1.0", "places"},
		{"x509.decode('a') == {}", "no PEM block"},
		{"resource.Post('v1', 'pods', {}) == {}", "undeclared reference to 'resource'"},
		{"sha256('a') == ''", "bad"},
	} {
		got := validates(t, tt.expression, world)
		if got.Status != Error && got.Status != Fail || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: %s (%s), want %q", tt.expression, got.Status, got.Message, tt.message)
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
