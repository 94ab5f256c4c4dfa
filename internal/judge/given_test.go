package judge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/vap/apiserver"
)

const readsAnnotation = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: annotated}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "namespaceObject.metadata.?annotations[?'owner'].orValue('') == 'me'", message: nobody owns it}]
`

const readsLabel = `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: labelled}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "namespaceObject.metadata.?labels[?'owner'].orValue('') == 'me'", message: nobody owns it}]
`

const callsForNamespace = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: called}
spec:
  validationFailureAction: Enforce
  rules:
  - name: called
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context: [{name: owner, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: "metadata.annotations.owner || ''"}}]
    validate: {message: nobody owns it, deny: {conditions: {any: [{key: "{{ owner }}", operator: NotEquals, value: me}]}}}
`

// TestNamespaceOfRequest: what a rule reads of the namespace is as it was given; of one that was not
// given there is no verdict, unless the rule reads its labels alone.
func TestNamespaceOfRequest(t *testing.T) {
	namespace := func(owner string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default", "annotations": map[string]any{"owner": owner}}}
	}
	for name, tt := range map[string]struct {
		objects []map[string]any
		told    map[string]any
		labels  map[string]string
		want    string // of the three policies: native, interpreter
	}{
		"given":     {[]map[string]any{namespace("me")}, nil, nil, "allow pass, deny fail, allow pass"},
		"another's": {[]map[string]any{namespace("you")}, nil, nil, "deny fail, deny fail, deny fail"},
		"told":      {[]map[string]any{namespace("you")}, namespace("me"), nil, "allow pass, deny fail, allow pass"},
		"not given": {nil, nil, nil, "unknown unknown, deny fail, unknown unknown"},
		"labels":    {nil, nil, map[string]string{"owner": "me"}, "unknown unknown, allow pass, unknown unknown"},
		"both":      {[]map[string]any{namespace("me")}, nil, map[string]string{"owner": "me"}, "allow pass, allow pass, allow pass"},
	} {
		t.Run(name, func(t *testing.T) {
			j := open(t, tt.objects, readsAnnotation, readsLabel, callsForNamespace)
			r := request(t, judge.Client{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
			r.Namespace, r.NamespaceLabels = tt.told, tt.labels
			opinions, err := j.Judge(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range opinions {
				got = append(got, fmt.Sprintf("%s %s", o.Native, o.Status))
				if unknown := o.Native == apiserver.Unknown; unknown != (o.Lacks != nil) || unknown && (!o.Agree() || o.Violated() || o.Lacks.String() != "Namespace default") {
					t.Errorf("%s: agree %v, violated %v, lacks %v", o.Rule.Name, o.Agree(), o.Violated(), o.Lacks)
				}
			}
			if got := strings.Join(got, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestToldNamespaceHasItsName: a Namespace that is told of has its name in a label for both judges,
// also where it is told of without its kind.
func TestToldNamespaceHasItsName(t *testing.T) {
	j := open(t, nil, strings.ReplaceAll(readsLabel, "labels[?'owner'].orValue('') == 'me'", "labels[?'kubernetes.io/metadata.name'].orValue('') == 'default'"))
	r := request(t, judge.Client{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	r.Namespace = map[string]any{"metadata": map[string]any{"annotations": map[string]any{"owner": "me"}}}
	opinions, err := j.Judge(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range opinions {
		if o.Native != apiserver.Allow || o.Status != interp.Pass {
			t.Errorf("%s (%s), %s (%s)", o.Native, o.NativeMessage, o.Status, o.Message)
		}
	}
	if len(r.Namespace) != 1 {
		t.Errorf("what was told is changed: %v", r.Namespace)
	}
}

// TestNobody: where nobody is told to act, a native policy sees a user all the same, and the
// interpreter none. What depends on who it is, is not known.
func TestNobody(t *testing.T) {
	const head = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  validationFailureAction: Enforce
  background: false
  rules:
  - name: NAME
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
`
	const deny = "    validate: {message: wrong, deny: {conditions: {any: [{key: \"{{ request.object.metadata.name }}\", operator: Equals, value: a}]}}}\n"
	policies := []string{
		strings.ReplaceAll(head, "NAME", "exempt") + "    exclude: {any: [{subjects: [{kind: User, name: \"system:*\"}]}]}\n" + deny,
		strings.ReplaceAll(head, "NAME", "conditional") + "    preconditions: {all: [{key: \"{{ request.userInfo.username || '' }}\", operator: NotEquals, value: root}]}\n" + deny,
		strings.ReplaceAll(head, "NAME", "asking") + "    preconditions: {all: [{key: \"{{ request.userInfo.username }}\", operator: NotEquals, value: root}]}\n" + deny,
	}
	want := map[string]string{"exempt": "deny fail", "conditional": "deny fail", "asking": "unknown error"}
	opinions, err := open(t, nil, policies...).Judge(context.Background(), request(t, judge.Client{}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range opinions {
		if got := fmt.Sprintf("%s %s", o.Native, o.Status); got != want[o.Rule.Name] || !o.Agree() {
			t.Errorf("%s: got %s (%s), want %s", o.Rule.Name, got, o.NativeMessage, want[o.Rule.Name])
		}
	}
}

// TestErrorUnderIgnore: an error admits where the failure policy is Ignore, and so is no violation.
func TestErrorUnderIgnore(t *testing.T) {
	const errs = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: errs}
spec:
  validationFailureAction: Enforce
  failurePolicy: POLICY
  rules:
  - name: errs
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: wrong, deny: {conditions: {any: [{key: "{{ request.object.data.missing }}", operator: Equals, value: a}]}}}
`
	for policy, violated := range map[string]bool{"Fail": true, "Ignore": false} {
		j := open(t, nil, strings.Replace(errs, "POLICY", policy, 1))
		opinions, err := j.Judge(context.Background(), request(t, judge.Client{User: "me"}, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: other}}"))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range opinions {
			if o.Status != interp.Error || o.Violated() != violated || !o.Agree() {
				t.Errorf("%s: native %s, interpreter %s, violated %v, agree %v", policy, o.Native, o.Status, o.Violated(), o.Agree())
			}
		}
	}
}

// TestEmptyData: what is empty is not there, as an API server makes it, of what rules look up too.
func TestEmptyData(t *testing.T) {
	world := judge.World([]map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{}}, "data": map[string]any{},
	}}, nil)
	object, err := world.ConfigMap(context.Background(), "b", "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := object["data"]; ok {
		t.Errorf("an API server has no data in %v", object)
	}
}
