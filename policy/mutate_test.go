package policy_test

import (
	"fmt"
	"testing"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

func TestMutateIsTyped(t *testing.T) {
	p := parseGood(t, withRule(`match: {any: [{resources: {kinds: [ConfigMap]}}]}
skipBackgroundRequests: false
mutate:
  mutateExistingOnPolicyUpdate: true
  targets:
  - {apiVersion: v1, kind: Secret, name: s, namespace: "{{ request.namespace }}", selector: {matchLabels: {a: b}}}
  foreach:
  - list: request.object.data
    order: Descending
    context: [{name: v, variable: {value: 1}}]
    preconditions: {all: [{key: a, operator: Equals, value: a}]}
    foreach:
    - {list: element, patchesJson6902: "[]"}
`))
	r := p.Rules[0]
	m := r.Mutate
	if r.SkipBackground || !m.Existing || len(m.Targets) != 1 || m.OnPolicyUpdate == nil || !*m.OnPolicyUpdate {
		t.Fatalf("%+v", m)
	}
	target := m.Targets[0]
	if target.Kind.Value != "Secret" || target.Namespace.Value != "{{ request.namespace }}" || target.Namespace.Pos.Line == 0 || len(target.Selector.MatchLabels) != 1 {
		t.Errorf("%+v", target)
	}
	f := m.ForEach[0]
	if f.Order != policy.Descending || len(f.Context) != 1 || f.Preconditions == nil || f.ForEach[0].JSON.Value != "[]" || f.ForEach[0].Order != "" {
		t.Errorf("%+v", f)
	}
	if e := parseGood(t, withRule("match: {any: [{resources: {kinds: [ConfigMap]}}]}\nmutate: {targets: [], patchStrategicMerge: {a: b}}\n")).Rules[0].Mutate; !e.Existing {
		t.Error("an empty list of targets is one")
	}
}

func TestGenerateIsTyped(t *testing.T) {
	p := parseGood(t, withRule(`match: {any: [{resources: {kinds: [Namespace]}}]}
generate:
  generateExisting: true
  synchronize: true
  orphanDownstreamOnPolicyDelete: true
  foreach:
  - {list: request.object.x, apiVersion: v1, kind: Secret, name: a, namespace: here, clone: {name: b, namespace: there}}
  - list: request.object.x
    namespace: here
    cloneList: {kinds: [v1/Secret], namespace: there, selector: {matchLabels: {a: b}}}
`))
	g := p.Rules[0].Generate
	if !g.Synchronize || g.Orphan == nil || !*g.Orphan || g.Existing == nil || !*g.Existing || g.Kind.Value != "" || len(g.ForEach) != 2 {
		t.Fatalf("%+v", g)
	}
	one, two := g.ForEach[0], g.ForEach[1]
	if one.Clone.Namespace.Value != "there" || one.Kind.Value != "Secret" || two.CloneList.Kinds[0].Value != "v1/Secret" || two.CloneList.Selector == nil {
		t.Errorf("%+v %+v", one, two)
	}
}

// A foreach within a foreach is wrapped for controllers as any other.
func TestExpandNestedForEach(t *testing.T) {
	p := parseGood(t, withRule(`match: {any: [{resources: {kinds: [Pod]}}]}
mutate:
  foreach:
  - list: request.object.spec.containers
    order: Ascending
    foreach:
    - {list: element.env, patchStrategicMerge: {spec: {x: 1}}}
`))
	rules := p.RulesFor("CronJob")
	f := rules[len(rules)-1].Mutate.ForEach[0]
	if f.Order != "" || f.List.Value != "request.object.spec.jobTemplate.spec.template.spec.containers" {
		t.Errorf("%+v", f)
	}
	got := f.ForEach[0].Merge.Get("spec").Get("jobTemplate").Get("spec").Get("template").Get("spec").Get("x")
	if got == nil || got.Int != 1 {
		t.Errorf("%+v", f.ForEach[0].Merge)
	}
}

// A target with nothing to make it of is the bare object, and a note says so.
func TestGenerateOfNothing(t *testing.T) {
	f, ds := policy.Parse("p.yaml", []byte(withRule(`match: {any: [{resources: {kinds: [Namespace]}}]}
generate: {apiVersion: v1, kind: ServiceAccount, name: a, namespace: here}
`)))
	if len(f.Policies) != 1 || f.Policies[0].Rules[0].Invalid {
		t.Fatal(ds)
	}
	if len(ds) != 1 || ds[0].Severity != diag.Note || ds[0].Code != diag.Missing {
		t.Errorf("%v", ds)
	}
}

func TestCheckScopes(t *testing.T) {
	p := parseGood(t, withRule(`match: {any: [{resources: {kinds: [ConfigMap]}}]}
generate:
  foreach:
  - {list: request.object.a, apiVersion: v1, kind: Secret, name: a, data: {}}
  - {list: request.object.a, apiVersion: v1, kind: Namespace, name: a, namespace: x, data: {}}
  - {list: request.object.a, apiVersion: v1, kind: Unknown, name: a, data: {}}
  - {list: request.object.a, apiVersion: v1, kind: Secret, name: a, namespace: x, data: {}}
  - {list: request.object.a, namespace: x, cloneList: {kinds: [v1/Secret, v1/Namespace, Secret], namespace: here}}
  - {list: request.object.a, cloneList: {kinds: [v1/Secret]}}
`))
	ds := policy.CheckScopes(p, func(_, kind string) (bool, bool) { return kind == "Secret", kind != "Unknown" })
	var lines []int
	for _, d := range ds {
		lines = append(lines, d.Line)
	}
	if fmt.Sprint(lines) != "[10 11 14 14 15]" {
		t.Errorf("%v: %v", lines, ds)
	}
}
