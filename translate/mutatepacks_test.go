package translate_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// conditions are what a rule asks, now and then.
func (m mutateMaker) conditions() map[string]any {
	key := m.oneOf("{{ request.object.metadata.labels.app || '' }}", "{{ request.object.spec.hostNetwork || `false` }}", "{{ request.object.metadata.annotations.team || '' }}", "{{ request.userInfo.username }}",
		"{{ request.object.spec.containers[0].image }}")
	return map[string]any{"all": []any{map[string]any{"key": key, "operator": m.oneOf("Equals", "NotEquals"), "value": m.oneOf("a", "b", "u", "true", "j:1")}}}
}

// small is a patch of one or two fields, which seldom are what others change.
func (m mutateMaker) small() map[string]any {
	label := map[string]any{m.oneOf("labels", "annotations"): map[string]any{m.key(fmt.Sprintf("k%d", m.IntN(30))): m.text()}}
	container := func(fields map[string]any) map[string]any {
		fields[m.oneOf("(name)", "(name)", "(image)")] = m.oneOf("*", "*", "?*", "i*")
		return map[string]any{"spec": map[string]any{m.oneOf("containers", "containers", "initContainers"): []any{fields}}}
	}
	switch m.IntN(12) {
	case 0, 1:
		return map[string]any{"metadata": label}
	case 2:
		return map[string]any{"metadata": label, "spec": map[string]any{m.key("hostNetwork"): m.often()}}
	case 3:
		return map[string]any{"spec": map[string]any{"securityContext": map[string]any{m.oneOf("+(runAsUser)", "runAsUser", "+(fsGroup)", "+(runAsGroup)"): int64(m.IntN(9))}}}
	case 4:
		return map[string]any{"spec": map[string]any{"securityContext": map[string]any{"+(seccompProfile)": map[string]any{"type": "RuntimeDefault"}}}}
	case 5:
		return container(map[string]any{"securityContext": map[string]any{m.oneOf("+(privileged)", "privileged", "+(readOnlyRootFilesystem)", "+(allowPrivilegeEscalation)"): m.often()}})
	case 6:
		return container(map[string]any{"securityContext": map[string]any{"capabilities": map[string]any{"drop": []any{"ALL"}}}})
	case 7:
		return container(map[string]any{m.oneOf("+(imagePullPolicy)", "imagePullPolicy", "+(workingDir)"): "Always"})
	case 8:
		return container(map[string]any{"resources": map[string]any{m.oneOf("limits", "requests"): map[string]any{m.oneOf("+(cpu)", "cpu"): "1", "+(memory)": "1Gi"}}})
	case 9:
		return container(map[string]any{"env": []any{map[string]any{"name": m.oneOf("A", "C", "D"), "value": m.text()}}})
	case 10:
		return map[string]any{"spec": map[string]any{m.key("nodeSelector"): map[string]any{m.key("zone"): m.text()}, "terminationGracePeriodSeconds": int64(m.IntN(60))}}
	}
	return map[string]any{"spec": map[string]any{m.oneOf("tolerations", "+(tolerations)"): []any{map[string]any{"key": m.text(), "operator": "Exists"}}, m.key("priorityClassName"): "x"}}
}

// several are policies on Pods, of one to three rules each.
func (m mutateMaker) several(t *testing.T) string {
	t.Helper()
	var out []string
	for i := range 2 + m.IntN(4) {
		var rules []any
		for k := range 1 + m.IntN(6)/4 + m.IntN(6)/5 {
			rule := map[string]any{
				"name": fmt.Sprintf("r%d", k), "match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"Pod"}}}}},
				"mutate": map[string]any{"patchStrategicMerge": m.small()},
			}
			if m.IntN(8) == 0 {
				rule["mutate"] = m.rule()
			}
			if m.IntN(4) == 0 {
				rule["preconditions"] = m.conditions()
			}
			rules = append(rules, rule)
		}
		spec := map[string]any{"rules": rules}
		if m.IntN(5) == 0 {
			spec["failurePolicy"] = "Ignore"
		}
		text, err := yaml.Marshal(map[string]any{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{
			"name": fmt.Sprintf("p%d", i), "annotations": map[string]any{"pod-policies.kyverno.io/autogen-controllers": "none"},
		}, "spec": spec})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

// inOrderOfPacks is a result with its native policies alone, in the order in which the packs have them.
func inOrderOfPacks(r compile.Result) compile.Result {
	var order []*policy.Policy
	for _, o := range r.Mutating {
		for _, m := range o.Draft.Members {
			i := slices.IndexFunc(r.Policies, func(p *policy.Policy) bool { return p.Name == m.Policy })
			if !slices.Contains(order, r.Policies[i]) {
				order = append(order, r.Policies[i])
			}
		}
	}
	r.Policies = order
	return r
}

// Random policies that share objects make of random Pods what the interpreter makes of them.
func TestRandomMutatePacks(t *testing.T) {
	t.Parallel()
	m := mutateMaker{rand.New(rand.NewPCG(25, *mutateSeed))}
	sets, requests := 120, 4
	if testing.Short() {
		sets = 20
	}
	until := time.Now().Add(*mutateFor)
	if *mutateFor > 0 {
		sets, requests = math.MaxInt, 40
	}
	tried, changes, mutations, asked := 0, 0, 0, 0
	for n := 0; n < sets && (*mutateFor == 0 || time.Now().Before(until)); n++ {
		text := m.several(t)
		p := translateText(t, text, setting{release: 36, mutations: true, packed: true})
		tried++
		if len(p.result.Mutating) == 0 || slices.ContainsFunc(p.result.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == diag.LostZero }) {
			continue
		}
		result := inOrderOfPacks(p.result)
		for _, o := range result.Mutating {
			changes, mutations = changes+len(o.Draft.Members), mutations+len(o.Draft.Mutations)
		}
		natives := mutator(t, result)
		for range requests {
			request := m.request()
			for request["kind"].(map[string]any)["kind"] != "Pod" {
				request = m.request()
			}
			asText, review := sent(t, request)
			asked++
			changeByBoth(t, fmt.Sprintf("seed %d, set %d\n%s\n%s", *mutateSeed, n, text, asText), result, natives, nil, review)
			if t.Failed() {
				return
			}
		}
	}
	if mutations >= changes {
		t.Errorf("%d rules have %d mutations", changes, mutations)
	}
	t.Logf("%d sets of policies with %d native rules in %d mutations changed what is in %d requests", tried, changes, mutations, asked)
}

// A rule that errs does so beside others, also where it would change nothing.
func TestErrorBesideOthers(t *testing.T) {
	t.Parallel()
	policies := mutateHead + `  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {spec: {(dnsPolicy): Default, +(tolerations): [{key: "{{ request.object.metadata.labels.none }}", operator: Exists}]}}}
  - name: s
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {spec: {nodeSelector: {a: b}}}}
`
	p := translateText(t, policies, setting{release: 36, mutations: true, packed: true})
	if len(p.result.Mutating) == 0 {
		t.Fatal(p.result.Diagnostics)
	}
	for _, more := range []string{"", "tolerations: [{key: q, operator: Exists}], ", "dnsPolicy: Default, tolerations: [{key: q, operator: Exists}], "} {
		request := strings.Replace(podRequest, "spec: {", "spec: {"+more, 1)
		changeByBoth(t, more, p.result, mutator(t, p.result), nil, reviewOf(t, request))
	}
}

// packOf are policies of one rule each on Pods, which may share objects.
func packOf(specs ...string) string {
	var out []string
	for i, spec := range specs {
		out = append(out, fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p%d, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  %s
`, i, strings.ReplaceAll(spec, "RULE", "name: r, match: {any: [{resources: {kinds: [Pod]}}]}")))
	}
	return strings.Join(out, "---\n")
}

// An error that is ignored takes nothing with it that another policy does.
func TestIgnoredErrorBesideOthers(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"apply configurations": `patchStrategicMerge: {metadata: {annotations: {copy: "{{ request.object.metadata.annotations.none }}"}}}`,
		"JSON patches":         `patchStrategicMerge: {spec: {tolerations: [{key: "{{ request.object.metadata.annotations.none }}", operator: Exists}]}}`,
	} {
		for _, other := range []string{"{metadata: {labels: {other: x}}}", "{metadata: {labels: {other: x}}, spec: {imagePullSecrets: [{name: a}], hostAliases: [{ip: 10.0.0.1}]}}"} {
			p := translateText(t, packOf("failurePolicy: Ignore\n  rules: [{RULE, mutate: {"+patch+"}}]", "failurePolicy: Ignore\n  rules: [{RULE, mutate: {patchStrategicMerge: "+other+"}}]"),
				setting{release: 36, mutations: true, packed: true})
			if len(p.result.Mutating) == 0 {
				t.Fatalf("%s: %v", name, p.result.Diagnostics)
			}
			object, _, err := mutator(t, p.result).Mutate(t.Context(), reviewOf(t, podRequest), nil)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), `"other":"x"`) {
				t.Errorf("%s beside %s: %s\n%s", name, other, text, mutatingText(t, p.result))
			}
		}
	}
}

// What asks for something that another policy writes as false is not in one object with it, and
// the user is told: an API server may drop that between two mutations.
func TestZeroBesideOthers(t *testing.T) {
	t.Parallel()
	for asks, lost := range map[string]bool{
		`rules: [{RULE, preconditions: {all: [{key: "{{ request.object.spec.hostNetwork == null }}", operator: Equals, value: true}]}, mutate: {patchStrategicMerge: {metadata: {labels: {other: x}}}}}]`: true,
		`rules: [{RULE, mutate: {patchStrategicMerge: {spec: {(hostNetwork): false}, metadata: {labels: {other: x}}}}}]`:                                                                                  true,
		`rules: [{RULE, mutate: {patchStrategicMerge: {spec: {(hostPID): false}, metadata: {labels: {other: x}}}}}]`:                                                                                      false,
	} {
		for _, packed := range []bool{true, false} {
			p := translateText(t, packOf("rules: [{RULE, mutate: {patchStrategicMerge: {spec: {hostNetwork: false}}}}]", asks), setting{release: 36, mutations: true, packed: packed})
			if objects := len(p.result.Mutating); (objects == 2) != (lost || !packed) {
				t.Errorf("there are %d objects\n%s", objects, mutatingText(t, p.result))
			}
			told := 0
			for _, r := range p.result.Rules {
				if slices.Contains(r.Codes, diag.LostZero) {
					told++
				}
			}
			if (told == 1) != lost {
				t.Errorf("%s: %d rules are told of (packed: %v)", asks, told, packed)
			}
		}
	}
}

// A rule that puts an element in front does not go ahead of a patch that names one by its place.
func TestPlacesBesideOthers(t *testing.T) {
	t.Parallel()
	rules := mutateRule("    mutate: {patchStrategicMerge: {spec: {hostNetwork: true}}}") +
		strings.Replace(mutateRule("    mutate:\n      patchesJson6902: |-\n        - {op: add, path: /spec/containers/0/tty, value: true}"), "name: r", "name: s", 1) +
		strings.Replace(mutateRule("    mutate: {patchStrategicMerge: {spec: {containers: [{name: front, image: f}]}}}"), "name: r", "name: t", 1)
	p := translateText(t, mutateHead+rules, setting{release: 36, mutations: true, packed: true})
	if len(p.result.Mutating) == 0 {
		t.Fatal(p.result.Diagnostics)
	}
	changeByBoth(t, "", p.result, mutator(t, p.result), nil, reviewOf(t, podRequest))
}
