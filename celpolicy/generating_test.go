package celpolicy_test

import (
	"encoding/json"
	"fmt"
	"maps"
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
)

// regenerated are the policies of a text, with what their generate rules became.
func regenerated(t *testing.T, text []byte, schemas *schema.Set) converted {
	t.Helper()
	file, found := policy.Parse("policy.yaml", text)
	out := converted{schemas: schemas}
	out.compiled = compile.Policies(compile.Input{Policies: file.Policies, Exceptions: file.Exceptions, Found: found}, compile.Options{
		Translate: translate.Options{Release: cel.Latest, Schemas: schemas, Guard: translate.GuardNever, Mutations: true, Generations: true},
		Emit:      vap.EmitOptions{ExcludeNamespaces: []string{}},
	})
	out.Conversion = celpolicy.Convert(out.compiled, celpolicy.Options{Version: "v1"})
	out.made = parsed(t, out.Conversion)
	return out
}

// onlyGenerating are the policies with those of their rules alone that generate and were converted.
func (c converted) onlyGenerating() (before []*policy.Policy, codes []diag.Code) {
	of := map[*policy.Policy][]*policy.Rule{}
	for _, one := range c.Policies {
		for _, r := range one.Rules {
			if r.Type() == "generate" {
				of[r.Policy] = append(of[r.Policy], r.Source)
				codes = append(codes, r.Codes...)
			}
		}
	}
	for _, p := range c.compiled.Policies {
		if rules := of[p]; len(rules) > 0 {
			only := *p
			only.Rules = rules
			before = append(before, &only)
		}
	}
	return before, codes
}

// A work is what a request starts.
type work struct {
	made    map[string]string // objects, by place
	deletes bool
	said    []string
}

// workOf is what a request starts by policies, without the labels by which Kyverno finds what it has
// made.
func workOf(t *testing.T, policies []*policy.Policy, world *interp.Offline, request *interp.Request) work {
	t.Helper()
	out := work{made: map[string]string{}}
	for _, p := range policies {
		in := interp.New([]*policy.Policy{p}, nil, world, interp.Limits{})
		for _, trigger := range in.GenerateTriggers(t.Context(), request) {
			out.said = append(out.said, fmt.Sprintf("%s: %s %s %s", p.Kind, trigger.Status, trigger.Action, trigger.Message))
			out.deletes = out.deletes || trigger.Action == interp.DeleteTargets
			if trigger.Action != interp.GenerateTargets {
				continue
			}
			of := *request
			of.Admission = maps.Clone(request.Admission)
			of.Admission["object"] = trigger.Trigger // as the worker finds it
			g := in.Generate(t.Context(), &of, p.FullName(), trigger.Rule, world)
			out.said = append(out.said, fmt.Sprintf("%s: %s %s", p.Kind, g.Status, g.Message))
			for _, made := range g.Targets {
				data, err := json.Marshal(unlabelled(t, made.Object))
				if err != nil {
					t.Fatal(err)
				}
				out.made[strings.Join([]string{made.APIVersion, made.Kind, made.Namespace, made.Name}, " ")] = fmt.Sprintf("%s %v %t", data, made.Source, made.Synchronize)
			}
		}
	}
	return out
}

// unlabelled is an object without Kyverno's own labels.
func unlabelled(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	meta := out["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	maps.DeleteFunc(labels, func(key string, _ any) bool {
		return strings.HasPrefix(key, "generate.kyverno.io/") || key == "app.kubernetes.io/managed-by"
	})
	if len(labels) == 0 {
		delete(meta, "labels")
	}
	return out
}

// triggeringRequests are what may happen to objects: each is created, deleted, there, and becomes each other
// one of its kind and place.
func triggeringRequests(schemas *schema.Set, objects []map[string]any) (out []*interp.Request) {
	text := func(o map[string]any, key string) string {
		s, _ := o["metadata"].(map[string]any)[key].(string)
		return s
	}
	request := func(operation string, now, was map[string]any) *interp.Request {
		subject := now
		if subject == nil {
			subject = was
		}
		group, version, grouped := strings.Cut(subject["apiVersion"].(string), "/")
		if !grouped {
			group, version = "", group
		}
		kind := subject["kind"].(string)
		a := map[string]any{
			"uid": "r", "operation": operation, "name": text(subject, "name"), "userInfo": map[string]any{"username": "alice", "groups": []any{"devs"}},
			"kind":     map[string]any{"group": group, "version": version, "kind": kind},
			"resource": map[string]any{"group": group, "version": version, "resource": strings.ToLower(kind) + "s"},
		}
		if known := schemas.Resources(group, version, kind); len(known) == 1 {
			a["resource"].(map[string]any)["resource"] = known[0].Plural
		}
		for _, key := range []string{"kind", "resource"} {
			a["request"+strings.ToUpper(key[:1])+key[1:]] = a[key]
		}
		if namespace := text(subject, "namespace"); namespace != "" {
			a["namespace"] = namespace
		} else if kind == "Namespace" {
			a["namespace"] = a["name"]
		}
		if now != nil {
			a["object"] = now
		}
		if was != nil {
			a["oldObject"] = was
		}
		return &interp.Request{Admission: a, NamespaceLabels: map[string]string{"tier": "dev"}}
	}
	for _, o := range objects {
		out = append(out, request("CREATE", o, nil), request("DELETE", nil, o))
		for _, was := range objects {
			if o["kind"] == was["kind"] && text(o, "name") == text(was, "name") && text(o, "namespace") == text(was, "namespace") {
				out = append(out, request("UPDATE", o, was))
			}
		}
	}
	return out
}

// compare says whether requests start the same work by the rules and by what they became, how many
// objects that makes and how often they are deleted; and more, how often by the policies alone.
func (c converted) compare(t *testing.T, world *interp.Offline, requests []*interp.Request) (made, deleted, more int) {
	t.Helper()
	before, codes := c.onlyGenerating()
	var after []*policy.Policy
	for _, p := range c.made {
		if p.Generating != nil {
			after = append(after, p)
		}
	}
	for _, request := range requests {
		want, got := workOf(t, before, world, request), workOf(t, after, world, request)
		if !maps.Equal(want.made, got.made) {
			t.Errorf("%s of\n%v\nmakes\n%v\nand not\n%v\n%s\n%s", request.Admission["operation"], request.Admission, got.made, want.made, strings.Join(want.said, "\n"), strings.Join(got.said, "\n"))
		}
		switch {
		case got.deletes && !want.deletes && !hadWork(t, before, world, request): // there is nothing to delete
		case got.deletes && !want.deletes && slices.Contains(codes, diag.GeneratedAnew):
			more++
		case got.deletes != want.deletes:
			t.Errorf("%s of\n%v\ndeletes: got %t, want %t\n%s\n%s", request.Admission["operation"], request.Admission, got.deletes, want.deletes, strings.Join(want.said, "\n"), strings.Join(got.said, "\n"))
		}
		made += len(want.made)
		if want.deletes {
			deleted++
		}
	}
	return made, deleted, more
}

// hadWork tells that the object before a request made something, when it was created.
func hadWork(t *testing.T, policies []*policy.Policy, world *interp.Offline, request *interp.Request) bool {
	t.Helper()
	a := maps.Clone(request.Admission)
	a["operation"], a["object"] = "CREATE", a["oldObject"]
	delete(a, "oldObject")
	of := *request
	of.Admission = a
	return len(workOf(t, policies, world, &of).made) > 0
}

func generatingSchemas(t *testing.T) *schema.Set {
	t.Helper()
	schemas, err := schema.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return schemas.WithPublished()
}

// generatingObjects are triggers and sources.
const generatingObjects = `
- {apiVersion: v1, kind: Namespace, metadata: {name: dev, uid: u1, labels: {tier: dev, team: web, networks: "a-b"}, annotations: {size: "3"}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}
- {apiVersion: v1, kind: Namespace, metadata: {name: dev, uid: u1}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}
- {apiVersion: v1, kind: Namespace, metadata: {name: prod, uid: u2, labels: {tier: prod, team: ""}}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: list, namespace: dev, uid: u3}, data: {namespaces: "dev,prod", generators: "a,b", resources: "dev,prod", count: "5"}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: list, namespace: dev, uid: u3}, data: {other: x}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: list, namespace: dev, uid: u3}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: template, namespace: default, uid: u4, resourceVersion: "1", labels: {copy: "yes"}, annotations: {a: b}}, data: {k: v}}
- {apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: default, uid: u5, resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z", labels: {copy: "yes"}}, type: Opaque, data: {k: dg==}}
- {apiVersion: v1, kind: Secret, metadata: {name: other, namespace: default, uid: u6, resourceVersion: "1"}, type: Opaque, data: {k: dg==}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: dev, uid: u7, labels: {app: web}}, spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}, {name: d, image: j}]}}}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: dev, uid: u7}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: w, namespace: dev, uid: u8}, spec: {name: text, size: 2, list: [a, b], of: {a: 1.5}}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: w, namespace: dev, uid: u8}, spec: {name: 5, size: big, list: a, of: null}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: w, namespace: dev, uid: u8}, spec: {name: null}}
- {apiVersion: x.io/v1, kind: Widget, metadata: {name: w, namespace: dev, uid: u8}}
`

const (
	namespaces = "match: {any: [{resources: {kinds: [Namespace]}}]}\n"
	configMaps = "match: {any: [{resources: {kinds: [ConfigMap]}}]}\n"
)

// generateRule is a policy with a generate rule.
func generateRule(kind, rule string) string {
	text := "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p, namespace: dev}\nspec:\n  rules:\n  - name: r\n    " + strings.ReplaceAll(rule, "\n", "\n    ")
	return strings.NewReplacer("\n    - ", "\n  - ", "\n    @", "\n  ").Replace(text)
}

// A GeneratingPolicy makes what the generate rule does of which it is made, and deletes it when that does.
func TestGenerations(t *testing.T) {
	const widgets = "match: {any: [{resources: {kinds: [x.io/v1/Widget]}}]}\n"
	const quota = "apiVersion: v1, kind: ResourceQuota, name: quota, namespace: '{{request.object.metadata.name}}', data: {spec: {hard: {pods: '4'}}}"
	for _, tt := range []struct {
		name, kind, rule string
		made, deleted    int
	}{
		{"data", "ClusterPolicy", namespaces + "generate: {" + quota + "}", 8, 0},
		{"synchronized", "ClusterPolicy", namespaces + "generate: {synchronize: true, " + quota + "}", 8, 3},
		{"what may be missing", "ClusterPolicy", namespaces + "generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: 'of-{{request.object.metadata.labels.team}}', namespace: '{{request.object.metadata.name}}', data: {data: {team: '{{request.object.metadata.labels.team}}'}}}", 5, 3},
		{"a default", "ClusterPolicy", namespaces + "generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: team, namespace: '{{request.object.metadata.name}}', data: {data: {team: \"{{request.object.metadata.labels.team || 'none'}}\", fixed: x, multi: \"a\\nb: 'c'\"}}}", 8, 3},
		{"a precondition", "ClusterPolicy", namespaces + "preconditions: {all: [{key: \"{{request.object.metadata.labels.team || ''}}\", operator: Equals, value: web}]}\ngenerate: {synchronize: true, " + quota + "}", 3, 4},
		{"a precondition that errs", "ClusterPolicy", namespaces + "preconditions: {any: [{key: '{{request.object.metadata.labels.team}}', operator: NotEquals, value: web}]}\ngenerate: {synchronize: true, " + quota + "}", 2, 3},
		{"labels", "ClusterPolicy", "match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {team: 'w*'}}}}]}\ngenerate: {synchronize: true, " + quota + "}", 3, 2},
		{"excluded", "ClusterPolicy", namespaces + "exclude: {any: [{resources: {names: [prod, kube-*]}}, {subjects: [{kind: User, name: bob}]}]}\ngenerate: {" + quota + "}", 6, 0},
		{"by user", "ClusterPolicy", "match: {all: [{resources: {kinds: [Namespace]}, subjects: [{kind: Group, name: devs}]}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: made, namespace: '{{request.name}}', data: {data: {by: '{{request.userInfo.username}}'}}}", 8, 0},
		{"labels of the namespace", "ClusterPolicy", "match: {any: [{resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {tier: dev}}}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: made, namespace: '{{request.namespace}}', data: {data: {count: '{{request.object.data.count}}'}}}", 4, 0},
		{"creation", "ClusterPolicy", "match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}\ngenerate: {" + quota + "}", 3, 0},
		{"operations", "ClusterPolicy", "match: {any: [{resources: {kinds: [Namespace], operations: [CREATE, UPDATE]}}]}\ngenerate: {synchronize: true, " + quota + "}", 8, 0},
		{"deletion", "ClusterPolicy", "match: {any: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: '{{request.object.metadata.name}}-gone', namespace: '{{request.oldObject.metadata.namespace}}', data: {data: {count: '{{request.object.data.count}}', namespaces: \"{{request.oldObject.data.namespaces || ''}}\"}}}", 1, 0},
		{"deletion behind conditions", "ClusterPolicy", "match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE, DELETE], names: ['l*']}}]}\npreconditions: {all: [{key: \"{{request.object.data.count || ''}}\", operator: Equals, value: '5'}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: gone, namespace: '{{request.object.metadata.namespace}}', data: {data: {op: '{{request.operation}}'}}}", 2, 0},
		{"all of a map", "ClusterPolicy", namespaces + "generate: {apiVersion: v1, kind: ConfigMap, name: all, namespace: '{{request.object.metadata.name}}', data: {data: '{{request.object.metadata.labels}}'}}", 5, 0},
		{"labels that are numbers", "ClusterPolicy", namespaces + "generate: {apiVersion: v1, kind: ConfigMap, name: all, namespace: '{{request.object.metadata.name}}', data: {metadata: {namespace: x, name: y, labels: {a: 1, b: true, c: '{{request.object.metadata.name}}'}, annotations: {d: 1.5}}, data: {a: b}, immutable: true}}", 8, 0},
		{"numbers of the object", "ClusterPolicy", "match: {any: [{resources: {kinds: [Deployment]}}]}\ngenerate: {synchronize: true, apiVersion: policy/v1, kind: PodDisruptionBudget, name: '{{request.object.metadata.name}}', namespace: '{{request.object.metadata.namespace}}', data: {metadata: {labels: {replicas: '{{request.object.spec.replicas}}'}}, spec: {minAvailable: '{{request.object.spec.replicas}}', maxUnavailable: null, selector: {matchLabels: '{{request.object.metadata.labels}}'}, list: [1, a, 1.5, null, {}, []]}}}", 3, 2},
		{"a name of any type", "ClusterPolicy", widgets + "generate: {apiVersion: v1, kind: ConfigMap, name: '{{request.object.spec.name}}', namespace: '{{request.object.metadata.namespace}}', data: {data: {a: b}}}", 5, 0},
		{"values of any type", "ClusterPolicy", widgets + "generate: {apiVersion: x.io/v1, kind: Gadget, name: g, namespace: '{{request.object.metadata.namespace}}', data: {spec: {of: '{{request.object.spec.of}}', list: '{{request.object.spec.list}}', size: '{{request.object.spec.size}}'}}}", 10, 0},
		{"of the cluster", "ClusterPolicy", namespaces + "generate: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: 'see-{{request.object.metadata.name}}', data: {rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]}}", 8, 0},
		{"nothing but a name", "ClusterPolicy", namespaces + "generate: {apiVersion: v1, kind: ServiceAccount, name: robot, namespace: '{{request.object.metadata.name}}'}", 8, 0},
		{"of a namespace", "Policy", configMaps + "generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: made, namespace: dev, data: {data: {count: \"{{request.object.data.count || '0'}}\"}}}", 12, 3},
		{"a copy", "ClusterPolicy", namespaces + "generate: {synchronize: true, apiVersion: v1, kind: Secret, name: pull, namespace: '{{request.object.metadata.name}}', clone: {name: pull, namespace: default}}", 8, 3},
		{"a copy of nothing", "ClusterPolicy", namespaces + "generate: {synchronize: true, apiVersion: v1, kind: Secret, name: none, namespace: '{{request.object.metadata.name}}', clone: {name: none, namespace: default}}", 0, 3},
		{"a copy of what is called otherwise", "ClusterPolicy", configMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: '{{request.object.metadata.name}}', namespace: default, clone: {name: '{{request.object.metadata.name}}', namespace: default}}", 0, 0},
		{"a copy in a namespace", "ClusterPolicy", configMaps + "generate: {apiVersion: v1, kind: ConfigMap, name: template, namespace: '{{request.namespace}}', clone: {name: template, namespace: default}}", 12, 0},
		{"copies", "ClusterPolicy", namespaces + "generate: {synchronize: true, namespace: '{{request.object.metadata.name}}', cloneList: {namespace: default, kinds: [v1/Secret, v1/ConfigMap], selector: {matchLabels: {copy: 'yes'}}}}", 16, 3},
		{"copies of all", "ClusterPolicy", namespaces + "generate: {namespace: '{{request.object.metadata.name}}', cloneList: {namespace: default, kinds: [v1/Secret]}}", 16, 0},
		{"copies of a kind that cannot be listed", "ClusterPolicy", namespaces + "generate: {namespace: '{{request.object.metadata.name}}', cloneList: {namespace: default, kinds: [v1/Secret, y.io/v1/Thing]}}", 16, 0},
		{"a rule behind a copy of nothing", "ClusterPolicy", namespaces + "generate: {apiVersion: v1, kind: Secret, name: none, namespace: '{{request.object.metadata.name}}', clone: {name: none, namespace: default}}\n- name: s\n" + namespaces + "generate: {" + quota + "}", 8, 0},
		{"each of a list", "ClusterPolicy", configMaps + "generate: {synchronize: true, foreach: [{list: \"request.object.data.namespaces | split(@, ',')\", apiVersion: v1, kind: ConfigMap, name: 'in-{{element}}', namespace: '{{element}}', data: {data: {count: '{{request.object.data.count}}'}}}]}", 8, 4},
		{"some of a list", "ClusterPolicy", configMaps + "generate: {synchronize: true, foreach: [{list: \"request.object.data.namespaces | split(@, ',')\", context: [{name: ns, variable: {jmesPath: element}}], preconditions: {any: [{key: '{{ns}}', operator: AnyIn, value: [dev]}]}, apiVersion: v1, kind: Secret, name: pull, namespace: '{{ns}}', clone: {name: pull, namespace: default}}]}", 4, 4},
		{"each of a list with its index", "ClusterPolicy", configMaps + "generate: {synchronize: true, foreach: [{list: \"request.object.data.namespaces | split(@, ',')\", preconditions: {any: [{key: '{{element}}', operator: NotEquals, value: none}]}, apiVersion: v1, kind: ConfigMap, name: 'in-{{elementIndex}}', namespace: '{{element}}', data: {metadata: {labels: {index: '{{elementIndex}}'}}, data: {of: '{{element}}'}}}]}", 8, 4},
		{"without requests", "ClusterPolicy", namespaces + "generate: {generateExisting: true, " + quota + "}\n@admission: false", 0, 0},
		{"each container", "ClusterPolicy", "match: {any: [{resources: {kinds: [Deployment]}}]}\ngenerate: {foreach: [{list: request.object.spec.template.spec.containers, apiVersion: v1, kind: ConfigMap, name: '{{element.name}}-{{request.object.metadata.name}}', namespace: '{{request.namespace}}', data: {data: {image: '{{element.image}}'}}}]}", 9, 0},
		{"each of what is called like the generator", "ClusterPolicy", configMaps + "generate: {foreach: [{list: \"request.object.data.generators | split(@, ',')\", apiVersion: v1, kind: ConfigMap, name: 'of-{{element}}', namespace: x, data: {data: {a: b}}}]}", 8, 0},
		{"a copy for each of what is called like the library", "ClusterPolicy", configMaps + "generate: {foreach: [{list: \"request.object.data.resources | split(@, ',')\", apiVersion: v1, kind: Secret, name: pull, namespace: '{{element}}', clone: {name: pull, namespace: default}}]}", 8, 0},
		{"a variable", "ClusterPolicy", namespaces + "context: [{name: team, variable: {jmesPath: request.object.metadata.labels.team, default: nobody}}]\npreconditions: {all: [{key: '{{team}}', operator: NotEquals, value: ''}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: team, namespace: '{{request.object.metadata.name}}', data: {data: {team: '{{team}}', again: '{{team}}!'}}}", 6, 0},
		{"a ConfigMap", "ClusterPolicy", namespaces + "context: [{name: t, configMap: {name: template, namespace: default}}]\ngenerate: {apiVersion: v1, kind: ConfigMap, name: made, namespace: '{{request.object.metadata.name}}', data: {data: {k: '{{t.data.k}}'}}}", 8, 0},
		{"several rules", "ClusterPolicy", namespaces + "generate: {synchronize: true, " + quota + "}\n- name: s\n" + namespaces + "generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: team, namespace: '{{request.object.metadata.name}}', data: {data: {team: '{{request.object.metadata.labels.team}}'}}}\n- name: t\n" + namespaces + "generate: {synchronize: true, apiVersion: v1, kind: ServiceAccount, name: robot, namespace: '{{request.object.metadata.name}}'}", 21, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var objects []map[string]any
			if err := yaml.Unmarshal([]byte(generatingObjects), &objects); err != nil {
				t.Fatal(err)
			}
			schemas := generatingSchemas(t)
			c := regenerated(t, []byte(generateRule(tt.kind, tt.rule)), schemas)
			if len(c.made) == 0 {
				t.Fatalf("%v\n%v", c.compiled.Diagnostics, c.Left)
			}
			made, deleted, more := c.compare(t, judge.World(objects, schemas), triggeringRequests(schemas, objects))
			if made != tt.made || deleted != tt.deleted {
				t.Errorf("%d objects are made and %d times they are deleted, want %d and %d", made, deleted, tt.made, tt.deleted)
			}
			if (tt.name == "operations") != (more > 0) {
				t.Errorf("the policy deletes %d times where the rule does not", more)
			}
		})
	}
}

// What a GeneratingPolicy cannot say exactly is left, and the reason says what somebody can do.
func TestGenerationsLeft(t *testing.T) {
	const quota = "apiVersion: v1, kind: ResourceQuota, name: quota, namespace: x, data: {spec: {hard: {pods: '4'}}}"
	for _, tt := range []struct {
		name, rule string
		code       diag.Code
		says       string
	}{
		{"only creation", "match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}\ngenerate: {synchronize: true, " + quota + "}", diag.NoKyvernoForm, "add UPDATE"},
		{"by operation", namespaces + "generate: {synchronize: true, apiVersion: v1, kind: ConfigMap, name: a, namespace: x, data: {data: {by: '{{request.operation}}'}}}", diag.NoKyvernoForm, "synchronize: false"},
		{"existing by operation", "match: {any: [{resources: {kinds: [Namespace], operations: [CREATE, UPDATE]}}]}\ngenerate: {generateExisting: true, " + quota + "}", diag.NoKyvernoForm, "generateExisting"},
		{"existing by user", "match: {any: [{resources: {kinds: [Namespace]}, subjects: [{kind: User, name: a}]}]}\ngenerate: {generateExisting: true, " + quota + "}", diag.NoKyvernoForm, "generateExisting"},
		{"existing by operation in a precondition", namespaces + "preconditions: {all: [{key: \"{{request.operation || 'BACKGROUND'}}\", operator: Equals, value: CREATE}]}\ngenerate: {generateExisting: true, " + quota + "}", diag.NoKyvernoForm, "generateExisting"},
		{"existing by the name of the request", namespaces + "generate: {generateExisting: true, apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.name}}', data: {data: {a: b}}}", diag.NoKyvernoForm, "generateExisting"},
		{"existing namespaces by the namespace of the request", namespaces + "generate: {generateExisting: true, apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.namespace}}', data: {data: {a: b}}}", diag.NoKyvernoForm, "generateExisting"},
		{"a list of objects", namespaces + "generate: {apiVersion: v1, kind: List, name: a, namespace: x, data: {items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}}", diag.NoKyvernoForm, "items"},
		{"another name", namespaces + "generate: {apiVersion: v1, kind: Secret, name: a, namespace: x, clone: {name: b, namespace: z}}", diag.NoKyvernoForm, "give the copy that name"},
		{"expressions", namespaces + "generate: {namespace: x, cloneList: {namespace: z, kinds: [v1/Secret], selector: {matchExpressions: [{key: a, operator: Exists}]}}}", diag.NoKyvernoForm, "matchLabels"},
		{"a variable in a key", namespaces + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: x, data: {data: {'{{request.name}}': b}}}", diag.NoExpression, "in a key"},
		{"a variable in the kind of the data", namespaces + "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: x, data: {kind: '{{request.object.metadata.labels.team}}', data: {a: b}}}", diag.NoExpression, "in the kind"},
		{"a part of any type", "match: {any: [{resources: {kinds: [x.io/v1/Widget]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: 'a-{{request.object.spec.name}}', namespace: x, data: {data: {a: b}}}", diag.NoExpression, ""},
		{"a label of any type", "match: {any: [{resources: {kinds: [x.io/v1/Widget]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: x, data: {metadata: {labels: {a: '{{request.object.spec.name}}'}}}}", diag.NoExpression, "may be no text"},
		{"a name that is a number", "match: {any: [{resources: {kinds: [Deployment]}}]}\ngenerate: {apiVersion: v1, kind: ConfigMap, name: '{{request.object.spec.replicas}}', namespace: x, data: {data: {a: b}}}", diag.NoExpression, "no text"},
		{"a random name", namespaces + "generate: {apiVersion: v1, kind: ConfigMap, name: \"a-{{ random('[a-z]{3}') }}\", namespace: x, data: {data: {a: b}}}", diag.NoFunction, "random"},
		{"an API call", namespaces + "context: [{name: pods, apiCall: {urlPath: /api/v1/pods, jmesPath: 'items[0].metadata.name'}}]\ngenerate: {apiVersion: v1, kind: ConfigMap, name: '{{pods}}', namespace: x, data: {data: {a: b}}}", diag.OutsideData, "pods"},
		{"a number that is too large", namespaces + "generate: {apiVersion: x.io/v1, kind: Gadget, name: a, namespace: x, data: {spec: {n: 9007199254740993}}}", diag.NoExpression, "rounds"},
		{"one of several rules", namespaces + "generate: {" + quota + "}\n- name: s\n" + namespaces + "generate: {" + quota + "}\n@applyRules: One", diag.ApplyOne, ""},
		{"two lists of which one may err", configMaps + "generate: {foreach: [{list: \"request.object.data.a | split(@, ',')\", apiVersion: v1, kind: ConfigMap, name: '{{element}}', namespace: x, data: {data: {a: b}}}, {list: \"request.object.data.b | split(@, ',')\", apiVersion: v1, kind: ConfigMap, name: '{{element}}', namespace: x, data: {data: {a: b}}}]}", diag.NoExpression, "behind one that may be an error"},
		{"never", "match: {any: [{resources: {kinds: [Namespace], operations: [CONNECT]}}]}\ngenerate: {" + quota + "}", diag.NoKyvernoForm, "no request triggers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := regenerated(t, []byte(generateRule("ClusterPolicy", tt.rule)), generatingSchemas(t))
			r := c.compiled.Rules[0]
			if len(r.Generating) > 0 || len(r.Codes) == 0 || r.Codes[0] != tt.code || !strings.Contains(r.Reason, tt.says) {
				t.Errorf("%v: %s\n%v", r.Codes, r.Reason, c.compiled.Diagnostics)
			}
		})
	}
}
