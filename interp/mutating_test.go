package interp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

const configMap = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}, data: {k: v}}`

// mutatingPolicy is a policy on ConfigMaps, unless spec says what it matches.
func mutatingPolicy(spec string) string {
	if !strings.Contains(spec, "matchConstraints") {
		spec = `matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]}` + "\n" + spec
	}
	return "apiVersion: policies.kyverno.io/v1\nkind: MutatingPolicy\nmetadata: {name: p}\nspec:\n" + indent(2, spec) + "\n"
}

// apply and patch are a policy with one mutation.
func apply(expression string) string {
	return "mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: '" + strings.ReplaceAll(expression, "'", "''") + "'}}]"
}

func patchBy(expression string) string {
	return "mutations: [{patchType: JSONPatch, jsonPatch: {expression: '" + strings.ReplaceAll(expression, "'", "''") + "'}}]"
}

func mutate(t *testing.T, source string, request *Request, world World) *MutationResult {
	t.Helper()
	f := parse(t, source)
	if world == nil {
		world = &Offline{}
	}
	return New(f.Policies, f.Exceptions, world, Limits{}).Mutate(t.Context(), request)
}

func TestMutations(t *testing.T) {
	for _, tt := range []struct {
		name, object, spec string
		want               Status
		after              string // as it was where empty
		message            string
	}{
		{"labels", configMap, apply(`Object{metadata: Object.metadata{labels: {"y": "2"}}}`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1", "y": "2"}}, data: {k: v}}`, "success"},
		{"nothing to do", configMap, apply(`Object{}`), Pass, "", "success"},
		{"an unknown field", configMap, apply(`Object{nope: 1}`), Error, "", "nope"},
		{"a wrong type name", configMap, apply(`Object{metadata: Object.data{labels: {"y": "2"}}}`), Error, "", "type mismatch"},
		{"no Object", configMap, apply(`object`), Error, "", "must evaluate to Object"},
		{"add", configMap, patchBy(`[JSONPatch{op: "add", path: "/data/" + jsonpatch.escapeKey("x/y"), value: object.data.k + "1"}]`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}, data: {k: v, x/y: v1}}`, ""},
		{"add without a parent", configMap, patchBy(`[JSONPatch{op: "add", path: "/metadata/annotations/a", value: "b"}]`), Error, "", "JSON Patch"},
		{"remove what is not there", configMap, patchBy(`[JSONPatch{op: "remove", path: "/data/z"}]`), Error, "", "JSON Patch"},
		{"move, copy and replace", configMap, patchBy(`[JSONPatch{op: "move", from: "/data/k", path: "/data/l"}, JSONPatch{op: "copy", from: "/data/l", path: "/data/m"}, JSONPatch{op: "replace", path: "/data/m", value: "n"}]`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}, data: {l: v, m: "n"}}`, ""},
		{"a test that holds", configMap, patchBy(`[JSONPatch{op: "test", path: "/data/k", value: "v"}, JSONPatch{op: "remove", path: "/data"}]`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}}`, ""},
		{"a test that does not", configMap, patchBy(`[JSONPatch{op: "copy", from: "/data", path: "/binaryData"}, JSONPatch{op: "test", path: "/data/k", value: "w"}]`), Pass, "", "success"},
		{"an Object as value", configMap, patchBy(`[JSONPatch{op: "add", path: "/data", value: Object.data{z: "1"}}]`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}, data: {z: "1"}}`, ""},
		{"no kind", configMap, patchBy(`[JSONPatch{op: "remove", path: "/kind"}]`), Error, "", "Kind"},
		{"doubling", configMap, patchBy(`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30].map(x, JSONPatch{op: "copy", from: "/data", path: "/data/" + string(x)})`), Error, "", "larger than"},
		{"an unknown operation", configMap, patchBy(`[JSONPatch{op: "put", path: "/data"}]`), Error, "", "JSON Patch"},
		{"no list", configMap, patchBy(`JSONPatch{op: "remove", path: "/data"}`), Error, "", "must evaluate to list"},
		{"what does not compile", configMap, apply(`nothing(1)`), Error, "", "an expression cannot be read"},
		{"a variable of the type", configMap, "variables: [{name: v, expression: 'Object{metadata: Object.metadata{labels: {\"y\": \"2\"}}}'}, {name: w, expression: '[JSONPatch{op: \"remove\", path: \"/data\"}]'}]\n" +
			"mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: variables.v}}, {patchType: JSONPatch, jsonPatch: {expression: variables.w}}]", Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1", "y": "2"}}}`, ""},
		{"no type", `{metadata: {name: a, namespace: b}}`, "matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]}\n" +
			apply(`Object{metadata: Object.metadata{labels: {"y": "2"}}}`), Error, "", "type converter must not be nil"},
		{"a patch of what has no type", `{metadata: {name: a, namespace: b}}`, "matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]}\n" +
			patchBy(`[JSONPatch{op: "add", path: "/spec", value: {"a": 1}}]`), Pass, `{apiVersion: x.io/v1, kind: Widget, metadata: {name: a, namespace: b}, spec: {a: 1}}`, ""},
		{"a condition", configMap, "matchConditions: [{name: a, expression: \"object.data.k == 'w'\"}]\n" + apply(`Object{}`), Skip, "", "skip"},
		{"a condition on a variable", configMap, "variables: [{name: v, expression: object.data.k}]\nmatchConditions: [{name: a, expression: \"variables.v == 'w'\"}]\n" + apply(`Object{}`), Skip, "", "skip"},
		{"a condition that errs", configMap, "failurePolicy: Ignore\nmatchConditions: [{name: a, expression: \"object.data.z == 'w'\"}]\n" + apply(`Object{}`), Error, "", "failed to evaluate policy"},
		{"an annotation that errs", configMap, "auditAnnotations: [{key: a, valueExpression: object.data.z}]\n" + apply(`Object{metadata: Object.metadata{labels: {"y": "2"}}}`), Error, "", "auditAnnotation"},
		{"oldObject is an empty one", configMap, patchBy(`oldObject == {} && request.oldObject == {} ? [JSONPatch{op: "remove", path: "/data"}] : []`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}}`, ""},
		{"the library", configMap, patchBy(`[JSONPatch{op: "add", path: "/data", value: {"k": cel.bind(x, md5(object.data.k), x.substring(0, 4)) + base64.encode(b"a") + object.data.?z.orValue("z")}}]`), Pass,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, labels: {x: "1"}}, data: {k: 9e36YQ==z}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			request := &Request{Admission: create(object(t, tt.object))}
			got := mutate(t, mutatingPolicy(tt.spec), request, nil)
			r := got.Rules[0]
			if len(got.Rules) != 1 || r.Status != tt.want || r.Kyverno != tt.want || r.Rule != "p" || !strings.Contains(r.Message, tt.message) {
				t.Fatalf("%+v", r)
			}
			want := got.Before
			if tt.after != "" {
				want = object(t, tt.after)
			}
			if d := textdiff.Values(want, got.After); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Lists with keys are merged by them. What is changed as a whole is an error, unless the
// policy says that it is meant.
func TestMergedLists(t *testing.T) {
	const pods = "matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}\n"
	pod := object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, image: i}], tolerations: [{key: k}]}}`)
	containers := apply(`Object{spec: Object.spec{containers: [Object.spec.containers{name: "c", tty: true}, Object.spec.containers{name: "d", image: "j"}]}}`)
	tolerations := apply(`Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "l"}]}}`)
	for _, tt := range []struct {
		spec, after string
		want        Status
	}{
		{containers, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, image: i, tty: true}, {name: d, image: j}], tolerations: [{key: k}]}}`, Pass},
		{tolerations, "", Error},
		{"evaluation: {useServerSideApply: true}\n" + tolerations, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, image: i}], tolerations: [{key: l}]}}`, Pass},
		{"evaluation: {useServerSideApply: true}\n" + containers, `{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, image: i, tty: true}, {name: d, image: j}], tolerations: [{key: k}]}}`, Pass},
		{"evaluation: {useServerSideApply: true}\n" + apply(`Object{spec: Object.nope{x: 1}}`), "", Error},
	} {
		got := mutate(t, mutatingPolicy(pods+tt.spec), &Request{Admission: create(pod)}, nil)
		want := pod
		if tt.after != "" {
			want = object(t, tt.after)
		}
		if d := textdiff.Values(want, got.After); d != "" || got.Rules[0].Status != tt.want {
			t.Errorf("%s: %+v (-want +got):\n%s", tt.spec, got.Rules[0].RuleResult, d)
		}
	}
}

// A variable has the value that it had when it was first asked for; request.object is what
// was asked for; an error undoes all of its policy and nothing of others.
func TestMutationsInOrder(t *testing.T) {
	step := func(key, value string) string {
		return "{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/data/" + key + "\", value: " + value + "}]'}}"
	}
	count := "string(object.data.size())"
	first := mutatingPolicy("variables: [{name: early, expression: " + count + "}, {name: late, expression: " + count + "}]\n" +
		"mutations: [" + strings.Join([]string{step("a", "variables.early"), step("b", "variables.late"), step("c", "variables.early"), step("d", count)}, ", ") + "]")
	broken := strings.Replace(mutatingPolicy("mutations: ["+step("e", "\"1\"")+", "+step("f", "object.data.nope")+"]"), "name: p", "name: q", 1)
	last := strings.Replace(mutatingPolicy("mutations: ["+step("g", "string(request.object.data.size())")+"]"), "name: p", "name: r", 1)
	got := mutate(t, first+"---\n"+broken+"---\n"+last, &Request{Admission: create(object(t, configMap))}, nil)
	want := map[string]any{"k": "v", "a": "1", "b": "2", "c": "1", "d": "4", "g": "1"}
	if d := textdiff.Values(want, digMap(got.After, "data")); d != "" || got.Rules[1].Status != Error {
		t.Errorf("%+v (-want +got):\n%s", got.Rules, d)
	}
	// So it is where the policies are not of one interpreter.
	request := &Request{Admission: create(got.After), Asked: got.Before}
	if got := mutate(t, last, request, nil); digMap(got.After, "data")["g"] != "1" {
		t.Errorf("%v", got.After)
	}
}

func TestMutatingMatches(t *testing.T) {
	named := "matchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], resources: [configmaps], operations: [CREATE], resourceNames: [a]}]}\n"
	widgets := "matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]}\n"
	label := apply(`Object{metadata: Object.metadata{labels: {"y": "2"}}}`)
	team := func(namespace string) string {
		return strings.Replace(mutatingPolicy(label), "kind: MutatingPolicy\nmetadata: {name: p}", "kind: NamespacedMutatingPolicy\nmetadata: {name: p, namespace: "+namespace+"}", 1)
	}
	made := create(object(t, configMap))
	generated := create(object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {generateName: ab-, namespace: b}}`))
	delete(generated, "name")
	for _, tt := range []struct {
		name, source string
		admission    map[string]any
		want         Status
	}{
		{"all", mutatingPolicy(label), made, Pass},
		{"another kind", mutatingPolicy(widgets + label), made, None},
		{"a name", mutatingPolicy(named + label), made, Pass},
		{"a name to come", mutatingPolicy(named + label), generated, Pass},
		{"another name", mutatingPolicy(strings.Replace(named, "[a]", "[c]", 1) + label), made, None},
		{"another name to come", mutatingPolicy(strings.Replace(named, "[a]", "[b]", 1) + label), generated, None},
		{"its namespace", team("b"), made, Pass},
		{"another namespace", team("c"), made, None},
		{"not at admission", mutatingPolicy("evaluation: {admission: {enabled: false}}\n" + label), made, None},
		{"other objects", mutatingPolicy("targetMatchConstraints: {expression: object}\n" + label), made, None},
		{"existing objects too", mutatingPolicy("evaluation: {mutateExisting: {enabled: true}}\n" + label), made, Pass},
		{"what goes away", mutatingPolicy(label), admissionRequest("DELETE", nil, object(t, configMap)), None},
	} {
		if got := mutate(t, tt.source, &Request{Admission: tt.admission}, nil).Rules[0]; got.Status != tt.want {
			t.Errorf("%s: %+v", tt.name, got.RuleResult)
		}
	}
}

// An exception is from a MutatingPolicy as it is from a ValidatingPolicy.
func TestMutatingExceptions(t *testing.T) {
	exception := func(spec string) string {
		return "---\napiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: ns}\nspec: {policyRefs: [{name: p, kind: MutatingPolicy}], " + spec + "}\n"
	}
	images := patchBy(`[JSONPatch{op: "add", path: "/data/k", value: exceptions.allowedImages.join(",")}]`)
	for _, tt := range []struct {
		spec, exception string
		want            Status
		value           string
	}{
		{images, "reportResult: skip", Skip, "v"},
		{images, "reportResult: pass", Pass, "v"},
		{images, "images: [c, d]", Pass, "c,d"},
		{images, `matchConditions: [{name: a, expression: "object.data.k == 'w'"}]`, Pass, ""},
		{images, `matchConditions: [{name: a, expression: "object.data.z == 'w'"}]`, Error, "v"},
		{"failurePolicy: Ignore\n" + images, `matchConditions: [{name: a, expression: "object.data.z == 'w'"}]`, Error, "v"},
	} {
		got := mutate(t, mutatingPolicy(tt.spec)+exception(tt.exception), &Request{Admission: create(object(t, configMap))}, nil)
		if r := got.Rules[0]; r.Status != tt.want || dig(got.After, "data", "k") != tt.value {
			t.Errorf("%s: %+v %v", tt.exception, r.RuleResult, got.After)
		}
	}
}

// What a policy says of pods is moved into the template where Kyverno's text patterns find it.
func TestObjectInTemplate(t *testing.T) {
	for from, want := range map[string]string{
		"object.spec.hostPID && oldObject.spec.x":          "object.spec.template.spec.hostPID && oldObject.spec.template.spec.x",
		"has(object.metadata.labels.a)":                    "has(object.spec.template.metadata.labels.a)",
		"object.metadata.annotations['a']":                 "object.spec.template.metadata.annotations['a']",
		"object.metadata.name + object.metadata.namespace": "object.metadata.name + object.metadata.namespace",
		"namespaceObject.metadata.labels + myobject.spec":  "namespaceObject.metadata.labels + myobject.spec",
		"object.?spec.x":                     "object.?spec.x",
		"request.object.spec.x":              "request.object.spec.template.spec.x",
		" Object {spec: Object.spec{x: 1}} ": "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{x: 1}}}}",
		"Object{}.y":                         "Object{spec: Object.spec{template: Object.spec.template{}}}.y",
		"has(object.a) ? Object{spec: Object.spec{}} : Object{}": "has(object.a) ? Object{spec: Object.spec.template.spec{}} : Object{}",
		"Object{x: '}'}": "Object{spec: Object.spec{template: Object.spec.template{x: '}}}'}",
		"Object{x: 1":    "Object{x: 1",
		"Objects{x: 1}":  "Objects{x: 1}",
		"Object{metadata: Object.metadata{labels: {'a': 'b'}}}": "Object{spec: Object.spec{template: Object.spec.template{metadata: Object.metadata{labels: {'a': 'b'}}}}}",
	} {
		if got := objectInTemplate(from, "spec.template"); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", from, got, want)
		}
	}
	want := "Object{spec: Object.spec{jobTemplate: Object.spec.jobTemplate{spec: Object.spec.jobTemplate.spec{template: Object.spec.jobTemplate.spec.template{x: 1}}}}}"
	if got := objectInTemplate("Object{x: 1}", "spec.jobTemplate.spec.template"); got != want {
		t.Errorf("got %s", got)
	}
}

// The types of custom kinds are those that the API server publishes. They are asked for
// once in a while.
func TestPublishedTypes(t *testing.T) {
	const published = `{"openapi": "3.0.0", "components": {"schemas": {"io.x.v1.Widget": {"type": "object",
"x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "Widget"}],
"properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object", "additionalProperties": true},
"spec": {"type": "object", "properties": {"parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
"items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}}}}}}}}}}`
	world := &counting{Offline: &Offline{Answers: map[string][]byte{"/openapi/v3/apis/x.io/v1": []byte(published)}}}
	source := mutatingPolicy("matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]}\n" +
		apply(`Object{spec: Object.spec{parts: [Object.spec.parts{name: "b", size: 3}]}}`))
	f := parse(t, source)
	in := New(f.Policies, nil, world, Limits{})
	request := &Request{Admission: create(object(t, `{metadata: {name: w, namespace: b}, spec: {parts: [{name: a, size: 1}, {name: b, size: 2}]}}`))}
	for range 3 {
		got := in.Mutate(t.Context(), request)
		want := data(t, "[{name: a, size: 1}, {name: b, size: 3}]")
		if d := textdiff.Values(want, digMap(got.After, "spec")["parts"]); d != "" {
			t.Errorf("%+v (-want +got):\n%s", got.Rules, d)
		}
	}
	if world.asked != 1 {
		t.Errorf("asked %d times", world.asked)
	}
}

type counting struct {
	*Offline
	asked int
	fails bool
}

func (c *counting) API(ctx context.Context, path string, body []byte) ([]byte, error) {
	c.asked++
	if c.fails {
		return nil, errors.New("the server is busy")
	}
	return c.Offline.API(ctx, path, body)
}

// Types that could not be read are an error of the one request, which says why.
func TestTypesThatCannotBeRead(t *testing.T) {
	const published = `{"openapi": "3.0.0", "components": {"schemas": {"io.x.v1.Widget": {"type": "object", "additionalProperties": true,
"x-kubernetes-group-version-kind": [{"group": "x.io", "version": "v1", "kind": "Widget"}]}}}}`
	world := &counting{Offline: &Offline{Answers: map[string][]byte{"/openapi/v3/apis/x.io/v1": []byte(published)}}, fails: true}
	f := parse(t, mutatingPolicy("matchConstraints: {resourceRules: [{apiGroups: [x.io], apiVersions: [v1], resources: [widgets], operations: [CREATE]}]}\n"+
		apply(`Object{metadata: Object.metadata{labels: {"a": "b"}}}`)))
	in := New(f.Policies, nil, world, Limits{})
	request := &Request{Admission: create(object(t, `{metadata: {name: w, namespace: b}}`))}
	if r := in.Mutate(t.Context(), request).Rules[0]; r.Status != Error || !strings.Contains(r.Message, "the server is busy") {
		t.Errorf("got %+v", r.RuleResult)
	}
	world.fails = false
	if r := in.Mutate(t.Context(), request).Rules[0]; r.Status != Pass {
		t.Errorf("afterwards: %+v", r.RuleResult)
	}
}

// What does not compile is known without a request.
func TestBrokenMutations(t *testing.T) {
	for expression, broken := range map[string]bool{"Object{}": false, "object.x": true, "nothing()": true} {
		f := parse(t, mutatingPolicy(apply(expression)))
		if err := New(f.Policies, nil, &Offline{}, Limits{}).Broken(t.Context()); (err != nil) != broken {
			t.Errorf("%s: %v", expression, err)
		}
	}
}
