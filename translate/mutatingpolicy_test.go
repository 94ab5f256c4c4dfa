package translate_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

const mutatingHead = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE, DELETE]}]}
  `

// mutator is what the native objects of a compilation make of objects.
func mutator(t *testing.T, r compile.Result) *apiserver.Mutator {
	t.Helper()
	var policies []*admissionregistrationv1.MutatingAdmissionPolicy
	var bindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding
	for _, o := range r.Mutating {
		policies, bindings = append(policies, o.Policy), append(bindings, o.Bindings...)
	}
	m, err := apiserver.NewMutator(policies, bindings, apiserver.JudgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mutatingText is the native objects as they are written.
func mutatingText(t *testing.T, r compile.Result) string {
	t.Helper()
	var all []any
	for _, o := range r.Mutating {
		all = append(all, o.All()...)
	}
	text, err := vap.Marshal(all...)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// bothMutate holds what native objects make of a request to what the interpreter makes of it.
func bothMutate(t *testing.T, note string, r compile.Result, exceptions []*policy.Exception, request string) {
	t.Helper()
	changeByBoth(t, note, r, mutator(t, r), exceptions, reviewOf(t, request))
}

// reviewOf reads a request.
func reviewOf(t *testing.T, request string) (review *admissionv1.AdmissionRequest) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(request), &review); err != nil {
		t.Fatal(err)
	}
	return review
}

// changeByBoth is bothMutate with native objects that are compiled already.
func changeByBoth(t *testing.T, note string, r compile.Result, natives *apiserver.Mutator, exceptions []*policy.Exception, review *admissionv1.AdmissionRequest) {
	t.Helper()
	admission, err := interp.AdmissionOf(review)
	if err != nil {
		t.Fatal(err)
	}
	want := interp.New(r.Policies, exceptions, &interp.Offline{}, interp.Limits{}).Mutate(t.Context(), &interp.Request{Admission: admission})
	object, verdicts, err := natives.Mutate(t.Context(), review, nil)
	if err != nil {
		t.Fatal(err)
	}
	fails, message := false, ""
	for _, v := range verdicts {
		if v.Outcome == apiserver.Error {
			fails, message = true, v.Message
		}
	}
	errs := false
	for _, m := range want.Rules {
		if m.Status != interp.Error {
			continue
		}
		if !fails {
			t.Errorf("%s: the interpreter errs: %s", note, m.Message)
		}
		if i := slices.IndexFunc(r.Policies, func(p *policy.Policy) bool { return p.Name == m.Policy }); r.Policies[i].FailurePolicy != policy.Ignore {
			return // the request is refused
		}
		errs = true
	}
	after, err := apiserver.Decoded(want.After)
	if err != nil {
		t.Fatal(err)
	}
	if d := textdiff.Values(after, object); d != "" || fails && !errs {
		t.Errorf("%s (-interpreter +native): %s\n%s\n%s", note, message, d, mutatingText(t, r))
	}
}

const podRequest = `
operation: CREATE
name: p
namespace: default
kind: {group: "", version: v1, kind: Pod}
resource: {group: "", version: v1, resource: pods}
userInfo: {username: u}
object:
  apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: default, labels: {app: a}}
  spec: {containers: [{name: a, image: "i:latest"}, {name: b, image: "j:1"}, {name: c, image: "k:latest"}]}
`

const deploymentRequest = `
operation: CREATE
name: p
namespace: default
kind: {group: apps, version: v1, kind: Deployment}
resource: {group: apps, version: v1, resource: deployments}
userInfo: {username: u}
object:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: p, namespace: default}
  spec:
    selector: {matchLabels: {app: a}}
    template:
      metadata: {labels: {app: a}}
      spec: {containers: [{name: a, image: "i:latest"}, {name: b, image: "j:1"}]}
`

// What has a native form, and what has none.
func TestMutatingPolicies(t *testing.T) {
	t.Parallel()
	apply := func(expression string) string {
		return "{patchType: ApplyConfiguration, applyConfiguration: {expression: '" + expression + "'}}"
	}
	patch := func(expression string) string {
		return "{patchType: JSONPatch, jsonPatch: {expression: '" + expression + "'}}"
	}
	label := apply(`Object{metadata: Object.metadata{labels: {"x": "y"}}}`)
	const pods = "autogen: {podControllers: {controllers: []}}\n  "
	const when = "matchConditions: [{name: c, expression: 'object.metadata.name != \"\"'}]\n  " // with which Kubernetes 1.37 hands on Go structs
	for name, tt := range map[string]struct{ spec, want string }{
		"an apply configuration":                  {"mutations: [" + apply(`Object{spec: Object.spec{hostNetwork: true}}`) + "]", "native"},
		"labels, which are nested wrongly":        {"mutations: [" + label + "]", "native"},
		"a JSON patch of metadata":                {"mutations: [" + patch(`[JSONPatch{op: "add", path: "/metadata/labels/x", value: "y"}]`) + "]", "native"},
		"a JSON patch of pods alone":              {"autogen: {podControllers: {controllers: []}}\n  mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/hostNetwork", value: true}]`) + "]", "native"},
		"a JSON patch for controllers":            {"mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/hostNetwork", value: true}]`) + "]", "native"},
		"a JSON patch of what only pods have":     {"mutations: [" + patch(`object.spec.containers.map(c, JSONPatch{op: "add", path: "/spec/containers/0/tty", value: true})`) + "]", "native"},
		"what only pods have, if it is there":     {"mutations: [" + patch(`has(object.spec.containers) ? [JSONPatch{op: "add", path: "/spec/containers/0/tty", value: true}] : []`) + "]", "native"},
		"a variable that finds nothing":           {"variables: [{name: c, expression: 'has(object.spec.containers) ? object.spec.containers : []'}]\n  matchConditions: [{name: a, expression: 'variables.c.size() > 0'}]\n  mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/containers/0/tty", value: true}]`) + "]", "native"},
		"a path that the kind does not have":      {"autogen: {podControllers: {controllers: []}}\n  mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/nope", value: true}]`) + "]", "webhook KV201"},
		"a condition with a variable":             {"variables: [{name: a, expression: has(object.spec.nodeName)}]\n  matchConditions: [{name: c, expression: '!variables.a'}]\n  mutations: [" + label + "]", "native"},
		"a condition on the namespace":            {"matchConditions: [{name: c, expression: 'namespaceObject.metadata.name == \"default\"'}]\n  mutations: [" + label + "]", "native"},
		"a variable in two mutations":             {"variables: [{name: a, expression: object.metadata.name}]\n  mutations: [" + apply(`Object{metadata: Object.metadata{labels: {"x": variables.a}}}`) + ", " + apply(`Object{metadata: Object.metadata{labels: {"y": variables.a}}}`) + "]", "webhook KV201"},
		"a constant in two mutations":             {"variables: [{name: a, expression: \"'a'\"}]\n  mutations: [" + apply(`Object{metadata: Object.metadata{labels: {"x": variables.a}}}`) + ", " + apply(`Object{metadata: Object.metadata{labels: {"y": variables.a}}}`) + "]", "native"},
		"an empty map before another":             {"mutations: [" + patch(`[JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]`) + ", " + label + "]", "webhook KV201"},
		"an empty object before another":          {"mutations: [" + apply(`has(object.metadata.labels) ? Object{} : Object{metadata: Object.metadata{labels: {"x": "y"}}}`) + ", " + label + "]", "native"},
		"an empty part before another":            {"mutations: [" + apply(`Object{metadata: Object.metadata{}}`) + ", " + label + "]", "webhook KV201"},
		"an annotation that may be an error":      {"auditAnnotations: [{key: a, valueExpression: string(object.metadata.labels.app)}]\n  mutations: [" + label + "]", "native KV310"},
		"one that is an error":                    {"auditAnnotations: [{key: a, valueExpression: string(object.metadata.labels.nope)}]\n  mutations: [" + label + "]", "native KV310"},
		"one of what is written":                  {"auditAnnotations: [{key: a, valueExpression: string(object.metadata.labels.x)}, {key: b, valueExpression: '\"b\"'}]\n  mutations: [" + label + "]", "native KV310"},
		"one that may be null":                    {"auditAnnotations: [{key: a, valueExpression: object.metadata.labels.app}]\n  mutations: [" + label + "]", "webhook KV201"},
		"errors that are ignored":                 {"failurePolicy: Ignore\n  mutations: [" + label + ", " + label + "]", "webhook KV201"},
		"a function of Kyverno":                   {"mutations: [" + apply(`Object{metadata: Object.metadata{labels: {"x": image("a").tag()}}}`) + "]", "webhook KV202"},
		"the object of the request":               {"mutations: [" + apply(`Object{metadata: Object.metadata{labels: {"x": request.object.metadata.name}}}`) + "]", "webhook KV201"},
		"elements that are mixed":                 {"mutations: [" + apply(`Object{spec: Object.spec{volumes: object.spec.volumes + [Object.spec.volumes{name: "a"}]}}`) + "]", "webhook KV201"},
		"a map of the object in a patch":          {when + "mutations: [" + patch(`[JSONPatch{op: "add", path: "/metadata/annotations", value: object.metadata.labels}]`) + "]", "webhook KV201"},
		"one in a map that is made":               {when + "mutations: [" + patch(`[JSONPatch{op: "add", path: "/metadata", value: {"name": "p", "labels": object.metadata.labels}}]`) + "]", "webhook KV201"},
		"elements that are picked":                {pods + when + "mutations: [" + patch(`[JSONPatch{op: "replace", path: "/spec/containers", value: object.spec.containers.filter(c, c.name != "b")}]`) + "]", "webhook KV201"},
		"elements by a variable":                  {pods + when + "variables: [{name: a, expression: 'object.spec.containers.map(c, c)'}]\n  mutations: [" + patch(`[JSONPatch{op: "replace", path: "/spec/containers", value: variables.a}]`) + "]", "webhook KV201"},
		"part of an element":                      {pods + when + "mutations: [" + patch(`object.spec.containers.map(c, JSONPatch{op: "replace", path: "/spec/containers/" + string(object.spec.containers.indexOf(c)), value: c})`) + "]", "webhook KV201"},
		"a name of an element":                    {pods + when + "mutations: [" + patch(`object.spec.containers.map(c, JSONPatch{op: "add", path: "/spec/containers/" + string(object.spec.containers.indexOf(c)) + "/image", value: c.name + ":" + c.image.split(":")[1]})`) + "]", "native"},
		"a list of texts":                         {pods + when + "mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/containers/0/args", value: object.spec.containers.map(c, c.name)}]`) + "]", "native"},
		"elements of the object alone":            {pods + when + "mutations: [" + apply(`Object{spec: Object.spec{containers: object.spec.containers.filter(c, c.name != "b")}}`) + "]", "webhook KV201"},
		"a list of the object in what is applied": {pods + when + "mutations: [" + apply(`Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: c.?env.orValue([])})}}`) + "]", "native"},
		"existing objects":                        {"evaluation: {mutateExisting: {enabled: true}}\n  mutations: [" + label + "]", "webhook KV209"},
	} {
		p := translateText(t, mutatingHead+tt.spec+"\n", setting{release: 36, mutations: true})
		got := p.targets()
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %s, want %s: %v", name, got, tt.want, p.result.Diagnostics)
			continue
		}
		if strings.HasPrefix(got, "native") {
			bothMutate(t, name, p.result, nil, podRequest)
			bothMutate(t, name, p.result, nil, deploymentRequest)
		}
	}
}

// A policy of a namespace is about what is in it, and about its Namespace, which has its name in
// a label.
func TestNamespacedMutatingPolicy(t *testing.T) {
	t.Parallel()
	const head = `apiVersion: policies.kyverno.io/v1
kind: NamespacedMutatingPolicy
metadata: {name: p, namespace: default}
spec:
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{annotations: {"x": "y"}}}'}}]
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [RESOURCES], operations: [CREATE, UPDATE]}]}
`
	const namespace = `
operation: CREATE
name: default
namespace: default
kind: {group: "", version: v1, kind: Namespace}
resource: {group: "", version: v1, resource: namespaces}
userInfo: {username: u}
object: {apiVersion: v1, kind: Namespace, metadata: {name: default, labels: {kubernetes.io/metadata.name: default}}}
`
	for resources, want := range map[string]string{"pods": "native", "namespaces": "native", "pods, namespaces": "native", "'*'": "webhook KV201"} {
		p := translateText(t, strings.Replace(head, "RESOURCES", resources, 1), setting{release: 36, mutations: true, namespaces: map[string]map[string]string{"default": {"kubernetes.io/metadata.name": "default"}}})
		if got := p.targets(); got != want {
			t.Errorf("%s: %s, want %s: %v", resources, got, want, p.result.Diagnostics)
		} else if want == "native" {
			bothMutate(t, resources, p.result, nil, namespace)
			bothMutate(t, resources, p.result, nil, strings.ReplaceAll(namespace, "default", "other"))
		}
	}
}

// A path that not all kinds have is patched in those that have it: what Kyverno adds to the
// others, the API server drops.
func TestMutatingPathsByKind(t *testing.T) {
	t.Parallel()
	const head = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [
    {apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]},
    {apiGroups: [apps], apiVersions: [v1], resources: [deployments, daemonsets], operations: [CREATE, UPDATE]}]}
  `
	patch := func(expression string) string {
		return "{patchType: JSONPatch, jsonPatch: {expression: '" + expression + "'}}"
	}
	const host = `JSONPatch{op: "add", path: "/spec/hostNetwork", value: true}`
	const template = `JSONPatch{op: "add", path: "/spec/template/spec/hostNetwork", value: true}`
	for name, tt := range map[string]struct{ spec, want string }{
		"each kind has its own":              {"mutations: [" + patch(`object.kind == "Pod" ? [`+host+`] : [`+template+`]`) + "]", "native"},
		"nothing for the others":             {"mutations: [" + patch(`object.kind == "Pod" && has(object.spec.nodeName) ? [`+host+`] : []`) + "]", "native"},
		"asked within a branch":              {"mutations: [" + patch(`object.kind == "Pod" ? (has(object.spec.nodeName) ? [`+host+`] : []) : has(object.spec.template) ? [`+template+`] : []`) + "]", "native"},
		"asked by a list of kinds":           {"mutations: [" + patch(`object.kind in ["Deployment", "DaemonSet"] ? [`+template+`] : []`) + "]", "native"},
		"asked by a variable":                {"variables: [{name: pod, expression: 'object.kind == \"Pod\"'}]\n  mutations: [" + patch(`variables.pod ? [`+host+`] : []`) + "]", "native"},
		"one that is not asked for":          {"mutations: [" + patch(`[`+host+`]`) + "]", "native KV310"},
		"one for each, not asked for":        {"mutations: [" + patch(`[`+host+`]`) + ", " + patch(`has(object.spec.template) ? [`+template+`] : []`) + "]", "native KV310"},
		"one that is there and one that not": {"mutations: [" + patch(`[`+host+`, JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]`) + "]", "webhook KV201"},
		"one that is replaced":               {"mutations: [" + patch(`[JSONPatch{op: "replace", path: "/spec/hostNetwork", value: true}]`) + "]", "webhook KV201"},
		"one below what is missing":          {"mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/overhead/cpu", value: "1"}]`) + "]", "webhook KV201"},
		"one with a value that may err":      {"mutations: [" + patch(`[JSONPatch{op: "add", path: "/spec/hostname", value: object.metadata.labels.x}]`) + "]", "webhook KV201"},
		"one that is read behind":            {"mutations: [" + patch(`[`+host+`]`) + ", " + patch(`has(object.spec.hostNetwork) ? [JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}] : []`) + "]", "webhook KV201"},
	} {
		p := translateText(t, head+tt.spec+"\n", setting{release: 36, mutations: true})
		if got := p.targets(); got != tt.want {
			t.Errorf("%s: %s, want %s: %v", name, got, tt.want, p.result.Diagnostics)
			continue
		}
		if strings.HasPrefix(tt.want, "native") {
			bothMutate(t, name, p.result, nil, podRequest)
			bothMutate(t, name, p.result, nil, strings.Replace(podRequest, "spec: {", "spec: {nodeName: node, ", 1))
			bothMutate(t, name, p.result, nil, deploymentRequest)
		}
	}
}

// Before Kubernetes 1.34 nothing that mutates is native.
func TestMutationsByRelease(t *testing.T) {
	t.Parallel()
	const policy = mutatingHead + `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{hostNetwork: true}}'}}]
`
	for release, want := range map[int]string{33: "webhook KV213", 34: "native", 35: "native", 36: "native", 37: "native"} {
		p := translateText(t, policy, setting{release: cel.Release(release), mutations: true})
		if got := p.targets(); got != want {
			t.Errorf("1.%d: %s, want %s", release, got, want)
		}
	}
}

// Of the names of a rule, one that an object is yet to get is known by its beginning.
func TestMutatingNames(t *testing.T) {
	t.Parallel()
	p := translateText(t, `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], resourceNames: [p], operations: [CREATE]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{hostNetwork: true}}'}}]
`, setting{release: 36, mutations: true})
	if got := p.targets(); got != "native" {
		t.Fatalf("%s: %v", got, p.result.Diagnostics)
	}
	for note, request := range map[string]string{
		"the name":      podRequest,
		"another name":  strings.ReplaceAll(podRequest, "name: p", "name: q"),
		"a beginning":   strings.ReplaceAll(strings.ReplaceAll(podRequest, "\nname: p", ""), "{name: p,", "{generateName: p-,"),
		"another start": strings.ReplaceAll(strings.ReplaceAll(podRequest, "\nname: p", ""), "{name: p,", "{generateName: q-,"),
	} {
		bothMutate(t, note, p.result, nil, request)
	}
}
