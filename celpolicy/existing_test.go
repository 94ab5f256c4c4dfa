package celpolicy_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
)

// retargeted are the policies of a text, with what their rules with targets became.
func retargeted(t *testing.T, text []byte, schemas *schema.Set) converted {
	t.Helper()
	file, found := policy.Parse("policy.yaml", text)
	out := converted{schemas: schemas}
	out.compiled = compile.Policies(compile.Input{Policies: file.Policies, Exceptions: file.Exceptions, Found: found}, compile.Options{
		Translate: translate.Options{
			Release: cel.Latest, Schemas: schemas, Guard: translate.GuardNever, Mutations: true, Targets: true, Library: true, Merging: apiserver.NewMerging(),
		},
		Emit: vap.EmitOptions{ExcludeNamespaces: []string{}},
	})
	out.Conversion = celpolicy.Convert(out.compiled, celpolicy.Options{Version: "v1"})
	out.made = parsed(t, out.Conversion)
	return out
}

// onlyTargets are the policies with those of their rules alone that have targets and were converted,
// and what these became.
func (c converted) onlyTargets() (before, after []*policy.Policy) {
	of := map[*policy.Policy][]*policy.Rule{}
	for _, r := range c.compiled.Rules {
		if _, left := c.Left[r]; !left && len(r.Existing) > 0 {
			of[r.Policy] = append(of[r.Policy], r.Source)
		}
	}
	for _, p := range c.compiled.Policies {
		if rules := of[p]; len(rules) > 0 {
			only := *p
			only.Rules = rules
			before = append(before, &only)
		}
	}
	for _, p := range c.made {
		if p.Mutating != nil && p.Mutating.Existing {
			after = append(after, p)
		}
	}
	return before, after
}

// A following is what follows from a request for objects that are there.
type following struct {
	triggered bool
	found     bool     // an object that is no error to find
	changed   []string // objects, as they become
	said      []string
}

// followingOf is what policies make of objects when a request is made.
func followingOf(t *testing.T, policies []*policy.Policy, world *interp.Offline, request *interp.Request) (out following) {
	t.Helper()
	for _, p := range policies {
		in := interp.New([]*policy.Policy{p}, nil, world, interp.Limits{})
		for _, trigger := range in.Triggered(t.Context(), request) {
			out.said = append(out.said, fmt.Sprintf("%s: %s %s", p.Name, trigger.Status, trigger.Message))
			out.triggered = out.triggered || trigger.Status == interp.Pass
			if trigger.Status != interp.Pass {
				continue
			}
			for _, m := range in.MutateExisting(t.Context(), request, p.FullName(), trigger.Rule, world) {
				out.said = append(out.said, fmt.Sprintf("%s: %s %s of %s", p.Name, m.Status, m.Message, nameOf(m.Before)))
				out.found = out.found || m.Before != nil && m.Status != interp.Error
				if m.Status == interp.Pass && textOf(t, m.Before) != textOf(t, m.After) {
					out.changed = append(out.changed, "# "+m.Subresource+"\n"+textOf(t, m.After))
				}
			}
		}
	}
	slices.Sort(out.changed)
	return out
}

func nameOf(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(object["kind"], " ", meta["namespace"], "/", meta["name"])
}

// randomValue is what is made anew each time.
var randomValue = regexp.MustCompile(`(random): \S+`)

// textOf is an object as a text, in which what is random is left out.
func textOf(t *testing.T, object map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return randomValue.ReplaceAllString(string(text), "$1:")
}

// compareTargets says whether the same follows from requests by rules with targets and by what they
// became, how often something does and how many objects change.
func (c converted) compareTargets(t *testing.T, world *interp.Offline, requests []*interp.Request) (triggered, changed int) {
	t.Helper()
	world.Complete = true
	before, after := c.onlyTargets()
	for _, request := range requests {
		want, got := followingOf(t, before, world, request), followingOf(t, after, world, request)
		if !slices.Equal(want.changed, got.changed) {
			t.Errorf("%s of\n%v\nmakes\n%s\nand not\n%s\n%s\n%s", request.Admission["operation"], request.Admission,
				strings.Join(got.changed, "---\n"), strings.Join(want.changed, "---\n"), strings.Join(want.said, "\n"), strings.Join(got.said, "\n"))
		}
		if want.triggered != got.triggered && (want.found || got.found) {
			t.Errorf("%s of\n%v\ntriggers: %t, want %t\n%s\n%s", request.Admission["operation"], request.Admission, got.triggered, want.triggered,
				strings.Join(want.said, "\n"), strings.Join(got.said, "\n"))
		}
		if want.triggered {
			triggered++
		}
		changed += len(want.changed)
	}
	return triggered, changed
}

// targetRule is a policy with a rule that has targets.
func targetRule(kind, rule string) string {
	text := "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p, namespace: dev}\nspec:\n  rules:\n  - name: r\n    " + strings.ReplaceAll(rule, "\n", "\n    ")
	return strings.ReplaceAll(text, "\n    - ", "\n  - ")
}

// targetObjects are triggers and targets.
const targetObjects = `
- {apiVersion: v1, kind: Namespace, metadata: {name: dev, uid: u1, labels: {tier: dev, team: web}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}
- {apiVersion: v1, kind: Namespace, metadata: {name: prod, uid: u2, labels: {tier: prod, team: ""}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: dev, uid: u3, labels: {pick: "yes", tier: dev}, annotations: {a: b}}, data: {k: old, name: two, where: prod, wild: "t*", empty: ""}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: dev, uid: u4, labels: {pick: "no"}}, data: {k: other, name: "", where: "*"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: two, namespace: prod, uid: u5, labels: {pick: "yes"}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: three, namespace: prod, uid: u6}, data: {k: third, name: "t*o", where: ""}}
- {apiVersion: v1, kind: Secret, metadata: {name: one, namespace: dev, uid: u7, labels: {of: one, pick: "yes"}}, type: Opaque, data: {k: dg==, go: MQ==}}
- {apiVersion: v1, kind: Secret, metadata: {name: one, namespace: dev, uid: u7}, type: Opaque}
- {apiVersion: v1, kind: Secret, metadata: {name: two, namespace: prod, uid: u8, labels: {of: two}, annotations: {target: two}}, type: Opaque, data: {k: eA==}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: one, namespace: dev, uid: u9, labels: {app: web}}, spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: one, image: "i:1"}, {name: d, image: j}]}}}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: two, namespace: prod, uid: ua}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: "i:2"}], volumes: [{name: v, emptyDir: {}}]}}}}
- {apiVersion: v1, kind: Node, metadata: {name: one, uid: ub, labels: {pick: "yes"}}, spec: {}, status: {nodeInfo: {containerRuntimeVersion: "docker://1"}}}
- {apiVersion: v1, kind: Node, metadata: {name: two, uid: uc}, spec: {unschedulable: true}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: one, namespace: dev, uid: ud}, spec: {name: text, size: 2, list: [a, b], of: {a: 1.5}}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: one, namespace: dev, uid: ud}, spec: {name: 5, list: a, of: null}}
`

// world is a cluster in which each object is as it was last.
func targetWorld(t *testing.T, schemas *schema.Set) (*interp.Offline, []map[string]any) {
	t.Helper()
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(targetObjects), &objects); err != nil {
		t.Fatal(err)
	}
	return judge.World(standing(objects), schemas), objects
}

// standing are objects, each once.
func standing(objects []map[string]any) (out []map[string]any) {
	seen := map[string]bool{}
	for _, o := range objects {
		key := fmt.Sprint(o["apiVersion"], nameOf(o))
		if !seen[key] {
			out = append(out, maps.Clone(o))
		}
		seen[key] = true
	}
	return out
}

// A MutatingPolicy changes what the rule with targets does of which it is made.
func TestTargets(t *testing.T) {
	const (
		secrets  = "match: {any: [{resources: {kinds: [Secret]}}]}\n"
		widgets  = "match: {any: [{resources: {kinds: [x.io/v1/Widget]}}]}\n"
		label    = "  patchStrategicMerge: {metadata: {labels: {changed: \"yes\"}}}\n"
		labelOf  = "  patchStrategicMerge: {metadata: {labels: {by: \"{{ request.object.metadata.name }}\"}}}\n"
		existing = "  patchStrategicMerge: {data: {k: \"{{ @ }}-{{ request.object.metadata.name }}-{{ target.metadata.name }}\"}}\n"
	)
	to := func(target string) string { return "mutate:\n  targets: [{" + target + "}]\n" }
	for _, tt := range []struct {
		name, kind, rule string
		triggered        int
		changed          int
	}{
		{"by name", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, namespace: dev, name: one") + label, 8, 8},
		{"not there", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, namespace: dev, name: none") + label, 8, 0},
		{"all of a kind", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap") + labelOf, 8, 32},
		{"a namespace", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, namespace: prod") + labelOf, 8, 16},
		{"the namespace of the trigger", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, namespace: '{{ request.namespace }}'") + labelOf, 8, 16},
		{"the name of the trigger", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: '{{ request.object.metadata.name }}'") + labelOf, 8, 10},
		{"both of the trigger", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: '{{ request.object.metadata.name }}', namespace: '{{request.object.metadata.namespace}}'") + labelOf, 8, 8},
		{"a name alone", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: two") + labelOf, 8, 16},
		{"wildcards", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: 't*', namespace: 'p?od'") + labelOf, 8, 16},
		{"any name", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: '*', namespace: '*'") + labelOf, 8, 32},
		{"a label of the trigger", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: '{{ request.object.metadata.labels.of }}', namespace: '{{ request.namespace }}'") + labelOf, 8, 5},
		{"a default", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: \"{{ request.object.metadata.annotations.target || 'one' }}\", namespace: dev") + labelOf, 8, 8},
		{"data of the trigger, empty and wild", "ClusterPolicy", configMaps + to("apiVersion: v1, kind: Secret, name: '{{ request.object.data.name }}', namespace: '{{ request.object.data.where }}'") + labelOf, 8, 8},
		{"data within a text", "ClusterPolicy", configMaps + to("apiVersion: v1, kind: Secret, name: \"t{{ request.object.data.empty || 'wo' }}\"") + labelOf, 8, 8},
		{"own kind", "ClusterPolicy", configMaps + to("apiVersion: v1, kind: ConfigMap, namespace: '{{ request.object.metadata.namespace }}'") + existing, 8, 12},
		{"own kind, itself", "ClusterPolicy", configMaps + to("apiVersion: v1, kind: ConfigMap, namespace: '{{ request.object.metadata.namespace }}', name: '{{ request.object.metadata.name }}'") + existing, 8, 6},
		{"a selector", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {pick: \"yes\"}}") + labelOf, 8, 16},
		{"a selector by name", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, namespace: dev, name: one, selector: {matchLabels: {pick: \"no\"}}") + labelOf, 8, 8},
		{"a selector beside a name alone", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, name: two, selector: {matchLabels: {pick: \"yes\"}}") + labelOf, 8, 8},
		{"expressions of a selector", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, selector: {matchExpressions: [{key: pick, operator: NotIn, values: [\"no\"]}, {key: tier, operator: DoesNotExist}]}") + labelOf, 8, 16},
		{"In and Exists", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, selector: {matchExpressions: [{key: pick, operator: In, values: [\"no\", \"yes\"]}, {key: tier, operator: Exists}]}") + labelOf, 8, 8},
		{"an empty selector", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, selector: {}") + labelOf, 8, 32},
		{"a selector of the trigger", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {pick: '{{ request.object.metadata.labels.pick }}'}}") + labelOf, 8, 6},
		{"a selector with a default", "ClusterPolicy", secrets + to("apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {pick: \"{{ request.object.metadata.labels.pick || 'no' }}\", tier: dev}}") + labelOf, 8, 3},
		{"of a namespace", "Policy", secrets + to("apiVersion: v1, kind: ConfigMap, namespace: prod") + labelOf, 6, 12},
		{"of a namespace, by name", "Policy", secrets + to("apiVersion: v1, kind: ConfigMap, name: '{{ request.object.metadata.name }}', selector: {matchLabels: {pick: \"no\"}}") + labelOf, 6, 6},
		{"of a namespace, by wildcard", "Policy", configMaps + to("apiVersion: v1, kind: Secret, name: 'o*'") + labelOf, 4, 4},
		{"cluster scoped", "ClusterPolicy", secrets + to("apiVersion: v1, kind: Node, name: '{{ request.object.metadata.name }}'") + labelOf, 8, 8},
		{"cluster scoped by label", "ClusterPolicy", secrets + to("apiVersion: v1, kind: Node, name: one, selector: {matchLabels: {pick: \"no\"}}") + labelOf, 8, 0},
		{"namespaces", "ClusterPolicy", secrets + to("apiVersion: v1, kind: Namespace, name: '{{ request.namespace }}'") + labelOf, 8, 8},
		{"a cluster scoped trigger", "ClusterPolicy", namespaces + to("apiVersion: v1, kind: ConfigMap, namespace: '{{ request.object.metadata.name }}'") + labelOf, 4, 8},
		{"the namespace of a namespace", "ClusterPolicy", namespaces + to("apiVersion: v1, kind: ConfigMap, namespace: '{{ request.namespace }}'") + labelOf, 4, 8},
		{"of no known type", "ClusterPolicy", widgets + to("apiVersion: v1, kind: ConfigMap, namespace: '{{ request.namespace }}'") + "  patchStrategicMerge: {metadata: {labels: {a: \"{{ request.object.metadata.name }}\"}}}\n", 6, 12},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schemas := generatingSchemas(t)
			world, objects := targetWorld(t, schemas)
			c := retargeted(t, []byte(targetRule(tt.kind, tt.rule)), schemas)
			if before, _ := c.onlyTargets(); len(before) == 0 {
				t.Fatalf("%v\n%v", c.compiled.Diagnostics, c.Left)
			}
			triggered, changed := c.compareTargets(t, world, triggeringRequests(schemas, objects))
			if triggered != tt.triggered || changed != tt.changed {
				t.Errorf("%d requests change %d objects, want %d and %d", triggered, changed, tt.triggered, tt.changed)
			}
		})
	}
}

// What a rule asks of a target and makes of it, a MutatingPolicy does too.
func TestTargetPatches(t *testing.T) {
	const secrets = "match: {any: [{resources: {kinds: [Secret]}}]}\n"
	const inDev = "mutate:\n  targets: [{apiVersion: v1, kind: ConfigMap, namespace: dev}]\n"
	const all = "mutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n"
	const deployments = "mutate:\n  targets: [{apiVersion: apps/v1, kind: Deployment}]\n"
	asking := func(more string) string {
		return "mutate:\n  targets: [{apiVersion: v1, kind: ConfigMap, " + more + "}]\n"
	}
	for _, tt := range []struct {
		name, kind, rule string
		triggered        int
		changed          int
	}{
		{"preconditions of the trigger", "ClusterPolicy", secrets + "preconditions: {all: [{key: \"{{ request.object.metadata.labels.of || '' }}\", operator: Equals, value: one}]}\n" + inDev + "  patchStrategicMerge: {data: {by: '{{ request.object.metadata.labels.of }}'}}\n", 3, 6},
		{"preconditions that may be an error", "ClusterPolicy", secrets + "preconditions: {any: [{key: '{{ request.object.metadata.labels.of }}', operator: NotEquals, value: two}]}\n" + inDev + "  patchStrategicMerge: {data: {by: '{{ request.object.metadata.labels.of }}'}}\n", 3, 6},
		{"target in the preconditions of the rule", "ClusterPolicy", secrets + "preconditions: {any: [{key: \"{{ target.metadata.name || 'none' }}\", operator: Equals, value: none}]}\n" + inDev + "  patchStrategicMerge: {data: {a: b}}\n", 8, 16},
		{"preconditions of a target", "ClusterPolicy", secrets + asking("preconditions: {all: [{key: '{{ target.metadata.name }}', operator: Equals, value: '{{ request.object.metadata.name }}'}]}") + "  patchStrategicMerge: {data: {a: b}}\n", 8, 10},
		{"preconditions of a target that may be an error", "ClusterPolicy", secrets + asking("preconditions: {all: [{key: '{{ target.data.k }}', operator: NotEquals, value: old}]}") + "  patchStrategicMerge: {data: {a: b}}\n", 8, 16},
		{"any precondition of a target", "ClusterPolicy", secrets + asking("preconditions: {any: [{key: \"{{ target.data.k || '' }}\", operator: In, value: [old, third]}, {key: '{{ request.operation }}', operator: Equals, value: UPDATE}]}") + "  patchStrategicMerge: {data: {a: b}}\n", 8, 26},
		{"context of a target", "ClusterPolicy", secrets + asking("context: [{name: both, variable: {value: '{{ target.metadata.name }}-{{ request.object.metadata.name }}'}}, {name: k, variable: {jmesPath: target.data.k, default: none}}], preconditions: {all: [{key: '{{ k }}', operator: NotEquals, value: other}]}") + "  patchStrategicMerge: {data: {a: '{{ both }}', k2: '{{ k }}'}}\n", 8, 24},
		{"context of the rule", "ClusterPolicy", secrets + "context: [{name: both, variable: {value: '{{ request.object.metadata.name }}-{{ request.namespace }}'}}]\npreconditions: {all: [{key: '{{ both }}', operator: NotEquals, value: x}]}\n" + inDev + "  patchStrategicMerge: {data: {by: '{{ both }}'}}\n", 8, 16},
		{"a ConfigMap", "ClusterPolicy", secrets + "context: [{name: c, configMap: {name: one, namespace: dev}}]\n" + inDev + "  patchStrategicMerge: {data: {by: \"{{ c.data.k || 'none' }}\"}}\n", 8, 16},
		{"a ConfigMap that both ask", "ClusterPolicy", secrets + "context: [{name: c, configMap: {name: one, namespace: dev}}]\npreconditions: {all: [{key: '{{ c.data.k }}', operator: Equals, value: old}]}\n" + inDev + "  patchStrategicMerge: {data: {by: \"{{ c.data.k || 'none' }}\"}}\n", 8, 16},
		{"a ConfigMap that is not there", "ClusterPolicy", secrets + "context: [{name: c, configMap: {name: none, namespace: dev}}]\n" + inDev + "  patchStrategicMerge: {data: {by: \"{{ c.data.k || 'none' }}\"}}\n", 8, 0},
		{"an API call", "ClusterPolicy", secrets + "context: [{name: c, apiCall: {urlPath: '/api/v1/namespaces/{{ request.namespace }}/configmaps', jmesPath: 'items | length(@)'}}]\npreconditions: {all: [{key: '{{ c }}', operator: GreaterThan, value: 1}]}\n" + inDev + "  patchStrategicMerge: {metadata: {labels: {by: 'x{{ c }}'}}}\n", 8, 16},
		{"an API call for each target", "ClusterPolicy", secrets + asking("context: [{name: c, apiCall: {urlPath: '/api/v1/namespaces/{{ target.metadata.namespace }}', jmesPath: \"metadata.labels.team || 'none'\"}}]") + "  patchStrategicMerge: {metadata: {labels: {by: '{{ c }}'}}}\n", 8, 32},
		{"an anchor", "ClusterPolicy", secrets + all + "  patchStrategicMerge: {metadata: {labels: {(pick): 'y*', a: b}}}\n", 8, 16},
		{"a global anchor", "ClusterPolicy", secrets + all + "  patchStrategicMerge: {metadata: {<(name): '!two', annotations: {+(a): '{{ request.object.metadata.name }}'}}}\n", 8, 8},
		{"an addition", "ClusterPolicy", secrets + all + "  patchStrategicMerge: {data: {+(k): new, +(by): '{{ request.object.metadata.name }}'}}\n", 8, 32},
		{"a variable that an addition may not need", "ClusterPolicy", secrets + all + "  patchStrategicMerge: {data: {+(k): '{{ request.object.metadata.labels.of }}', by: b}}\n", 8, 20},
		{"a trigger in no namespace", "ClusterPolicy", "match: {any: [{resources: {kinds: [Node]}}]}\n" + inDev + "  patchStrategicMerge: {data: {of: \"{{ request.namespace || 'none' }}\"}}\n", 4, 8},
		{"a deletion of fields", "ClusterPolicy", secrets + all + "  patchStrategicMerge: {data: {k: null}}\n", 8, 32},
		{"old values", "ClusterPolicy", secrets + all + "  patchStrategicMerge: {data: {k: \"{{@}} and {{ target.data.k }}\", a: \"{{ request.object.metadata.uid }}\"}}\n", 8, 24},
		{"containers", "ClusterPolicy", secrets + deployments + "  patchStrategicMerge: {spec: {template: {spec: {containers: [{(name): '?*', image: 'i:9'}]}}}}\n", 8, 16},
		{"a container of the trigger's name", "ClusterPolicy", secrets + deployments + "  patchStrategicMerge: {spec: {template: {spec: {containers: [{name: '{{ request.object.metadata.name }}', image: 'i:9'}]}}}}\n", 8, 16},
		{"lists and removal", "ClusterPolicy", secrets + deployments + "  patchStrategicMerge: {spec: {replicas: 2, template: {metadata: {annotations: {restarted: '{{ request.object.metadata.name }}'}}, spec: {volumes: null, tolerations: [{key: a, operator: Exists}]}}}}\n", 8, 16},
		{"a JSON patch", "ClusterPolicy", secrets + all + "  patchesJson6902: |-\n    - {op: add, path: /metadata/labels/by, value: \"{{ request.object.metadata.name }}-{{ target.metadata.namespace }}\"}\n", 8, 32},
		{"a JSON patch that replaces", "ClusterPolicy", secrets + all + "  patchesJson6902: |-\n    - {op: replace, path: /data/k, value: new}\n", 8, 24},
		{"a JSON patch in steps", "ClusterPolicy", secrets + all + "  patchesJson6902: |-\n    - {op: remove, path: /data/k}\n    - {op: add, path: /metadata/annotations/x, value: a}\n    - {op: add, path: /data/by, value: b}\n", 8, 32},
		{"a loop over the target", "ClusterPolicy", secrets + deployments + "  foreach:\n  - {list: target.spec.template.spec.containers, patchStrategicMerge: {spec: {template: {spec: {containers: [{name: '{{ element.name }}', image: 'x/{{ element.image }}'}]}}}}}\n", 8, 16},
		{"a loop with a JSON patch", "ClusterPolicy", secrets + deployments + "  foreach:\n  - list: target.spec.template.spec.containers\n    preconditions: {all: [{key: '{{ element.name }}', operator: Equals, value: '{{ request.object.metadata.name }}'}]}\n    patchesJson6902: |-\n      - {op: replace, path: '/spec/template/spec/containers/{{elementIndex}}/image', value: 'x:1'}\n", 8, 6},
		{"a loop over the trigger", "ClusterPolicy", "match: {any: [{resources: {kinds: [Deployment]}}]}\n" + inDev + "  foreach:\n  - {list: request.object.spec.template.spec.containers, patchStrategicMerge: {data: {'c-{{ element.name }}': x}}}\n", 4, 8},
		{"creations", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret], operations: [CREATE]}}]}\n" + inDev + "  patchStrategicMerge: {data: {by: '{{ request.operation }}'}}\n", 3, 6},
		{"deletions", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret], operations: [DELETE], names: [one]}}]}\nmutate:\n  targets: [{apiVersion: v1, kind: ConfigMap, namespace: '{{ request.object.metadata.namespace }}'}]\n  patchStrategicMerge: {data: {gone: '{{ request.object.metadata.name }}', was: '{{ request.oldObject.metadata.name }}'}}\n", 2, 4},
		{"deletions by a query", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret], operations: [CREATE, DELETE]}}]}\ncontext: [{name: q, variable: {jmesPath: request.object.metadata.name, default: none}}, {name: o, variable: {jmesPath: request.oldObject.metadata.name, default: none}}]\n" +
			"preconditions: {any: [{key: '{{ q }}', operator: NotEquals, value: x}]}\n" + inDev + "  patchStrategicMerge: {data: {q: '{{ q }}', o: '{{ o }}', v: '{{ request.object.metadata.name }}'}}\n", 6, 12},
		{"the namespace of the trigger", "ClusterPolicy", secrets + "context: [{name: c, apiCall: {urlPath: '/api/v1/namespaces/{{ request.namespace }}', jmesPath: \"metadata.labels.team || 'none'\"}}]\n" +
			"preconditions: {all: [{key: '{{ c }}', operator: NotEquals, value: x}]}\n" + inDev + "  patchStrategicMerge: {data: {team: '{{ c }}'}}\n", 8, 16},
		{"all operations", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret], operations: [CREATE, UPDATE, DELETE]}}]}\nmutate:\n  targets: [{apiVersion: v1, kind: ConfigMap, namespace: '{{ request.namespace }}', name: '{{ request.name }}'}]\n  patchStrategicMerge: {data: {by: '{{ request.operation }}'}}\n", 11, 11},
		{"what it was", "ClusterPolicy", secrets + inDev + "  patchStrategicMerge: {data: {was: \"{{ request.oldObject.metadata.labels.of || 'none' }}\"}}\n", 8, 16},
		{"what changes", "ClusterPolicy", secrets + "preconditions: {all: [{key: \"{{ request.object.metadata.labels.of || '' }}\", operator: NotEquals, value: \"{{ request.oldObject.metadata.labels.of || '' }}\"}]}\n" + inDev + "  patchStrategicMerge: {data: {a: b}}\n", 4, 8},
		{"who", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret]}, subjects: [{kind: User, name: alice}]}]}\nexclude: {any: [{resources: {namespaces: [prod]}}]}\n" + inDev + "  patchStrategicMerge: {data: {by: '{{ request.userInfo.username }}'}}\n", 6, 12},
		{"two kinds of triggers", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret, ConfigMap]}}]}\nmutate:\n  targets: [{apiVersion: apps/v1, kind: Deployment, namespace: '{{ request.namespace }}'}]\n  patchStrategicMerge: {metadata: {annotations: {by: '{{ request.kind.kind }}-{{ request.object.metadata.name }}'}}}\n", 16, 16},
		{"several targets", "ClusterPolicy", secrets + "mutate:\n  targets:\n  - {apiVersion: v1, kind: ConfigMap, namespace: dev}\n  - {apiVersion: apps/v1, kind: Deployment}\n  - {apiVersion: v1, kind: ConfigMap, namespace: prod, name: three}\n  patchStrategicMerge: {metadata: {labels: {by: '{{ request.object.metadata.name }}'}}}\n", 8, 40},
		{"of a namespace", "Policy", secrets + "context: [{name: c, configMap: {name: one, namespace: dev}}]\n" + asking("preconditions: {all: [{key: '{{ target.metadata.name }}', operator: NotEquals, value: '{{ c.data.name }}'}]}") + "  patchStrategicMerge: {data: {by: '{{ request.object.metadata.name }}'}}\n", 6, 6},
		{"data of the trigger", "ClusterPolicy", configMaps + "mutate:\n  targets: [{apiVersion: v1, kind: Secret, namespace: '{{ request.namespace }}'}]\n  patchStrategicMerge: {metadata: {annotations: {k: \"{{ request.object.data.k || 'none' }}\", w: '{{ request.object.data.wild }}'}}}\n", 8, 2},
		{"labels of the namespace", "ClusterPolicy", "match: {any: [{resources: {kinds: [Secret], namespaceSelector: {matchLabels: {tier: dev}}}}]}\n" + inDev + "  patchStrategicMerge: {data: {a: b}}\n", 8, 16},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schemas := generatingSchemas(t)
			world, objects := targetWorld(t, schemas)
			c := retargeted(t, []byte(targetRule(tt.kind, tt.rule)), schemas)
			if before, _ := c.onlyTargets(); len(before) == 0 {
				t.Fatalf("%v\n%v", c.compiled.Diagnostics, c.Left)
			}
			triggered, changed := c.compareTargets(t, world, triggeringRequests(schemas, objects))
			if triggered != tt.triggered || changed != tt.changed {
				t.Errorf("%d requests change %d objects, want %d and %d", triggered, changed, tt.triggered, tt.changed)
			}
		})
	}
}

// What is there triggers both when the policy is made, where the rule says so.
func TestTargetsOfWhatIsThere(t *testing.T) {
	const rest = "mutate:\n  mutateExistingOnPolicyUpdate: true\n  targets: [{apiVersion: v1, kind: ConfigMap, namespace: '{{ request.object.metadata.namespace }}'}]\n" +
		"  patchStrategicMerge: {data: {by: '{{ request.object.metadata.name }}'}}\n"
	for _, tt := range []struct {
		name, rule string
		changed    int
	}{
		{"a kind", "match: {any: [{resources: {kinds: [Secret]}}]}\n" + rest, 6},
		{"a name and a precondition", "match: {any: [{resources: {kinds: [Secret], names: ['*o*']}}]}\npreconditions: {all: [{key: '{{ request.object.metadata.labels.of }}', operator: NotEquals, value: two}]}\n" + rest, 2},
		{"labels", "match: {any: [{resources: {kinds: [Secret], selector: {matchLabels: {of: two}}}}]}\n" + rest, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			schemas := generatingSchemas(t)
			world, objects := targetWorld(t, schemas)
			c := retargeted(t, []byte(targetRule("ClusterPolicy", tt.rule)), schemas)
			var requests []*interp.Request
			for _, o := range objects {
				requests = append(requests, thereAlready(o))
			}
			if _, changed := c.compareTargets(t, world, requests); changed != tt.changed {
				t.Errorf("%d objects change, want %d", changed, tt.changed)
			}
		})
	}
}

// What a rule does on other operations than UPDATE, the policy does not do to what is there when it is
// made, as if it were updated.
func TestTargetsOfNoUpdate(t *testing.T) {
	schemas := generatingSchemas(t)
	world, objects := targetWorld(t, schemas)
	world.Complete = true
	for operations, want := range map[string]int{"CREATE": 0, "CREATE, DELETE": 0, "UPDATE": 6, "UPDATE ": 6} {
		update := fmt.Sprint(strings.HasSuffix(operations, " ")) // both are told of: without a request, no operation is that of the rule
		c := retargeted(t, []byte(targetRule("ClusterPolicy", "match: {any: [{resources: {kinds: [Secret], operations: ["+operations+"]}}]}\n"+
			"mutate:\n  mutateExistingOnPolicyUpdate: "+update+"\n  targets: [{apiVersion: v1, kind: ConfigMap, namespace: dev}]\n  patchStrategicMerge: {data: {a: b}}\n")), schemas)
		_, after := c.onlyTargets()
		changed := 0
		for _, o := range objects {
			changed += len(followingOf(t, after, world, thereAlready(o)).changed)
		}
		if changed != want {
			t.Errorf("%s: %d objects change, want %d", operations, changed, want)
		}
		if told := slices.ContainsFunc(c.compiled.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == diag.ChangedWithPolicy && d.Severity == diag.Warning }); told != (want > 0) {
			t.Errorf("%s: %v", operations, c.compiled.Diagnostics)
		}
	}
}

// What has no counterpart is left, with a sentence that says why.
func TestTargetsLeft(t *testing.T) {
	const secrets = "match: {any: [{resources: {kinds: [Secret]}}]}\n"
	to := func(target string) string {
		return secrets + "mutate:\n  targets: [{" + target + "}]\n  patchStrategicMerge: {metadata: {labels: {a: b}}}\n"
	}
	for _, tt := range []struct{ kind, rule, want string }{
		{"ClusterPolicy", secrets + "mutate:\n  targets: []\n  patchStrategicMerge: {metadata: {labels: {a: b}}}\n", "an empty list of targets"},
		{"ClusterPolicy", to("apiVersion: v1, kind: '{{ request.object.data.kind }}'"), "the kind of a target is a variable"},
		{"ClusterPolicy", to("apiVersion: '*', kind: ConfigMap"), "the apiVersion of a target is a variable or has a wildcard"},
		{"ClusterPolicy", to("apiVersion: apps/v1, kind: Deployment/scale"), "is a subresource"},
		{"ClusterPolicy", to("apiVersion: y.io/v1, kind: Gadget"), "Gadget of a target is not known"},
		{"ClusterPolicy", to("apiVersion: v1, kind: Node, namespace: dev"), "remove the namespace"},
		{"Policy", to("apiVersion: v1, kind: Node, name: a"), "a policy of a namespace changes what is in it alone"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, name: '{{ request.object.data.k }}', selector: {matchLabels: {a: b}}"), "depends on whether the variable"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, selector: {matchLabels: {a: 'b*'}}"), "no API server takes the selector"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, selector: {matchExpressions: [{key: a, operator: In, values: [\"b*\"]}]}"), "no API server takes the selector"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, name: '{{ nothing.here }}'"), "never there"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, name: '{{ request.object.metadata.labels.a || request.object.metadata.labels.b }}'"), "may be null, or no text"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, namespace: dev, name: two, selector: {matchLabels: {a: '{{ request.object.metadata.name }}'}}"), "but fills in its variables"},
		{"ClusterPolicy", secrets + "mutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  patchStrategicMerge: {metadata: {name: other}}\n", "a patch of the name"},
		{"ClusterPolicy", secrets + "context: [{name: x, variable: {value: \"{{ random('[a-z]') }}\"}}]\nmutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  patchStrategicMerge: {data: {a: '{{ x }}'}}\n", "a random value of a context"},
		{"ClusterPolicy", to("apiVersion: v1, kind: ConfigMap, namespace: dev, preconditions: {all: [{key: a, operator: Equals, value: b}]}"), "no object that is there meets"},
		{"ClusterPolicy", secrets + "context: [{name: x, variable: {jmesPath: target.metadata.name}}]\nmutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  patchStrategicMerge: {data: {a: '{{ x }}'}}\n", "the context of the rule reads target"},
		{"ClusterPolicy", secrets + "mutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  foreach:\n  - {list: \"['a']\", patchStrategicMerge: {data: {a: b}}}\n  - {list: \"['a']\", patchStrategicMerge: {data: {c: '{{ request.object.metadata.name }}'}}}\n", "no longer the trigger"},
		{"ClusterPolicy", "match: {any: [{resources: {kinds: [Secret]}}]}\nexclude: {any: [{resources: {kinds: [Secret]}}]}\nmutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  patchStrategicMerge: {data: {a: b}}\n", "no request triggers the rule"},
	} {
		c := retargeted(t, []byte(targetRule(tt.kind, tt.rule)), generatingSchemas(t))
		if len(c.made) > 0 || len(c.compiled.Rules) != 1 || !strings.Contains(c.compiled.Rules[0].Reason, tt.want) {
			t.Errorf("%s\nsays %q, want %q", tt.rule, c.compiled.Rules[0].Reason, tt.want)
		}
	}
}

// What a rule says of who triggers it, the policy says too. It denies nothing, even where a condition of it
// is an error.
func TestTargetsFrame(t *testing.T) {
	const rest = "mutate:\n  mutateExistingOnPolicyUpdate: true\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  patchStrategicMerge: {data: {a: b}}\n"
	const secrets = "match: {any: [{resources: {kinds: [Secret]}}]}\n"
	for _, tt := range []struct {
		rule, spec string
		want       string
	}{
		{secrets + rest, "", "Fail true true true"},
		{secrets + rest, "failurePolicy: Ignore, ", "Ignore true true true"},
		{secrets + rest, "admission: false, ", "Fail false true true"},
		{secrets + rest, "background: false, ", "Fail true false true"},
		{"skipBackgroundRequests: false\n" + secrets + rest, "", "Fail true true false"},
		{secrets + "preconditions: {all: [{key: '{{ request.object.metadata.labels.a }}', operator: Equals, value: b}]}\n" + rest, "", "Ignore true true true"},
	} {
		text := strings.Replace(targetRule("ClusterPolicy", tt.rule), "spec:\n", "spec:\n  "+strings.ReplaceAll(tt.spec, ", ", "\n")+"\n", 1)
		c := retargeted(t, []byte(text), generatingSchemas(t))
		if len(c.made) != 1 {
			t.Fatalf("%s\n%v\n%v", text, c.compiled.Diagnostics, c.Left)
		}
		p := c.made[0]
		if got := fmt.Sprintf("%s %t %t %t", p.FailurePolicy, p.Admission, p.Background, p.Mutating.SkipBackground); got != tt.want || !p.Mutating.Existing {
			t.Errorf("got %s, want %s:\n%s", got, tt.want, text)
		}
	}
}

// An exception keeps its objects from triggering anything in both forms.
func TestTargetsExcepted(t *testing.T) {
	text := targetRule("ClusterPolicy", "match: {any: [{resources: {kinds: [Secret]}}]}\nmutate:\n  targets: [{apiVersion: v1, kind: ConfigMap}]\n  patchStrategicMerge: {data: {a: b}}") +
		"\n---\napiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e, namespace: dev}\nspec:\n  exceptions: [{policyName: p, ruleNames: [r]}]\n  match: {any: [{resources: {kinds: [Secret], names: [two]}}]}\n"
	schemas := generatingSchemas(t)
	world, objects := targetWorld(t, schemas)
	world.Complete = true
	file, _ := policy.Parse("policy.yaml", []byte(text))
	c := retargeted(t, []byte(text), schemas)
	_, after := c.onlyTargets()
	triggered := 0
	for _, request := range triggeringRequests(schemas, objects) {
		want := false
		for _, r := range interp.New(file.Policies, file.Exceptions, world, interp.Limits{}).Triggered(t.Context(), request) {
			want = want || r.Status == interp.Pass
		}
		if got := followingOf(t, after, world, request); got.triggered != want {
			t.Errorf("%v: triggered %t, want %t", request.Admission, got.triggered, want)
		}
		if want {
			triggered++
		}
	}
	if triggered != 6 {
		t.Errorf("%d requests are triggers", triggered)
	}
}
