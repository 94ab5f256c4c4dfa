package judge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/internal/manifest"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

func schemas(t *testing.T) *schema.Set {
	t.Helper()
	s, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open makes judges of the policies in some files.
func open(t *testing.T, objects []map[string]any, files ...string) *judge.Judges {
	t.Helper()
	var policies []*policy.Policy
	var exceptions []*policy.Exception
	for i, text := range files {
		f, found := policy.Parse(strings.Repeat("p", i+1)+".yaml", []byte(text))
		if found.HasErrors() {
			t.Fatal(found)
		}
		policies, exceptions = append(policies, f.Policies...), append(exceptions, f.Exceptions...)
	}
	j, err := judge.Compile(compile.Input{Policies: policies, Exceptions: exceptions},
		compile.Options{Translate: translate.Options{Release: cel.Latest, Schemas: schemas(t)}}, judge.ClusterState{Objects: objects})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// request is that of the first resource in a text.
func request(t *testing.T, client judge.Client, text string) *judge.Request {
	t.Helper()
	objects, found := manifest.Read("r.yaml", []byte(text))
	if len(found) > 0 {
		t.Fatal(found)
	}
	if client.Schemas == nil {
		client.Schemas = schemas(t)
	}
	if client.Namespace == "" {
		client.Namespace = "default"
	}
	old := manifest.Object{}
	if len(objects) > 1 {
		old = objects[1]
	}
	admission, found := client.Request(objects[0], old)
	if found.HasErrors() {
		t.Fatal(found)
	}
	r, err := judge.NewRequest(admission)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said are the opinions on a request that say something, in one text.
func said(t *testing.T, j *judge.Judges, r *judge.Request) string {
	t.Helper()
	opinions, err := j.Judge(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, o := range opinions {
		if !o.Agree() {
			t.Errorf("%s/%s: %s, %s", o.Rule.Rule.PolicyName(), o.Rule.Name, o.Native, o.Status)
		}
		if o.Native != apiserver.NoMatch || o.Status != interp.None {
			lines = append(lines, o.Rule.Rule.PolicyName()+"/"+o.Rule.Name+" "+string(o.Native)+" "+string(o.Status))
		}
	}
	return strings.Join(lines, "\n")
}

func labelPolicy(kind, name, label string) string {
	namespace := ""
	if kind == "Policy" {
		namespace = ", namespace: default"
	}
	return `
apiVersion: kyverno.io/v1
kind: ` + kind + `
metadata: {name: ` + name + namespace + `}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: a label is needed
      pattern: {metadata: {labels: {` + label + `: "?*"}}}
`
}

const (
	pod        = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {a: x}}\nspec: {containers: [{name: c, image: i}]}\n"
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {metadata: {labels: {a: x}}, spec: {containers: [{name: c, image: i}]}}}\n"
)

// TestSameNames pins that policies of one name, and a policy twice, are told apart.
func TestSameNames(t *testing.T) {
	c := open(t, nil, labelPolicy("ClusterPolicy", "p", "a"), labelPolicy("Policy", "p", "b"), labelPolicy("ClusterPolicy", "p", "c"))
	want := "p/label allow pass\ndefault/p/label deny fail\np/label deny fail"
	if d := textdiff.Values(want, said(t, c, request(t, judge.Client{}, pod))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	want = strings.ReplaceAll(want, "/label", "/autogen-label")
	if d := textdiff.Values(want, said(t, c, request(t, judge.Client{}, deployment))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCutNames pins that rules are told apart whose generated names are cut to the
// same.
func TestCutNames(t *testing.T) {
	long := strings.Repeat("x", 60)
	text := strings.ReplaceAll(labelPolicy("ClusterPolicy", "p", "a"), "name: label", "name: "+long+"1")
	second := labelPolicy("ClusterPolicy", "p", "b")
	second = second[strings.Index(second, "  - name: label"):]
	c := open(t, nil, text+strings.ReplaceAll(second, "name: label", "name: "+long+"2"))
	name := ("autogen-" + long)[:63]
	want := "p/" + name + " allow pass\np/" + name + " deny fail"
	if d := textdiff.Values(want, said(t, c, request(t, judge.Client{}, deployment))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestValidatingPolicy(t *testing.T) {
	c := open(t, nil, `
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "has(object.data)", message: data is needed}]
`)
	if got := said(t, c, request(t, judge.Client{}, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")); got != "v/v deny fail" {
		t.Errorf("got %q", got)
	}
}

// TestNamespaceLabels pins where the labels of a namespace come from: the request,
// or else the objects.
func TestNamespaceLabels(t *testing.T) {
	objects := []map[string]any{{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default", "labels": map[string]any{"stage": "prod"}}}}
	text := strings.ReplaceAll(labelPolicy("ClusterPolicy", "p", "b"), "kinds: [Pod]", "kinds: [Pod], namespaceSelector: {matchLabels: {stage: prod, kubernetes.io/metadata.name: default}}")
	c := open(t, objects, text)
	if got := said(t, c, request(t, judge.Client{}, pod)); got != "p/label deny fail" {
		t.Errorf("labels of the objects: %q", got)
	}
	r := request(t, judge.Client{}, pod)
	r.NamespaceLabels = map[string]string{"stage": "test"}
	if got := said(t, c, r); strings.Contains(got, "fail") {
		t.Errorf("labels of the request: %q", got)
	}
}

func TestAgree(t *testing.T) {
	ofPolicy := func(p policy.FailurePolicy) *compile.Form {
		return &compile.Form{Rule: &compile.Rule{Policy: &policy.Policy{FailurePolicy: p}}}
	}
	for status, want := range map[interp.Status]string{
		interp.Pass: "nomatch allow", interp.Skip: "nomatch allow", interp.None: "nomatch allow", interp.Fail: "deny", interp.Error: "deny error",
	} {
		for _, o := range []apiserver.Outcome{apiserver.NoMatch, apiserver.Allow, apiserver.Deny, apiserver.Error} {
			agree := strings.Contains(" "+want+" ", " "+string(o)+" ")
			if got := (judge.Opinion{Rule: ofPolicy(policy.Fail), Compared: true, Native: o, Status: status}).Agree(); got != agree {
				t.Errorf("%s and %s: %v", status, o, got)
			}
		}
	}
	if (judge.Opinion{Rule: ofPolicy(policy.Ignore), Compared: true, Native: apiserver.Deny, Status: interp.Error}).Agree() {
		t.Error("an error that is ignored is no denial")
	}
	if !(judge.Opinion{Native: apiserver.NoMatch, Status: interp.Fail}).Agree() {
		t.Error("a rule of the webhook has nobody to disagree with")
	}
	if !(judge.Opinion{Compared: true, LeftOut: true, Native: apiserver.NoMatch, Status: interp.Fail}).Agree() {
		t.Error("what a binding leaves out is not a matter of the rule")
	}
}

// TestRequestIsCanonical pins that objects come in the server's form, and that what
// was given is not changed.
func TestRequestIsCanonical(t *testing.T) {
	const text = `{"uid":"u","more":1,"operation":"CREATE","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},
"object":{"metadata":{"name":"p"},"spec":{"unknown":1,"containers":[{"name":"c","resources":{"limits":{"cpu":"1000m"}}}]}}}`
	var data map[string]any
	if err := kjson.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	before, _ := kjson.Marshal(data)
	r, err := judge.NewRequest(data)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := kjson.Marshal(r.Admission()["object"])
	const want = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}}`
	if d := textdiff.Values(want, string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, ok := r.Admission()["more"]; ok {
		t.Error("an unknown key reached the judges")
	}
	if after, _ := kjson.Marshal(data); string(after) != string(before) {
		t.Errorf("the data was changed:\n%s\n%s", before, after)
	}
}

// TestGeneratedName pins that what is created has its name before anybody judges it.
func TestGeneratedName(t *testing.T) {
	for kind, want := range map[string]string{
		"ConfigMap": "request a/prod-x7k2d, object prod-x7k2d",
		"Namespace": "request prod-x7k2d/prod-x7k2d, object prod-x7k2d",
	} {
		object := map[string]any{"metadata": map[string]any{"generateName": "prod-"}}
		r, err := judge.NewRequest(map[string]any{
			"operation": "CREATE", "namespace": "a", "name": "", "object": object,
			"kind":     map[string]any{"group": "", "version": "v1", "kind": kind},
			"resource": map[string]any{"group": "", "version": "v1", "resource": strings.ToLower(kind) + "s"},
		})
		if err != nil {
			t.Fatal(err)
		}
		a := r.Admission()
		name := manifest.Object{Value: a["object"].(map[string]any)}.Meta("name")
		if got := fmt.Sprintf("request %s/%s, object %s", a["namespace"], a["name"], name); got != want {
			t.Errorf("%s: %s, want %s", kind, got, want)
		}
		if len(object["metadata"].(map[string]any)) != 1 {
			t.Errorf("%s: the data was changed", kind)
		}
		changed, err := r.With(map[string]any{"metadata": map[string]any{"generateName": "prod-", "labels": map[string]any{"a": "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		if asked := (manifest.Object{Value: changed.Interp().Asked}); asked.Meta("name") != "" || asked.Meta("generateName") != "prod-" {
			t.Errorf("%s: who changes the object next is asked with the name %q", kind, asked.Meta("name"))
		}
	}
}

// TestClient pins the requests of resources of each scope.
func TestClient(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"namespaced":     {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "pods team/p in team"},
		"placed":         {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: x}\n", "pods x/p in x"},
		"cluster-scoped": {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: p, namespace: x}\n", "persistentvolumes /p in "},
		"a namespace":    {"apiVersion: v1\nkind: Namespace\nmetadata: {name: p}\n", "namespaces /p in p"},
		"guessed":        {"apiVersion: acme.io/v1\nkind: Policy\nmetadata: {name: p}\n", "policies team/p in team"},
		"a cluster kind": {"apiVersion: acme.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\n", "clusterpolicies /p in "},
		"no metadata":    {"apiVersion: v1\nkind: Pod\n", "pods team/ in team"},
	} {
		t.Run(name, func(t *testing.T) {
			a := request(t, judge.Client{Operation: "CREATE", Namespace: "team"}, c.text).Admission()
			object := manifest.Object{Value: a["object"].(map[string]any)}
			namespace, _ := a["namespace"].(string)
			got := a["resource"].(map[string]any)["resource"].(string) + " " + object.Meta("namespace") + "/" + object.Meta("name") + " in " + namespace
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestLookups pins which objects a rule is known to read.
func TestLookups(t *testing.T) {
	c := open(t, nil, `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    context:
    - {name: a, configMap: {name: one, namespace: ns}}
    - {name: b, configMap: {name: "{{ request.namespace }}", namespace: ns}}
    - {name: c, configMap: {name: two}}
    validate:
      foreach:
      - list: request.object.data
        context: [{name: d, configMap: {name: three, namespace: ns}}]
        deny: {conditions: {any: [{key: "{{ element }}", operator: Equals, value: x}]}}
`)
	var got []string
	for _, l := range judge.Lookups(c.Rules[0].Rule) {
		got = append(got, l.String())
	}
	want := []string{"ConfigMap ns/one", "ConfigMap default/two", "ConfigMap ns/three"}
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
