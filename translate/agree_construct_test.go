package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/verify"
)

// A sample is a rule about a kind, and specs of objects that both engines must
// judge alike. Every spec is created; the first is updated to each of the others.
type sample struct{ name, apiVersion, kind, rule, specs string }

func TestConstructsAgree(t *testing.T) {
	t.Parallel()
	schemas := builtin(t, 34)
	for _, s := range []sample{
		{"int or string, pattern", "v1", "Service", `validate: {pattern: {spec: {ports: [{targetPort: "80*", port: ">=80"}]}}}`,
			`[{ports: [{port: 80, targetPort: 8080}]}, {ports: [{port: 80, targetPort: 80x}]}, {ports: [{port: 80, targetPort: http}]}, {ports: [{port: 79, targetPort: 80}]}, {}, {ports: []}, {ports: [{port: 80}]}]`},
		{"int or string, number", "v1", "Service", `validate: {pattern: {spec: {ports: [{targetPort: 80}]}}}`,
			`[{ports: [{port: 80, targetPort: 80}]}, {ports: [{port: 80, targetPort: "80"}]}, {ports: [{port: 80, targetPort: "80.0"}]}, {ports: [{port: 80}]}]`},
		{"int or string, members", "v1", "Service", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.ports[].targetPort }}", operator: AnyIn, value: [80, http, "9*"]}]}}}`,
			`[{ports: [{port: 80, targetPort: 80}]}, {ports: [{port: 80, targetPort: "80"}]}, {ports: [{port: 80, targetPort: http}]}, {ports: [{port: 80, targetPort: 99}]}, {ports: [{port: 80, targetPort: 81}]}, {ports: [{port: 80}]}, {}]`},
		{"int or string, order", "apps/v1", "Deployment", "validate: {deny: {conditions: {any: [{key: \"{{ request.object.spec.strategy.rollingUpdate.maxSurge || `0` }}\", operator: GreaterThan, value: 2}]}}}",
			`[{strategy: {rollingUpdate: {maxSurge: 3}}}, {strategy: {rollingUpdate: {maxSurge: "3"}}}, {strategy: {rollingUpdate: {maxSurge: 25%}}}, {strategy: {rollingUpdate: {maxSurge: 1}}}, {}]`},
		{"quantities", "v1", "Pod", `validate: {pattern: {spec: {containers: [{resources: {limits: {memory: "<=1Gi", cpu: "0.5|1"}}}]}}}`,
			`[{containers: [{name: a, resources: {limits: {memory: 1Gi, cpu: 500m}}}]}, {containers: [{name: a, resources: {limits: {memory: 1025Mi, cpu: 500m}}}]}, {containers: [{name: a, resources: {limits: {memory: 1Mi}}}]}, {containers: [{name: a, resources: {limits: {cpu: "1"}}}]}, {containers: [{name: a}]}]`},
		{"what stands for a missing value", "apps/v1", "Deployment", `validate: {pattern: {spec: {=(replicas): ">0", =(minReadySeconds): "!0", =(paused): false, =(revisionHistoryLimit): 0, progressDeadlineSeconds: null}}}`,
			`[{replicas: 0}, {replicas: 1}, {}, {minReadySeconds: 0}, {paused: true}, {paused: false}, {revisionHistoryLimit: 1}, {revisionHistoryLimit: 0}, {progressDeadlineSeconds: 0}, {progressDeadlineSeconds: 1}]`},
		{"optional parents", "v1", "Pod", `validate: {pattern: {spec: {=(securityContext): {=(seccompProfile): {=(type): "RuntimeDefault|Localhost"}}, =(initContainers): [{=(securityContext): {=(privileged): false}}]}}}`,
			`[{containers: []}, {securityContext: {}}, {securityContext: {seccompProfile: {type: Unconfined}}}, {securityContext: {seccompProfile: {type: Localhost}}}, {initContainers: [{name: a}, {name: b, securityContext: {privileged: true}}]}, {initContainers: [{name: b, securityContext: {privileged: false}}]}, {initContainers: [{name: b, securityContext: {}}]}]`},
		{"maps and objects", "v1", "Pod", `validate: {pattern: {spec: {=(nodeSelector): {disk: "?*"}, =(tolerations): [{=(key): "?*"}], containers: [{=(args): "a*", =(command): ["b"]}]}}}`,
			`[{containers: []}, {containers: [], nodeSelector: {disk: ssd}}, {containers: [], nodeSelector: {x: y}}, {containers: [{args: [ab, c]}]}, {containers: [{args: [], command: [b, b]}]}, {containers: [{command: [b, c]}], tolerations: [{}]}]`},
		{"scalars where there are maps", "v1", "Pod", `validate: {pattern: {spec: {=(volumes): "*", containers: [{=(args): [{a: b}]}]}}}`,
			`[{containers: [{name: a}]}, {containers: [], volumes: []}, {containers: [], volumes: [{name: a}]}, {containers: [{args: []}]}, {containers: [{args: [x]}]}]`},
		{"nulls", "x.io/v1", "Gadget", `validate: {pattern: {spec: {=(a): {b: 1}, =(c): [{d: 1}], ^(f): [{g: 1}]}}}`,
			`[{a: null}, {c: null}, {e: null}, {f: null}, {a: {b: 1}, c: [{d: 1}], f: [{g: 2}, {g: 1}]}, {f: [1]}, {c: [1]}, {a: [1]}]`},
		{"lists of several types", "x.io/v1", "Gadget", `validate: {deny: {conditions: {any: [{key: "{{ request.object.spec.x }}", operator: AnyIn, value: [1, a, true]}, {key: "{{ request.object.spec.y }}", operator: Equals, value: [1, b]}]}}}`,
			`[{x: 1, "y": 1}, {x: true, "y": 1}, {x: [b, a], "y": 1}, {x: [2, c]}, {x: 3, "y": [1, b]}, {x: 3, "y": []}, {"y": []}]`},
		{"values of several types", "x.io/v1", "Gadget", "validate: {deny: {conditions: {any: [{key: \"{{ request.object.spec.a || request.object.spec.b || `5` }}\", operator: Equals, value: 5}, {key: \"{{ request.object.spec.c && 'x' || `true` }}\", operator: Equals, value: x}]}}}",
			`[{a: 5}, {a: "5"}, {a: []}, {b: 6}, {b: 6, c: z}, {}]`},
		{"loops in loops", "v1", "Pod", "validate: {foreach: [{list: request.object.spec.containers, foreach: [{list: element.ports, deny: {conditions: {all: [{key: \"{{ element.hostPort || `0` }}\", operator: GreaterThan, value: 80}, {key: \"{{ element0.name }}\", operator: Equals, value: a}]}}}]}]}",
			`[{containers: [{name: a}]}, {containers: [{name: a, ports: [{hostPort: 90}, {hostPort: 91}]}]}, {containers: [{name: a, ports: [{hostPort: 9}, {containerPort: 91}]}]}, {containers: [{name: b, ports: [{hostPort: 90}]}]}]`},
		{"patterns in loops", "v1", "Pod", `validate: {foreach: [{list: "request.object.spec.[initContainers, containers][]", preconditions: {all: [{key: "{{ element.image }}", operator: Equals, value: "ng*"}]}, pattern: {=(securityContext): {=(runAsUser): ">0"}, name: "?*"}}, {list: request.object.spec.volumes, anyPattern: [{emptyDir: {}}, {"X(hostPath)": null}]}]}`,
			`[{containers: [{name: a, image: nginx}]}, {containers: [{name: a, image: nginx, securityContext: {runAsUser: 0}}]}, {containers: [{name: a, image: nginx, securityContext: {runAsUser: 1}}], volumes: [{name: a, hostPath: {path: x}}]}, {initContainers: [{name: a}], containers: [], volumes: [{name: a, emptyDir: {}}]}]`},
		{"deletions", "x.io/v1", "Gadget", `context: [{name: raw, variable: {jmesPath: request.object.spec.a, default: none}}, {name: new, variable: {value: "{{ request.object.spec.a || 'no' }}"}}], validate: {allowExistingViolations: false, deny: {conditions: {all: [{key: "{{ raw }}", operator: Equals, value: none}, {key: "{{ new }}", operator: Equals, value: b}]}}}`,
			`[{a: b}, {a: c}, {}]`},
		{"deletions whose precondition errs", "x.io/v1", "Gadget", `preconditions: {all: [{key: "{{ request.object.spec.z }}", operator: Equals, value: a}]}, validate: {pattern: {spec: {x: 1}}}`,
			`[{}, {z: a}, {z: a, x: 1}, {z: b}]`},
	} {
		t.Run(s.name, func(t *testing.T) { s.agree(t, translate.Options{Release: 34, Schemas: schemas}) })
	}
}

// agree puts every request before both judges.
func (s sample) agree(t *testing.T, o translate.Options) {
	t.Helper()
	e := s.judges(t, o)
	for _, r := range s.requests(t) {
		opinions, err := e.Judge(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range opinions {
			if !o.Agree() {
				t.Errorf("%s: %s (%s) natively, %s (%s) by the interpreter", r, o.Native, o.NativeMessage, o.Status, o.Message)
			}
		}
	}
}

func (s sample) judges(t *testing.T, o translate.Options) *verify.Judges {
	t.Helper()
	text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}},
  spec: {validationFailureAction: Enforce, rules: [{name: r, match: {any: [{resources: {kinds: [%s]}}]}, %s}]}}`, s.kind, s.rule)
	file, found := policy.Parse("p.yaml", []byte(text))
	if found.HasErrors() || len(file.Policies) != 1 {
		t.Fatalf("%d policies: %v", len(file.Policies), found)
	}
	e, err := verify.NewJudges(file.Policies[0], verify.Setting{Translate: o})
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Native()) == 0 {
		t.Fatalf("not native: %v", e.Compiled.Diagnostics)
	}
	for _, refused := range e.Refused() {
		t.Error(refused)
	}
	return e
}

func (s sample) requests(t *testing.T) []*verify.Request {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(s.specs))
	if err != nil {
		t.Fatal(err)
	}
	var specs []any
	if err := json.Unmarshal(data, &specs); err != nil {
		t.Fatal(err)
	}
	var out []*verify.Request
	var first map[string]any
	for _, spec := range specs {
		object := map[string]any{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": map[string]any{"name": "x", "namespace": "app"}, "spec": spec}
		if first == nil {
			first = object
		}
		out = append(out, s.request("CREATE", object, nil), s.request("UPDATE", object, first), s.request("DELETE", nil, object))
	}
	return out
}

func (s sample) request(operation string, object, old map[string]any) *verify.Request {
	kind := (&unstructured.Unstructured{Object: map[string]any{"apiVersion": s.apiVersion, "kind": s.kind}}).GroupVersionKind()
	r := &verify.Request{Operation: operation, Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s",
		Name: "x", Namespace: "app", NamespaceLabels: map[string]string{}, User: "alice", Object: object, OldObject: old}
	r.Kind.Group, r.Kind.Version, r.Kind.Kind = kind.Group, kind.Version, kind.Kind
	return r
}
