package interp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
)

// parse reads a policy or exception written in YAML.
func parse(t testing.TB, source string) *policy.File {
	t.Helper()
	f, ds := policy.Parse("policy.yaml", []byte(source))
	if ds.HasErrors() {
		t.Fatalf("the policy has errors: %v\n%s", ds, source)
	}
	return f
}

// data reads YAML as Go data, integers as int64.
func data(t testing.TB, source string) any {
	t.Helper()
	j, err := yaml.YAMLToJSON([]byte(source))
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	var v any
	if err := kjson.Unmarshal(j, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func object(t testing.TB, source string) map[string]any {
	t.Helper()
	m, ok := data(t, source).(map[string]any)
	if !ok {
		t.Fatalf("no object:\n%s", source)
	}
	return m
}

// indent moves a block of YAML n columns to the right.
func indent(n int, block string) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(strings.Trim(block, "\n"), "\n", "\n"+pad)
}

// widgetPolicy is a policy with one rule, r, for every Widget. The parts are those
// of a rule beside name and match.
func widgetPolicy(rule string) string {
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Widget]}}]}
` + indent(4, rule) + "\n"
}

// create is the creation of an object of x.io/v1 Widget, or of the kind that the
// object names.
func create(object map[string]any) map[string]any {
	return admissionRequest("CREATE", object, nil)
}

func admissionRequest(operation string, object, old map[string]any) map[string]any {
	of := object
	if of == nil {
		of = old
	}
	group, version, kind := "x.io", "v1", "Widget"
	if k, ok := of["kind"].(string); ok {
		kind, group = k, ""
		version = of["apiVersion"].(string)
		if g, v, ok := strings.Cut(version, "/"); ok {
			group, version = g, v
		}
	}
	resource := strings.ToLower(kind) + "s"
	m := map[string]any{
		"uid": "1", "operation": operation, "name": metaText(of, "name"), "namespace": metaText(of, "namespace"),
		"kind":     map[string]any{"group": group, "version": version, "kind": kind},
		"resource": map[string]any{"group": group, "version": version, "resource": resource},
		"userInfo": map[string]any{"username": "alice", "groups": []any{"dev"}},
	}
	if object != nil {
		m["object"] = object
	}
	if old != nil {
		m["oldObject"] = old
	}
	return m
}

// judgeOne judges by a policy with one rule.
func judgeOne(t testing.TB, source string, request *Request, world World) RuleResult {
	t.Helper()
	results := judgeAll(t, source, request, world)
	if len(results) != 1 {
		t.Fatalf("want one result, got %+v", results)
	}
	return results[0]
}

func judgeAll(t testing.TB, source string, request *Request, world World) []RuleResult {
	t.Helper()
	f := parse(t, source)
	if world == nil {
		world = &Offline{}
	}
	return New(f.Policies, f.Exceptions, world, Limits{}).Judge(context.Background(), request)
}

// widgetStatus is the status of a rule for the creation of a Widget.
func widgetStatus(t testing.TB, rule, object string) RuleResult {
	t.Helper()
	return judgeOne(t, widgetPolicy(rule), &Request{Admission: create(data(t, object).(map[string]any))}, nil)
}

func statuses(results []RuleResult) string {
	var out []string
	for _, r := range results {
		out = append(out, fmt.Sprintf("%s=%s", r.Rule, r.Status))
	}
	return strings.Join(out, " ")
}

func TestPipeline(t *testing.T) {
	const twoRules = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  %s
  background: false
  rules:
  - name: a
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate: {pattern: {spec: {x: 1}}}
  - name: b
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate: {pattern: {spec: {w: 1}}}
`
	tests := []struct{ note, policy, object, want string }{
		{"every rule is judged", fmt.Sprintf(twoRules, ""), `{spec: {x: 1, w: 2}}`, "a=pass b=fail"},
		{"One stops at a pass", fmt.Sprintf(twoRules, "applyRules: One"), `{spec: {x: 1, w: 2}}`, "a=pass b=none"},
		{"One stops at a failure", fmt.Sprintf(twoRules, "applyRules: One"), `{spec: {x: 2, w: 2}}`, "a=fail b=none"},
		{"without admission nothing is said", fmt.Sprintf(twoRules, "admission: false"), `{spec: {x: 2, w: 2}}`, "a=none b=none"},
		{"match conditions of the webhook", fmt.Sprintf(twoRules, "webhookConfiguration: {matchConditions: [{name: c, expression: 'object.spec.x == 1'}]}"),
			`{spec: {x: 2, w: 2}}`, "a=none b=none"},
		{"match conditions that hold", fmt.Sprintf(twoRules, "webhookConfiguration: {matchConditions: [{name: c, expression: 'object.spec.x == 2'}]}"),
			`{spec: {x: 2, w: 2}}`, "a=fail b=fail"},
		{"match conditions that err", fmt.Sprintf(twoRules, "webhookConfiguration: {matchConditions: [{name: c, expression: 'object.spec.z == 2'}]}"),
			`{spec: {x: 2, w: 2}}`, "a=none b=none"},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			if tt.policy == "" {
				t.Fatal("no policy")
			}
			source := strings.Replace(tt.policy, "admission: false\n  background: false", "admission: false\n  background: true", 1)
			got := statuses(judgeAll(t, source, &Request{Admission: create(object(t, tt.object))}, nil))
			if got != tt.want {
				t.Errorf("want %s, got %s", tt.want, got)
			}
		})
	}
}

func TestPreconditions(t *testing.T) {
	tests := []struct{ note, preconditions, want string }{
		{"true", `{all: [{key: "{{ request.operation }}", operator: Equals, value: CREATE}]}`, "fail"},
		{"false", `{all: [{key: "{{ request.operation }}", operator: Equals, value: UPDATE}]}`, "skip"},
		{"a missing key is an error", `{all: [{key: "{{ request.object.spec.z }}", operator: Equals, value: UPDATE}]}`, "error"},
		{"a default helps", `{all: [{key: "{{ request.object.spec.z || 'a' }}", operator: Equals, value: b}]}`, "skip"},
		{"a default is the policy's", `{all: [{key: "{{ request.object.spec.z || '1Gi' }}", operator: Equals, value: "*"}]}`, "skip"}, // a quantity
		{"a default within a text is too", `{all: [{key: "{{ request.object.spec.z || '{{ request.object.spec.y || '1Gi' }}' }}", operator: Equals, value: "*"}]}`, "skip"},
		{"an empty any is false", `{any: []}`, "skip"},
		{"an error in all shows although any is false", `{any: [{key: a, operator: Equals, value: b}], all: [{key: "{{ nothing }}", operator: Equals, value: a}]}`, "error"},
		{"none at all are true", `{}`, "fail"},
		{"the legacy list", `[{key: a, operator: Equals, value: a}]`, "fail"},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := widgetStatus(t, "preconditions: "+tt.preconditions+"\nvalidate: {deny: {}}", `{spec: {x: 1}}`)
			if string(got.Status) != tt.want {
				t.Errorf("want %s, got %s (%s)", tt.want, got.Status, got.Message)
			}
		})
	}
}

func TestOtherRuleTypes(t *testing.T) {
	tests := []struct {
		note, rule string
		want       Status
		code       string
	}{
		{"mutate", `mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}`, None, "KV000"},
		{"image verification", `verifyImages: [{mutateDigest: false, imageReferences: ["*"], attestors: [{entries: [{keys: {publicKeys: k}}]}]}]`, Error, Unsupported.String()},
		{"manifests", `validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: k}}]}]}}`, Error, Unsupported.String()},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			got := widgetStatus(t, tt.rule, `{}`)
			if got.Status != tt.want || got.Code.String() != tt.code {
				t.Errorf("want %s %s, got %s %s (%s)", tt.want, tt.code, got.Status, got.Code, got.Message)
			}
		})
	}
}

// TestNamespacedPolicy pins that a Policy judges its own namespace only.
func TestNamespacedPolicy(t *testing.T) {
	const source = `apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: p, namespace: team}
spec:
  background: false
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Widget, Namespace]}}]}
    validate: {deny: {}}
`
	tests := []struct{ note, object, want string }{
		{"its namespace", `{metadata: {name: a, namespace: team}}`, "r=fail"},
		{"another", `{metadata: {name: a, namespace: other}}`, "r=none"},
		{"no namespace", `{metadata: {name: a}}`, "r=none"},
		{"the Namespace itself", `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`, "r=none"},
	}
	for _, tt := range tests {
		t.Run(tt.note, func(t *testing.T) {
			results := judgeAll(t, source, &Request{Admission: create(object(t, tt.object))}, nil)
			if got := statuses(results); got != tt.want {
				t.Errorf("want %s, got %s", tt.want, got)
			}
			if results[0].Namespace != "team" {
				t.Errorf("the result names the namespace %q", results[0].Namespace)
			}
		})
	}
}

// crashing is a World that panics.
type crashing struct{ *Offline }

func (crashing) ConfigMap(context.Context, string, string) (map[string]any, error) {
	panic("no cluster")
}

func TestPanicStaysInItsRule(t *testing.T) {
	source := `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  background: false
  rules:
  - name: crashes
    match: {any: [{resources: {kinds: [Widget]}}]}
    context: [{name: c, configMap: {name: a, namespace: b}}]
    validate: {deny: {conditions: {all: [{key: "{{ c.data.x }}", operator: Equals, value: y}]}}}
  - name: works
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate: {deny: {}}
`
	got := judgeAll(t, source, &Request{Admission: create(object(t, `{}`))}, crashing{&Offline{}})
	if statuses(got) != "crashes=error works=fail" || !strings.Contains(got[0].Message, "no cluster") {
		t.Errorf("got %+v", got)
	}
}

func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f := parse(t, widgetPolicy("validate: {deny: {}}"))
	got := New(f.Policies, nil, &Offline{}, Limits{}).Judge(ctx, &Request{Admission: create(object(t, `{}`))})
	if statuses(got) != "r=error" {
		t.Errorf("got %s", statuses(got))
	}
}

// TestJudgeChangesNothing pins that a request is the same afterwards.
func TestJudgeChangesNothing(t *testing.T) {
	request := admissionRequest("UPDATE", object(t, `{metadata: {name: a, namespace: team}, spec: {l: [{x: 1}, {x: 2}]}}`), object(t, `{metadata: {name: a}, spec: {}}`))
	before := fmt.Sprint(request)
	source := widgetPolicy(`
validate:
  failureAction: Enforce
  foreach:
  - list: request.object.spec.l
    deny: {conditions: {all: [{key: "{{ element.x }}", operator: Equals, value: 2}]}}`)
	got := judgeOne(t, source, &Request{Admission: request}, nil)
	if got.Status != Fail {
		t.Errorf("got %s (%s)", got.Status, got.Message)
	}
	if after := fmt.Sprint(request); after != before {
		t.Errorf("the request was changed:\n%s\n%s", before, after)
	}
}

// TestInvalidRules pins that a rule that could not be read never passes.
func TestInvalidRules(t *testing.T) {
	f, _ := policy.Parse("policy.yaml", []byte(widgetPolicy("validate: {pattern: {spec: {x: 1}}, mesage: typo}")))
	got := New(f.Policies, nil, &Offline{}, Limits{}).Judge(context.Background(), &Request{Admission: create(object(t, `{spec: {x: 1}}`))})
	if statuses(got) != "r=error" {
		t.Errorf("got %s", statuses(got))
	}
}

// TestConcurrentJudging pins that goroutines may share an interpreter.
func TestConcurrentJudging(t *testing.T) {
	f := parse(t, widgetPolicy(`
context: [{name: c, variable: {jmesPath: request.object.spec.x}}]
validate: {foreach: [{list: "request.object.spec.l", deny: {conditions: {all: [{key: "{{ element }}", operator: Equals, value: "{{ c }}"}]}}}]}`))
	cel := parse(t, widgetPolicy(`validate: {cel: {expressions: [{expression: "object.spec.x == 1"}]}}`))
	in := New(append(f.Policies, cel.Policies...), nil, &Offline{}, Limits{})
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for n := range 20 {
				spec := map[string]any{"x": int64(1), "l": []any{int64((i + n) % 2)}}
				want := "r=pass r=pass"
				if (i+n)%2 == 1 {
					want = "r=fail r=pass"
				}
				got := in.Judge(context.Background(), &Request{Admission: create(map[string]any{"spec": spec})})
				if statuses(got) != want {
					t.Errorf("want %s, got %s", want, statuses(got))
				}
			}
		})
	}
	wait.Wait()
}
