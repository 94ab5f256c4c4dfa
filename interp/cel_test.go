package interp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kvap/kvap/internal/budget"
	"github.com/kvap/kvap/policy"
)

func TestCEL(t *testing.T) {
	const widget = `{metadata: {name: a, namespace: team, labels: {app: web}}, spec: {x: 2}}`
	tests := []struct {
		note, rule string
		want       Status
		message    string
	}{
		{"true", `validate: {cel: {expressions: [{expression: "object.spec.x == 2"}]}}`, Pass, "Validation rule 'r' passed."},
		{"false", `validate: {cel: {expressions: [{expression: "object.spec.x == 1", message: bad}]}}`, Fail, "bad"},
		{"the first that is false", `validate: {cel: {expressions: [{expression: "true", message: a}, {expression: "false", message: b}, {expression: "false", message: c}]}}`, Fail, "b"},
		{"the rule's message", `validate: {message: m, cel: {expressions: [{expression: "false"}]}}`, Fail, "m"},
		{"a message expression", `validate: {message: m, cel: {expressions: [{expression: "false", messageExpression: "'x is ' + string(object.spec.x)"}]}}`, Fail, "x is 2"},
		{"a message expression of blanks", `validate: {message: " m ", cel: {expressions: [{expression: "false", messageExpression: "'  '"}]}}`, Fail, "m"},
		{"a message expression of two lines", `validate: {cel: {expressions: [{expression: " false ", messageExpression: "'a\\nb'"}]}}`, Fail, "failed expression: false"},
		{"a message expression that errs", `validate: {cel: {expressions: [{expression: "false", message: own, messageExpression: "string(object.spec.zz)"}]}}`, Fail, "own"},
		{"a message expression that does not compile", `validate: {cel: {expressions: [{expression: "false", message: own, messageExpression: "1"}]}}`, Fail, "own"},
		{"a message expression that is long", `validate: {cel: {expressions: [{expression: "false", message: own, messageExpression: "lists.range(3000).map(i, 'ab').join()"}]}}`, Fail, "own"},
		{"a message expression asks no authorizer", `validate: {cel: {expressions: [{expression: "false", message: own, messageExpression: "string(authorizer.group('').resource('pods').check('create').allowed())"}]}}`, Fail, "own"},
		{"what errs is not true", `validate: {cel: {expressions: [{expression: "true", message: a}, {expression: "object.spec.zz == 1"}, {expression: "false", message: c}]}}`, Fail, "no such key: zz"},
		{"an error is a failure", `validate: {cel: {expressions: [{expression: "object.spec.zz == 1"}]}}`, Fail, "no such key: zz"},
		{"what does not compile too", `validate: {cel: {expressions: [{expression: "object.spec.x == nothing"}]}}`, Fail, "nothing"},
		{"variables", `validate: {cel: {variables: [{name: x, expression: object.spec.x}], expressions: [{expression: "variables.x > 5", message: small}]}}`, Fail, "small"},
		{"preconditions that hold", `
celPreconditions: [{name: c, expression: "object.spec.x == 2"}]
validate: {cel: {expressions: [{expression: "false"}]}}`, Fail, ""},
		{"preconditions that do not", `
celPreconditions: [{name: c, expression: "object.spec.x == 1"}]
validate: {cel: {expressions: [{expression: "false"}]}}`, Skip, "cel preconditions not met"},
		{"preconditions that err", `
celPreconditions: [{name: c, expression: "object.spec.zz == 1"}]
validate: {cel: {expressions: [{expression: "true"}]}}`, Fail, ""},
		{"the request", `validate: {cel: {expressions: [{expression: "request.operation == 'CREATE' && request.userInfo.username == 'alice' && request.kind.kind == 'Widget'"}]}}`, Pass, ""},
		{"the namespace", `validate: {cel: {expressions: [{expression: "namespaceObject.metadata.labels.env == 'prod'"}]}}`, Pass, ""},
		{"the old object", `validate: {cel: {expressions: [{expression: "oldObject == null"}]}}`, Pass, ""},
		{"audit annotations have no effect", `validate: {cel: {expressions: [{expression: "true"}], auditAnnotations: [{key: k, valueExpression: "object.spec.zz"}]}}`, Pass, ""},
		{"the authorizer", `validate: {cel: {expressions: [{expression: "authorizer.group('').resource('pods').check('create').allowed()"}]}}`, Pass, ""},
	}
	world := &Offline{Allow: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "alice" && a.GetResource() == "pods" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "", nil
	})}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			request := &Request{Admission: create(object(t, widget)), NamespaceLabels: map[string]string{"env": "prod"}}
			got := judgeOne(t, widgetPolicy(tt.rule), request, world)
			if got.Status != tt.want || !strings.Contains(got.Message, tt.message) {
				t.Errorf("want %s (%s), got %s (%s)", tt.want, tt.message, got.Status, got.Message)
			}
		})
	}
}

// Messages are paid from what the checks leave, even those of checks that hold.
func TestCELMessagesCostTooMuch(t *testing.T) {
	const long = `{name: long, expression: object.spec.long}`
	looks := strings.Repeat("variables.long.contains('b') || ", 8)
	check := `{expression: "object.spec.x == 2", messageExpression: "(` + looks + `false) ? 'a' : 'b'"}`
	for checks, want := range map[int]Status{3: Pass, 14: Fail} {
		source := widgetPolicy(`validate: {cel: {variables: [` + long + `], expressions: [` + strings.Repeat(check+", ", checks) + `]}}`)
		got := judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: a, namespace: team}, spec: {x: 2, long: `+strings.Repeat("a", 1_000_000)+`}}`))}, nil)
		if got.Status != want || want == Fail && !strings.HasPrefix(got.Message, "failed messageExpression: ") {
			t.Errorf("%d checks: want %s, got %s (%s)", checks, want, got.Status, got.Message)
		}
	}
}

// TestCELOperations pins that CEL rules judge deletions, of a null object, and
// exempt no existing violations.
func TestCELOperations(t *testing.T) {
	bad := object(t, `{metadata: {name: a, namespace: team}, spec: {x: 2}}`)
	source := widgetPolicy(`validate: {failureAction: Enforce, cel: {expressions: [{expression: "object.spec.x == 1"}]}}`)
	if got := judgeOne(t, source, &Request{Admission: admissionRequest("DELETE", nil, bad)}, nil); got.Status != Fail {
		t.Errorf("DELETE: got %s (%s)", got.Status, got.Message)
	}
	if got := judgeOne(t, source, &Request{Admission: admissionRequest("UPDATE", bad, bad)}, nil); got.Status != Fail {
		t.Errorf("UPDATE: got %s (%s)", got.Status, got.Message)
	}
}

func TestCELParams(t *testing.T) {
	param := func(name string, limit int64) map[string]any {
		return map[string]any{"apiVersion": "x.io/v1", "kind": "Limit", "metadata": map[string]any{
			"name": name, "namespace": "team", "labels": map[string]any{"use": "yes"}}, "max": limit}
	}
	tests := []struct {
		note, ref string
		objects   []map[string]any
		want      Status
	}{
		{"by name", `{name: a, parameterNotFoundAction: Deny}`, []map[string]any{param("a", 3)}, Pass},
		{"by name, too small", `{name: a, parameterNotFoundAction: Deny}`, []map[string]any{param("a", 1)}, Fail},
		{"by selector, one is too small", `{selector: {matchLabels: {use: "yes"}}, parameterNotFoundAction: Deny}`, []map[string]any{param("a", 3), param("b", 1)}, Fail},
		{"none, which is allowed", `{name: a, parameterNotFoundAction: Allow}`, nil, Pass},
		{"none", `{name: a, parameterNotFoundAction: Deny}`, nil, Error},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			source := widgetPolicy(`validate: {cel: {paramKind: {apiVersion: x.io/v1, kind: Limit}, paramRef: ` + tt.ref + `, expressions: [{expression: "object.spec.x <= params.max"}]}}`)
			got := judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: a, namespace: team}, spec: {x: 2}}`))}, &Offline{Objects: tt.objects})
			if got.Status != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

// What does not compile is told, and what is compiled for that judges requests.
func TestBrokenIsWhatJudges(t *testing.T) {
	in := func(cel string) *Interpreter {
		f, ds := policy.Parse("p.yaml", []byte(widgetPolicy("validate: {cel: "+cel+"}")))
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		return New(f.Policies, nil, &Offline{}, Limits{})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	right := in("{expressions: [{expression: object.spec.x == 2}]}")
	own := right.policies[0].cel[right.policies[0].Rules[0]]
	if err := right.Broken(ended); !errors.Is(err, context.Canceled) || own.validator != nil {
		t.Errorf("nobody waits: %v", err)
	}
	if err := right.Broken(t.Context()); err != nil || own.validator == nil {
		t.Errorf("a rule that compiles: %v", err)
	}
	if rules := right.policies[0].rulesFor(right, "Widget"); len(rules) != 1 || rules[0].cel != own {
		t.Error("requests are judged by something else")
	}
	if err := in("{expressions: [{expression: objct.spec.x == 2}]}").Broken(t.Context()); err == nil || !strings.Contains(err.Error(), "undeclared reference to 'objct'") {
		t.Errorf("a rule that does not compile: %v", err)
	}
	large := in(`{expressions: [{expression: "[1]` + strings.Repeat(".map(x, [x])", 200) + ` == []"}]}`)
	if err := large.Broken(t.Context()); !errors.Is(err, budget.TooLarge{}) || large.policies[0].cel[large.policies[0].Rules[0]].validator != nil {
		t.Errorf("a rule that is too large: %v", err)
	}
}

// Match conditions that are too large to be compiled are an error of the rules that apply,
// and of no others.
func TestMatchConditionsThatAreTooLarge(t *testing.T) {
	large := "[1]" + strings.Repeat(".map(x, [x])", 200) + " == []"
	source := strings.Replace(widgetPolicy(`validate: {pattern: {spec: {x: 1}}}`), "spec:\n", "spec:\n  webhookConfiguration: {matchConditions: [{name: m, expression: '"+large+"'}]}\n", 1)
	f, ds := policy.Parse("p.yaml", []byte(source))
	if ds.HasErrors() || len(f.Policies[0].MatchConditions) != 1 {
		t.Fatal(ds, source)
	}
	in := New(f.Policies, nil, &Offline{}, Limits{})
	for kind, want := range map[string]Status{"Widget": Error, "Gadget": None} {
		object := data(t, `{apiVersion: x.io/v1, kind: `+kind+`, metadata: {name: w}, spec: {x: 2}}`).(map[string]any)
		for _, r := range in.Judge(t.Context(), &Request{Admission: create(object)}) {
			if r.Status != want {
				t.Errorf("%s: %s (%s), want %s", kind, r.Status, r.Message, want)
			}
		}
	}
}

// A request whose time ends in the middle of CEL is not judged: it is neither kept away by match
// conditions, nor does it violate anything.
func TestTimeEndsWithinCEL(t *testing.T) {
	numbers := "[" + strings.Repeat("1,", 50) + "1]"
	long := strings.ReplaceAll("LIST.all(a, LIST.all(b, LIST.all(c, a + b + c > 0)))", "LIST", numbers)
	for note, source := range map[string]string{
		"match conditions": strings.Replace(widgetPolicy(`validate: {deny: {}}`), "spec:\n", "spec:\n  webhookConfiguration: {matchConditions: [{name: m, expression: '"+long+"'}]}\n", 1),
		"preconditions":    widgetPolicy(`celPreconditions: [{name: m, expression: "` + long + `"}]` + "\nvalidate: {cel: {expressions: [{expression: 'true'}]}}"),
		"expressions":      widgetPolicy(`validate: {cel: {expressions: [{expression: "` + long + `"}]}}`),
	} {
		ended, end := context.WithCancel(t.Context())
		end()
		for when, ctx := range map[string]context.Context{"before it": ended, "within it": &endsInCEL{Context: t.Context()}} {
			in := New(parse(t, source).Policies, nil, &Offline{}, Limits{})
			if got := in.Judge(ctx, &Request{Admission: create(object(t, `{}`))}); statuses(got) != "r=error" {
				t.Errorf("%s, %s: %s (%s)", note, when, statuses(got), got[0].Message)
			}
		}
	}
}

// endsInCEL is a context that ends when CEL asks whether it has: nobody else asks for its channel.
type endsInCEL struct {
	context.Context
	ended bool
}

func (c *endsInCEL) Done() <-chan struct{} {
	c.ended = true
	closed := make(chan struct{})
	close(closed)
	return closed
}

func (c *endsInCEL) Err() error {
	if c.ended {
		return context.DeadlineExceeded
	}
	return nil
}

// TestConditionsWithoutAuthorizer: a policy is passed over where its match conditions ask the authorizer,
// whoever is allowed what: they are evaluated once more where nobody answers. It judges where they
// are true without an answer.
func TestConditionsWithoutAuthorizer(t *testing.T) {
	world := &Offline{Allow: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})}
	for condition, want := range map[string]Status{"true": Fail, "authorizer.group('').resource('pods').check('get').allowed()": None,
		"request.operation != 'DELETE' || !authorizer.group('').resource('pods').check('get').allowed()": Fail} {
		source := strings.Replace(widgetPolicy(`validate: {deny: {}}`), "spec:\n", "spec:\n  webhookConfiguration: {matchConditions: [{name: a, expression: \""+condition+"\"}]}\n", 1)
		if !strings.Contains(source, condition) {
			t.Fatal(source)
		}
		if got := judgeOne(t, source, &Request{Admission: create(object(t, `{metadata: {name: a, namespace: team}}`))}, world); got.Status != want {
			t.Errorf("%s: got %s (%s), want %s", condition, got.Status, got.Message, want)
		}
	}
}
