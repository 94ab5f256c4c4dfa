package suite

import (
	"context"
	"strings"
	"testing"

	"github.com/kvap/kvap/internal/textdiff"
)

const mutateFirst = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: first}
spec:
  rules:
  - name: label
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): red}}}}
  - name: again
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate: {patchStrategicMerge: {metadata: {annotations: {team: "{{ request.object.metadata.labels.team }}"}}}}
  - name: existing
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: other}]
      patchStrategicMerge: {metadata: {labels: {seen: "yes"}}}
`

const mutateSecond = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: second}
spec:
  rules:
  - name: loop
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate:
      foreach:
      - list: "['a', 'b']"
        context:
        - {name: said, apiCall: {urlPath: /nowhere}}
        patchStrategicMerge: {data: {"{{ element }}": "{{ said }}-{{ request.object.metadata.labels.team }}"}}
  - name: check
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {message: red only, pattern: {metadata: {labels: {team: red}}}}
`

// TestMutate pins how rows of mutate rules are judged: by the status and by the object
// behind all rules of the policy, which sees what policies in front of it made.
func TestMutate(t *testing.T) {
	files := map[string]string{
		"first.yaml": mutateFirst, "second.yaml": mutateSecond,
		"resources.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: bare}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: blue, labels: {team: blue}, annotations: {team: blue}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret}}
`,
		"patched.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: bare, creationTimestamp: null, labels: {team: red}, annotations: {team: red}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: blue, labels: {team: blue}, annotations: {team: green}}}
`,
		"targets.yaml":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: default}}`,
		"other-patched.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: default, labels: {seen: "yes"}}}`,
		"second-patched.yaml": `{apiVersion: v1, kind: ConfigMap, metadata: {name: bare, labels: {team: red}, annotations: {team: red}}, data: {a: one-red, b: two-red}}
`,
		"kyverno-test.yaml": `{policies: [first.yaml, second.yaml], resources: [resources.yaml], targetResources: [targets.yaml],
  values: {policies: [{name: second, rules: [{name: loop, foreachValues: {said: [one, two]}}]}]}, results: [
  {policy: first, rule: label, kind: ConfigMap, resources: [bare], result: pass, patchedResource: patched.yaml},
  {policy: first, rule: label, kind: ConfigMap, resources: [blue], result: skip},
  {policy: first, rule: again, kind: ConfigMap, resources: [blue], result: skip, patchedResources: patched.yaml},
  {policy: first, rule: again, kind: ConfigMap, resources: [bare], result: skip},
  {policy: first, rule: again, kind: Secret, resources: [secret], result: skip},
  {policy: first, rule: again, kind: Secret, resources: [secret], result: pass},
  {policy: first, rule: label, kind: ConfigMap, resources: [bare], result: pass, patchedResource: second-patched.yaml},
  {policy: first, rule: label, kind: ConfigMap, resources: [bare], result: pass, patchedResource: absent.yaml},
  {policy: first, rule: existing, kind: ConfigMap, resources: [bare], result: pass},
  {policy: first, rule: existing, kind: ConfigMap, resources: [other], result: pass, patchedResource: other-patched.yaml},
  {policy: first, rule: existing, kind: ConfigMap, resources: [other], result: pass, patchedResource: patched.yaml},
  {policy: first, rule: existing, kind: ConfigMap, resources: [nobody], result: pass},
  {policy: second, rule: loop, kind: ConfigMap, resources: [bare], result: pass, patchedResource: second-patched.yaml},
  {policy: second, rule: loop, kind: ConfigMap, resources: [blue], result: pass, patchedResource: second-patched.yaml},
  {policy: second, rule: check, kind: ConfigMap, resources: [bare], result: pass}]}`,
	}
	want := `label | ConfigMap/bare | pass | pass | Ok (webhook)
label | ConfigMap/blue | skip | pass | Ok (webhook)
again | ConfigMap/blue | skip | fail | ConfigMap/default/blue differs from patched.yaml
again | ConfigMap/bare | skip | fail | Want skip, got pass
again | Secret/secret | skip | pass | Excluded
again | Secret/secret | pass | excluded | no rule looks at the resource
label | ConfigMap/bare | pass | fail | ConfigMap/default/bare differs from second-patched.yaml
label | ConfigMap/bare | pass | fail | absent.yaml does not exist; paths are relative to the suite's folder
existing | ConfigMap/bare | pass | pass | Ok (webhook)
existing | ConfigMap/default/other | pass | pass | Ok (webhook)
existing | ConfigMap/default/other | pass | fail | patched.yaml has no ConfigMap/default/other
existing | ConfigMap/nobody | pass | excluded | the row names no trigger of the rule, and no target that it changes
loop | ConfigMap/bare | pass | pass | Ok (webhook)
loop | ConfigMap/blue | pass | fail | second-patched.yaml has no ConfigMap/default/blue
check | ConfigMap/bare | pass | pass | Ok`
	file := folder(t, files)
	if d := textdiff.Values(want, ran(t, file)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	suites, _ := Read(file)
	results, _ := runner(t).Run(context.Background(), suites[0])
	if got := results.Rows[2].Difference; !strings.Contains(got, "-     team: green\n+     team: blue\n") {
		t.Errorf("the difference says:\n%s", got)
	}
}

// The label that an API server gives every Namespace is no difference: suites do not
// spell it out.
func TestNamespaceTarget(t *testing.T) {
	got := ran(t, folder(t, map[string]string{
		"policy.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: count
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    mutate:
      targets:
      - apiVersion: v1
        kind: Namespace
        name: team-*
        context: [{name: seen, variable: {jmesPath: target.metadata.labels.seen, default: "0"}}]
      patchesJson6902: |-
        - {op: add, path: /metadata/labels/seen, value: "{{ add(to_number(seen), ` + "`1`" + `) }}"}
`,
		"resources.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n",
		"targets.yaml":   "{apiVersion: v1, kind: Namespace, metadata: {name: team-a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: other}}\n",
		"patched.yaml":   `{apiVersion: v1, kind: Namespace, metadata: {name: team-a, labels: {seen: "1"}}}`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], targetResources: [targets.yaml], results: [
  {policy: p, rule: count, kind: Namespace, resources: [team-a], result: pass, patchedResource: patched.yaml},
  {policy: p, rule: count, kind: Namespace, resources: [other], result: pass}]}`,
	}))
	want := `count | Namespace/team-a | pass | pass | Ok (webhook)
count | Namespace/other | pass | excluded | the row names no trigger of the rule, and no target that it changes`
	if d := textdiff.Values(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestSubresource pins that values may say which kinds are those of subresources.
func TestSubresource(t *testing.T) {
	file := folder(t, map[string]string{
		"policy.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: scale}
spec:
  rules:
  - name: few
    match: {any: [{resources: {kinds: [Deployment/scale]}}]}
    validate: {message: at most three, pattern: {spec: {replicas: "<4"}}}
`,
		"resources.yaml": `{apiVersion: autoscaling/v1, kind: Scale, metadata: {name: web}, spec: {replicas: 5}}`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], values: {subresources: [
    {subresource: {name: deployments/scale, kind: Scale, group: autoscaling, version: v1}, parentResource: {name: deployments, kind: Deployment, group: apps, version: v1}}]},
  results: [{policy: scale, rule: few, kind: Scale, resources: [web], result: fail}]}`,
	})
	if got := ran(t, file); got != "few | Scale/web | fail | pass | Ok (interpreter only: nobody creates the subresource scale)" {
		t.Error(got)
	}
}

// TestGenerate pins how rows of generate rules are judged: by the status and by each
// object that should be there afterwards.
func TestGenerate(t *testing.T) {
	file := folder(t, map[string]string{
		"policy.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: start}
spec:
  rules:
  - name: data
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: ConfigMap
      name: welcome
      namespace: "{{ request.object.metadata.name }}"
      data: {data: {for: "{{ request.object.metadata.name }}"}}
  - name: clone
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      apiVersion: v1
      kind: Secret
      name: pull
      namespace: "{{ request.object.metadata.name }}"
      clone: {namespace: default, name: pull}
`,
		"resources.yaml": `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}`,
		"source.yaml":    `{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: default}, data: {a: eA==}}`,
		"good.yaml":      `{apiVersion: v1, kind: ConfigMap, metadata: {name: welcome, namespace: shop}, data: {for: shop}}`,
		"bad.yaml":       `{apiVersion: v1, kind: ConfigMap, metadata: {name: welcome, namespace: shop}, data: {for: them}}`,
		"copy.yaml":      `{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: shop}, data: {a: eA==}}`,
		"kyverno-test.yaml": `{policies: [policy.yaml], resources: [resources.yaml], results: [
  {policy: start, rule: data, kind: Namespace, resources: [shop], result: pass, generatedResource: good.yaml},
  {policy: start, rule: data, kind: Namespace, resources: [shop], result: pass, generatedResource: bad.yaml},
  {policy: start, rule: data, kind: Namespace, resources: [shop], result: pass, generatedResource: copy.yaml},
  {policy: start, rule: clone, kind: Namespace, resources: [shop], result: pass, generatedResource: copy.yaml, cloneSourceResource: source.yaml}]}`,
	})
	want := `data | Namespace/shop | pass | pass | Ok (webhook)
data | Namespace/shop | pass | fail | ConfigMap/shop/welcome differs from bad.yaml
data | Namespace/shop | pass | fail | Secret/shop/pull is not generated, and stands in copy.yaml
clone | Namespace/shop | pass | pass | Ok (webhook)`
	if d := textdiff.Values(want, ran(t, file)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
