package celpolicy_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/celpolicy"
	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	kinds "github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
)

// cleaned converts the cleanup policies of a text.
func cleaned(t *testing.T, text string) []celpolicy.Cleaned {
	t.Helper()
	schemas, err := kinds.Builtin(cel.Latest.String())
	if err != nil {
		t.Fatal(err)
	}
	return cleanedBy(t, text, schemas.WithPublished())
}

func cleanedBy(t *testing.T, text string, schemas *kinds.Set) []celpolicy.Cleaned {
	t.Helper()
	file, found := policy.Parse("policy.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	return celpolicy.Cleanups(file.Cleanups, compile.Options{
		Translate: translate.Options{Release: cel.Latest, Schemas: schemas, Guard: translate.GuardNever},
		Emit:      vap.EmitOptions{ExcludeNamespaces: []string{}},
	}, celpolicy.Options{Version: "v1"})
}

func cleanupPolicy(kind, spec string) string {
	return "apiVersion: kyverno.io/v2\nkind: " + kind + "\nmetadata: {name: old, namespace: team}\nspec:\n  schedule: '0 1 * * *'\n  " + strings.ReplaceAll(spec, "\n", "\n  ")
}

// resources are those of the objects below.
func resourceOf(o map[string]any) schema.GroupVersionResource {
	group, version, found := strings.Cut(o["apiVersion"].(string), "/")
	if !found {
		group, version = "", group
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: strings.ToLower(o["kind"].(string)) + "s"}
}

// lying are objects as a cluster has them.
func lying(t *testing.T) (out []map[string]any) {
	t.Helper()
	const text = `
- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: team, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {containers: [{name: c, image: "reg.example.com/app:1"}]}, status: {phase: Succeeded, startTime: "2026-01-01T00:00:00Z"}}
- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: team, creationTimestamp: "2026-01-01T01:30:00Z", labels: {keep: "yes"}}, spec: {containers: [{name: c, image: "app:1"}]}, status: {phase: Running, startTime: 3600}}
- {apiVersion: v1, kind: Pod, metadata: {name: ab, namespace: other, creationTimestamp: "2026-01-01T01:00:00Z", labels: {keep: "no"}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: u}]}, spec: {containers: [{name: c, image: "app:1"}, {name: d, image: "reg.example.com/d"}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: star, namespace: other, creationTimestamp: "2026-01-01T01:00:00Z", labels: {keep: "*"}, annotations: {left: "1"}}, spec: {containers: [{name: c, image: "app:1"}]}, status: {phase: Failed, startTime: null}}
- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: team, creationTimestamp: "2025-01-01T00:00:00Z"}, spec: {replicas: 0, template: {spec: {containers: [{name: c, image: i}]}}}}
- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: s, namespace: other, creationTimestamp: "2025-01-01T00:00:00Z"}, spec: {replicas: 2, template: {spec: {containers: [{name: c, image: i}]}}}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: team, creationTimestamp: "2025-01-01T00:00:00Z", labels: {keep: "no"}}, spec: {replicas: 0, template: {spec: {containers: [{name: c, image: i}]}}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: team, creationTimestamp: "2025-01-01T00:00:00Z", labels: {tier: dev, keep: "no"}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: other, creationTimestamp: "2025-01-01T00:00:00Z"}}
- {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: team, creationTimestamp: "2025-01-01T00:00:00Z", labels: {keep: "no"}}}
`
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A DeletingPolicy deletes what the cleanup policy does of which it is made.
func TestCleanups(t *testing.T) {
	for _, tt := range []struct{ name, kind, spec string }{
		{"no conditions", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}"},
		{"of a namespace", "CleanupPolicy", "match: {any: [{resources: {kinds: [Pod, Deployment]}}]}"},
		{"a name", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod], names: ['a*']}}]}"},
		{"namespaces", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod], namespaces: ['te*']}}]}"},
		{"a namespace that is left out", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nexclude: {any: [{resources: {namespaces: [team]}}]}"},
		{"labels", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {keep: 'no'}}}}]}"},
		{"labels of the namespace", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {tier: dev}}}}]}"},
		{"all that has labels", "ClusterCleanupPolicy", "match: {all: [{resources: {kinds: [Pod, ClusterRole]}}, {resources: {kinds: [Pod, ClusterRole], selector: {matchLabels: {keep: 'no'}}}}]}"},
		{"excluded labels", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nexclude: {any: [{resources: {selector: {matchExpressions: [{key: keep, operator: Exists}]}}}]}"},
		{"annotations", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod], annotations: {left: '*'}}}]}"},
		{"of the cluster", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [ClusterRole]}}]}"},
		{"Namespaces", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Namespace], selector: {matchLabels: {keep: 'no'}}}}]}"},
		{"Namespaces by name", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Namespace], namespaces: ['t*']}}]}"},
		{"Namespaces and Pods of one", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Namespace, Pod], namespaces: [team]}}]}"},
		{"several kinds", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod], names: ['s*']}}, {resources: {kinds: [ReplicaSet], namespaces: [team]}}]}\nexclude: {any: [{resources: {kinds: [Pod], names: [ab]}}]}"},
		{"not a pattern", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ target.metadata.labels.keep || '' }}\", operator: AnyNotIn, value: ['n?', yes]}]}"},
		{"what may be missing", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: '{{ target.status.phase }}', operator: AnyIn, value: [Succeeded, Failed]}]}"},
		{"none instead", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ target.metadata.labels.keep || '' }}\", operator: NotEquals, value: 'yes'}]}"},
		{"no pattern", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {any: [{key: \"{{ target.metadata.labels.keep || '' }}\", operator: AnyIn, value: ['n?', yes]}]}"},
		{"numbers", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [ReplicaSet, Deployment]}}]}\nconditions: {all: [{key: '{{ target.spec.replicas }}', operator: Equals, value: 0}]}"},
		{"owners", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ target.metadata.ownerReferences[] || `[]` }}\", operator: Equals, value: []}]}"},
		{"a namespace in a condition", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: '{{ request.namespace }}', operator: Equals, value: team}]}"},
		{"images", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: '{{ images.containers.*.registry }}', operator: AnyIn, value: [reg.example.com]}]}"},
		{"a variable", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\ncontext: [{name: phase, variable: {jmesPath: target.status.phase, default: Gone}}]\nconditions: {any: [{key: '{{ phase }}', operator: Equals, value: Gone}, {key: '{{ phase }}', operator: Equals, value: Failed}]}"},
		{"age", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ time_since('', '{{ target.metadata.creationTimestamp }}', '') }}\", operator: GreaterThan, value: 1h}]}"},
		{"at least as old", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {any: [{key: \"{{ time_since('', target.metadata.creationTimestamp, '') }}\", operator: GreaterThanOrEquals, value: 1h0m}]}"},
		{"time between", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ time_diff('{{target.metadata.creationTimestamp}}','{{ time_now_utc() }}') }}\", operator: LessThan, value: 0h31m0s}]}"},
		{"until now", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ time_since('', target.metadata.creationTimestamp, time_now()) }}\", operator: LessThanOrEquals, value: 60m}]}"},
		{"a number is no time", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: \"{{ time_since('', '{{ target.status.startTime }}', '') }}\", operator: GreaterThan, value: 1h}]}"},
		{"age and phase", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {all: [{key: '{{ target.status.phase }}', operator: NotEquals, value: Running}, {key: \"{{time_since('','{{target.status.startTime}}','')}}\", operator: DurationGreaterThan, value: 1h}]}"},
		{"age or phase", "ClusterCleanupPolicy", "match: {any: [{resources: {kinds: [Pod]}}]}\nconditions: {any: [{key: '{{ target.metadata.name }}', operator: Equals, value: b}, {key: '{{ target.status.phase }}', operator: Equals, value: Failed}]}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := cleanupPolicy(tt.kind, tt.spec)
			made := cleaned(t, text)
			if len(made) != 1 || made[0].Left != nil || len(made[0].Objects) == 0 {
				t.Fatalf("%+v", made)
			}
			all := lying(t)
			world := &interp.Offline{Time: time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC), Objects: all}
			before := interp.NewCleanup(made[0].Of, nil, world, interp.Limits{})
			after, written := read(t, made[0], world)
			deleted := 0
			for _, o := range all {
				want, wrong := before.Deletes(t.Context(), resourceOf(o), o)
				got := false
				var wrong2 error
				for _, one := range after {
					deletes, err := one.Deletes(t.Context(), resourceOf(o), o)
					got = got || deletes
					if err != nil {
						wrong2 = err
					}
				}
				if got != want {
					t.Errorf("%v %v: got %t, want %t (%v, %v)\n%s", o["kind"], o["metadata"], got, want, wrong2, wrong, written)
				}
				if wrong2 != nil && wrong == nil {
					t.Errorf("%v %v: there is an error: %v\n%s", o["kind"], o["metadata"], wrong2, written)
				}
				if want {
					deleted++
				}
			}
			if deleted == 0 || deleted == len(all) {
				t.Errorf("%d of %d objects are deleted", deleted, len(all))
			}
		})
	}
}

// read reads what was made of a cleanup policy.
func read(t *testing.T, made celpolicy.Cleaned, world interp.World) (out []*interp.Cleanup, written string) {
	t.Helper()
	var objects []any
	for _, o := range made.Objects {
		objects = append(objects, o)
	}
	text, err := vap.Marshal(objects...)
	if err != nil {
		t.Fatal(err)
	}
	file, found := policy.Parse("made.yaml", text)
	if found.HasErrors() {
		t.Fatalf("%v\n%s", found, text)
	}
	for _, c := range file.Cleanups {
		one := interp.NewCleanup(c, nil, world, interp.Limits{})
		if err := one.Broken(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		out = append(out, one)
	}
	return out, string(text)
}

// What has no form says why, and deletes nothing.
func TestCleanupsLeft(t *testing.T) {
	const pods = "match: {any: [{resources: {kinds: [Pod]}}]}\n"
	for _, tt := range []struct {
		name, spec string
		code       diag.Code
		says       string
	}{
		{"any kind", "match: {any: [{resources: {kinds: ['*']}}]}", diag.NoKyvernoForm, "the kind *"},
		{"a kind with a wildcard", "match: {any: [{resources: {kinds: ['Po*']}}]}", diag.NoKyvernoForm, "the kind Po*"},
		{"a subresource", "match: {any: [{resources: {kinds: [Pod/status]}}]}", diag.NoKyvernoForm, "the kind Pod/status"},
		{"any group", "match: {any: [{resources: {kinds: ['*/Pod']}}]}", diag.NoKyvernoForm, "the kind */Pod"},
		{"two versions", "match: {any: [{resources: {kinds: [HorizontalPodAutoscaler]}}]}\nconditions: {all: [{key: \"{{ target.spec.metrics || `[]` | length(@) }}\", operator: Equals, value: 0}]}", diag.NoKyvernoForm, "autoscaling/v1, autoscaling/v2"},
		{"two groups", "match: {any: [{resources: {kinds: [Event]}}]}", diag.NoKyvernoForm, "v1, events.k8s.io/v1"},
		{"an unknown group", "match: {any: [{resources: {kinds: [Unheard]}}]}", diag.NoKyvernoForm, "of an unknown group"},
		{"equal otherwise", pods + "conditions: {all: [{key: '{{ target.metadata.labels.a }}', operator: NotEquals, value: '{{ target.metadata.annotations.b }}'}]}", diag.TextEquality, ""},
		{"letters beyond ASCII", pods + "conditions: {all: [{key: '{{ to_lower(target.metadata.annotations.keep) }}', operator: NotEquals, value: émile}]}", diag.ASCIICase, ""},
		{"a field of target", pods + "context: [{name: target.metadata.labels, variable: {value: {a: b}}}]\nconditions: {all: [{key: '{{ target.metadata.labels.a }}', operator: Equals, value: b}]}", diag.NoKyvernoForm, "context entry"},
		{"operations", "match: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}", diag.NoKyvernoForm, "operations"},
		{"a request's object", pods + "conditions: {all: [{key: '{{ request.object.metadata.name }}', operator: Equals, value: a}]}", diag.NoKyvernoForm, "what a request would say"},
		{"who asks", pods + "conditions: {all: [{key: '{{ serviceAccountName }}', operator: Equals, value: a}]}", diag.NoKyvernoForm, "what a request would say"},
		{"another target", pods + "context: [{name: target, variable: {value: {a: b}}}]\nconditions: {all: [{key: '{{ target.a }}', operator: Equals, value: b}]}", diag.NoKyvernoForm, "context entry"},
		{"a selector of Namespaces", "match: {any: [{resources: {kinds: [Namespace], namespaceSelector: {matchLabels: {tier: dev}}}}]}", diag.NoKyvernoForm, "deletes nothing"},
		{"an answer", pods + "context: [{name: all, apiCall: {urlPath: /api/v1/nodes}}]\nconditions: {all: [{key: '{{ all.items | length(@) }}', operator: GreaterThan, value: 1}]}", diag.OutsideData, "API call"},
		{"age or name", pods + "conditions: {any: [{key: '{{ target.metadata.name }}', operator: Equals, value: b}, {key: \"{{ time_since('', '{{ target.metadata.creationTimestamp }}', '') }}\", operator: GreaterThan, value: 1h}]}", diag.NoFunction, "time_since"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			made := cleaned(t, cleanupPolicy("ClusterCleanupPolicy", tt.spec))
			if len(made) != 1 || made[0].Left == nil || len(made[0].Objects) > 0 {
				t.Fatalf("it is not left: %+v", made)
			}
			if why := made[0].Left; why.Code != tt.code || !strings.Contains(why.Message, tt.says) {
				t.Errorf("got %v", why)
			}
		})
	}
}

// What is said of when and how goes to the same field, and nothing is said that these kinds lack.
func TestCleanupFields(t *testing.T) {
	made := cleaned(t, cleanupPolicy("CleanupPolicy", "deletionPropagationPolicy: Foreground\nmatch: {any: [{resources: {kinds: [Pod]}}]}")+
		"\n---\napiVersion: policies.kyverno.io/v1\nkind: NamespacedDeletingPolicy\nmetadata: {name: old, namespace: team}\nspec: {schedule: '@daily', matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: ['*']}]}}\n")
	if len(made) != 1 || len(made[0].Objects) != 1 {
		t.Fatalf("%+v", made)
	}
	o := made[0].Objects[0]
	if o.Kind != "NamespacedDeletingPolicy" || o.Namespace != "team" || o.Name != "old-2" {
		t.Errorf("got %s %s/%s", o.Kind, o.Namespace, o.Name)
	}
	s := o.Spec
	if s.Schedule != "0 1 * * *" || s.Propagation != "Foreground" || s.FailurePolicy != "" || s.Autogen != nil || s.MatchConstraints.NamespaceSelector != nil {
		t.Errorf("got %+v", s)
	}
	if rules := s.MatchConstraints.ResourceRules; len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"pods"}) {
		t.Errorf("got %+v", rules)
	}
}
