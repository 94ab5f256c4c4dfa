package verify

import (
	"context"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

const (
	seedOfMutants = 11
	// mutantRequests is ten times what the one takes that is found last.
	mutantRequests = 50_000
)

// A mutant is a translation that was broken on purpose.
type mutant struct {
	name   string
	policy string
	broken func([]vap.Objects)
}

func mutants() []mutant {
	const header = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}\n" +
		"spec:\n  validationFailureAction: Enforce\n  background: false\n  rules:\n"
	return []mutant{
		{"a bound is off by one", header + `
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {terminationGracePeriodSeconds: "<=30"}}}
`, replaceIn("<= 30", "< 30")},
		{"updates are forgotten", header + `
  - name: r
    match: {any: [{resources: {kinds: [ConfigMap]}}]}
    validate: {allowExistingViolations: false, pattern: {data: {mode: "?*"}}}
`, func(objects []vap.Objects) {
			for _, o := range objects {
				for i := range o.Policy.Spec.MatchConstraints.ResourceRules {
					rule := &o.Policy.Spec.MatchConstraints.ResourceRules[i]
					rule.Operations = slices.DeleteFunc(rule.Operations, func(op admissionregistrationv1.OperationType) bool {
						return op == admissionregistrationv1.Update
					})
				}
			}
		}},
		{"some element is enough", header + `
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {containers: [{image: "ghcr.io/*"}]}}}
`, replaceIn(".all(", ".exists(")},
		{"one good label excuses a bad one", header + `
  - name: r
    match: {any: [{resources: {kinds: [Service]}}]}
    validate: {allowExistingViolations: false, pattern: {metadata: {=(labels): {=(a/*): "on"}}}}
`, replaceIn("object.metadata.?labels.orValue({}).exists(key,\n  key.startsWith('a/') && object.metadata.labels[key] != 'on'\n)",
			"object.metadata.?labels.orValue({}).exists(key, key.startsWith('a/')) && !object.metadata.labels.exists(key, key.startsWith('a/') && object.metadata.labels[key] == 'on')")},
		{"a ConfigMap's list is one text behind a default", header + `
  - name: r
    match: {any: [{resources: {kinds: [Service]}}]}
    context: [{name: cm, configMap: {name: settings, namespace: default}}]
    validate:
      deny: {conditions: {all: [{key: "{{ request.object.metadata.labels.app || '' }}", operator: AnyIn, value: "{{ cm.data.words || '' }}"}]}}
`, replaceIn(".map(word, word.substring(1, size(word) - 1))", "")},
		{"a missing label is taken for one", header + `
  - name: r
    match: {any: [{resources: {kinds: [Service]}}]}
    validate: {pattern: {metadata: {labels: {owner: "?*"}}}}
`, replaceIn("orValue('')", "orValue('x')")},
		{"a wildcard matches anywhere", header + `
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {containers: [{image: "ghcr.io/*"}]}}}
`, replaceIn(".startsWith(", ".contains(")},
		{"what is excluded is judged", header + `
  - name: r
    match: {any: [{resources: {kinds: [Deployment]}}]}
    exclude: {any: [{resources: {namespaces: ["team-*"]}}]}
    validate: {pattern: {spec: {replicas: ">1"}}}
`, func(objects []vap.Objects) {
			for _, o := range objects {
				o.Policy.Spec.MatchConditions = nil
			}
			replaceIn("request.namespace.startsWith('team-')", "false")(objects)
		}},
		{"an old violation excuses nothing", header + `
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {=(hostNetwork): false}}}
`, replaceIn("[object, oldObject]", "[object, null]")},
		{"one of the conditions is not enough", header + `
  - name: r
    match: {any: [{resources: {kinds: [Service]}}]}
    validate:
      deny:
        conditions:
          any:
          - {key: "{{ request.object.spec.type || '' }}", operator: Equals, value: NodePort}
          - {key: "{{ request.object.spec.externalIPs || ` + "`[]`" + ` }}", operator: AnyIn, value: ["10.*"]}
`, replaceIn(" || ", " && ")},
		{"a user is forgotten", header + `
  - name: r
    match: {any: [{resources: {kinds: [Secret]}}]}
    exclude: {any: [{subjects: [{kind: User, name: admin}, {kind: ServiceAccount, name: sync, namespace: ops}]}]}
    validate: {deny: {conditions: {all: [{key: "{{ request.object.type || '' }}", operator: NotEquals, value: Opaque}]}}}
`, replaceIn("'system:serviceaccount:ops:sync'", "'system:serviceaccount:ops:other'")},
		{"a negation is lost", header + `
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {spec: {X(hostPID): "null"}}}
`, replaceIn("!has(o.", "has(o.")},
		{"null is taken for a text", header + `
  - name: r
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate: {pattern: {spec: {size: "?*"}}}
`, replaceIn("o.spec.size != null", "true")},
		{"a duration is compared with another", header + `
  - name: r
    match: {any: [{resources: {kinds: [Widget]}}]}
    validate: {deny: {conditions: {all: [{key: "{{ request.object.spec.period }}", operator: GreaterThan, value: 90s}]}}}
`, replaceIn("duration('90s')", "duration('90m')")},
		{"precondition and check are confused", header + `
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    preconditions: {all: [{key: "{{ request.object.metadata.labels.app || '' }}", operator: Equals, value: web}]}
    validate:
      foreach:
      - list: request.object.spec.containers
        deny: {conditions: {all: [{key: "{{ element.securityContext.privileged || ` + "`false`" + ` }}", operator: Equals, value: true}]}}
`, replaceIn("'web'", "'webs'")},
		{"a bound of a policy in CEL is off by one", `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: p}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]}
  validations: [{expression: "object.spec.replicas >= 31", message: too few}]
`, replaceIn(">= 31", "> 31")},
	}
}

// Each of them is found, by requests that are counted and not timed, and nothing in what was not broken.
func TestMutants(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			setting := theLab().setting
			sound := search1(t, m.policy, Options{Setting: seeded(setting, seedOfMutants), Requests: 3000})
			for _, r := range sound.Rules {
				if !r.Native {
					t.Fatalf("%s has no native form", r.Rule)
				}
				if r.Counterexample != nil {
					t.Fatalf("it is broken already: %+v: %s", r.Counterexample.Opinion, r.Counterexample.Request)
				}
			}
			setting.Alter = func(objects []vap.Objects) {
				before := asText(t, objects)
				m.broken(objects)
				if asText(t, objects) == before {
					t.Fatalf("the mutant is no other translation:\n%s", before)
				}
			}
			broken := search1(t, m.policy, Options{Setting: seeded(setting, seedOfMutants), Requests: mutantRequests})
			found := slices.IndexFunc(broken.Rules, func(r RuleEvidence) bool { return r.Counterexample != nil })
			if found < 0 {
				t.Fatalf("not found in %d requests: %+v", broken.Requests, broken.Rules)
			}
			c := broken.Rules[found].Counterexample
			t.Logf("found by request %d: native %s, interpreter %s: %s", c.Tried, c.Native, c.Status, c.Request)
		})
	}
}

func search1(t *testing.T, source string, o Options) Evidence {
	t.Helper()
	file, found := policy.Parse("policy.yaml", []byte(source))
	if found.HasErrors() || len(file.Policies) != 1 {
		t.Fatalf("%d policies, %v", len(file.Policies), found)
	}
	e, err := Policy(context.Background(), file.Policies[0], o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func asText(t *testing.T, objects []vap.Objects) string {
	t.Helper()
	var out []byte
	for _, o := range objects {
		data, err := yaml.Marshal(o.Policy.Spec)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data...)
	}
	return string(out)
}
