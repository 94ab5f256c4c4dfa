package translate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
)

// Each text is the rules of a policy. A line that names fields which no object has ends
// in what is said of them:
//
//	hostNetwrok: false  ### no Pod has a field spec.hostNetwrok
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string]string{
		"patterns": `
- name: anchors
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    pattern:
      sepc: {x: {y: 1}}  ### no Pod has a field sepc in Kubernetes 1.34; did you mean spec?
      status: {phase: x}
      metadata: {labls: {a: b}, labels: {"*": "?*"}}  ### no Pod has a field metadata.labls in Kubernetes 1.34; did you mean labels?
      spec:
        hostNetwrok: false  ### no Pod has a field spec.hostNetwrok in Kubernetes 1.34; did you mean hostNetwork?
        =(hostPDI): false  ### spec.hostPDI in Kubernetes 1.34; did you mean hostPID?
        X(hostICP): "null"  ### spec.hostICP in Kubernetes 1.34; did you mean hostIPC?
        <(nodeNam): x  ### did you mean nodeName?
        +(dnsPolcy): x  ### did you mean dnsPolicy?
        ^(volums):  ### did you mean volumes?
          - nme: x
        (somethingElse): x  ### no Pod has a field spec.somethingElse in Kubernetes 1.34
        "host*": x
        "{{ request.object.metadata.name }}": x
        nodeSelector: {disk: ssd}
        overhead: {anything: 1Gi}
        containers:
          - name: x
            (imge): x  ### no Pod has a field spec.containers[].imge in Kubernetes 1.34; did you mean image?
            securityContext:
              =(capabilities): {drp: [ALL]}  ### spec.containers[].securityContext.capabilities.drp in
              name: {x: 1}  ### securityContext.name
        volumes:
          =(hostPaht): x
        hostname: {x: {y: 1}}
        affinity: "{{ request.object.spec.afinity }}"  ### did you mean affinity?
- name: any
  match: {any: [{resources: {kinds: [Service]}}]}
  validate:
    anyPattern:
      - spec: {type: x}
      - spec: {tpe: x}  ### no Service has a field spec.tpe in Kubernetes 1.34; did you mean type?
- name: far
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    pattern: {spec: {containers: [{resources: {limts: {cpu: 1}, quota: 1}}]}}  ### did you mean limits? ### resources.quota in Kubernetes 1.34
- name: element
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    foreach:
      - list: request.object.spec.containers
        pattern: {imag: x, image: y}  ### no Pod has a field spec.containers[].imag in
      - list: request.object.spec.[initContainers, containers][]
        anyPattern: [{restartPolicy: Always}, {lifecycl: x}]  ### spec.initContainers[].lifecycl in
      - list: request.object.spec.[ephemeralContainers, containers][]
        anyPattern: [{targetContainerName: Always}]
      - list: merge(request.object.spec.containers, request.object.spec.container)  ### spec.container in Kubernetes 1.34; did you mean containers?
        pattern: {imag: x}
      - list: request.object.spec.containers
        elementScope: false
        pattern: {spec: {x: y}}
      - list: "{{ request.object.spec.volumes }}"
        pattern: {hostPaht: {path: x}}  ### spec.volumes[].hostPaht in
      - list: request.object.spec.containers[?imge].name  ### spec.containers[].imge in
        deny: {conditions: {all: [{key: "{{ element.x }}", operator: Equals, value: x}]}}
`,
		"expressions": `
- name: paths
  match: {any: [{resources: {kinds: [Pod]}}]}
  context:
    - name: nets
      variable: {jmesPath: request.object.spec.hostNet}  ### no Pod has a field spec.hostNet in Kubernetes 1.34
    - name: ofValue
      variable: {value: {request: {object: 1}}, jmesPath: request.object.spec.x}
    - name: settings
      configMap: {name: "{{ request.object.spec.nme }}", namespace: a}  ### spec.nme in Kubernetes 1.34
  preconditions:
    all:
      - {key: "{{ request.object.spec.hostPDI || 'a' }}", operator: Equals, value: "{{ request.oldObject.spec.hostPDI }}"}  ### hostPDI ### hostPDI
      - {key: "{{ nets.whatever }}", operator: Equals, value: a, message: "{{ request.object.spec.xyz }}"}
      - {key: "{{ request.operation }} {{ request.userInfo.nobody }} {{ request.object.metadata.labls.x }}", operator: Equals, value: a}  ### metadata.labls in
  validate:
    message: "{{ request.object.spec.hostNetwrok }}"
    deny:
      conditions:
        any:
          - {key: "{{ request.object.spec.containers[0].imge }}", operator: Equals, value: a}  ### spec.containers[].imge
          - {key: "{{ request.object.spec.containers[*].env[].nam }}", operator: Equals, value: a}  ### spec.containers[].env[].nam
          - {key: "{{ request.object.spec.containers[*].env[].name.first }}", operator: Equals, value: a}
          - {key: "{{ request.object.spec.containers.image }}", operator: Equals, value: a}
          - {key: "{{ request.object.spec.containers[:2] | [0].imge }}", operator: Equals, value: a}  ### spec.containers[].imge
          - {key: "{{ request.object.spec.containers[?name == 'a' && prts[?x]] }}", operator: Equals, value: a}  ### did you mean ports?
          - {key: "{{ request.object.spec.[containers, ephemeralContainers][].[name, prts] }}", operator: Equals, value: a}  ### spec.containers[].prts
          - {key: "{{ (request.object.spec.initContainers || []) | [0].imge }}", operator: Equals, value: a}
          - {key: "{{ length(request.object.spec.initContainrs) }}", operator: Equals, value: 1}  ### did you mean initContainers?
          - {key: "{{ to_array(request.object.spec)[0].x }}", operator: Equals, value: 1}
          - {key: "{{ map(&nme, request.object.spec.containers) }}", operator: Equals, value: 1}
          - {key: "{{ request.object.spec.{a: hostPDI, b: hostPID}.c }}", operator: Equals, value: 1}  ### hostPDI
          - {key: "{{ request.object.\"{{ request.object.spec.hostPDI }}\".x }}", operator: Equals, value: 1}  ### hostPDI
          - {key: "{{ request.object.spec.nodeSelector.disk.x }}", operator: Equals, value: 1}
          - {key: "{{ request.object.spec.* | [0].x }}", operator: Equals, value: 1}
          - {key: "{{ request.object.spec.map(&nme, containers) }}", operator: Equals, value: 1}
          - {key: "{{ request.object.spec.nodeNam }}-{{ request.object.spec.nodeName }}", operator: Equals, value: 1}  ### did you mean nodeName?
          - {key: "{{ request.object.spec.nodeName }}-{{ request.object.spec.nodeNam }}", operator: Equals, value: 1}  ### did you mean nodeName?
- name: elements
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    foreach:
      - list: request.object.spec.containers
        preconditions: {all: [{key: "{{ element.imge }}", operator: Equals, value: a}]}  ### no Pod has a field spec.containers[].imge
        foreach:
          - list: element.env
            context: [{name: v, variable: {jmesPath: element.valu}}]  ### spec.containers[].env[].valu
            deny: {conditions: {all: [{key: "{{ element0.name }}{{ element1.nam }}{{ element0.nam }}", operator: Equals, value: "{{ elementIndex }}"}]}}  ### spec.containers[].env[].nam ### spec.containers[].nam
- name: shadowed
  match: {any: [{resources: {kinds: [Pod]}}]}
  context: [{name: element0, variable: {value: {x: y}}}]
  validate:
    foreach:
      - list: request.object.spec.containers
        deny: {conditions: {all: [{key: "{{ element0.x }}", operator: Equals, value: y}]}}
- name: shadowed among others
  match: {any: [{resources: {kinds: [Pod]}}]}
  context: [{name: element0, variable: {value: {x: y}}}, {name: other, variable: {value: z}}]
  validate:
    foreach:
      - list: request.object.spec.containers
        deny: {conditions: {all: [{key: "{{ element0.x }}", operator: Equals, value: y}]}}
- name: shadowed inside
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    foreach:
      - list: request.object.spec.containers
        foreach:
          - list: element.env
            context: [{name: element1, variable: {value: {x: y}}}]
            deny: {conditions: {all: [{key: "{{ element1.x }}", operator: Equals, value: y}]}}
- name: four kinds
  match: {any: [{resources: {kinds: [ConfigMap, Secret, Service, Node]}}]}
  validate: {pattern: {sepc: x}}  ### no ConfigMap, Secret, Service or Node has a field sepc
- name: five kinds
  match: {any: [{resources: {kinds: [ConfigMap, Secret, Service, Node, Event]}}]}
  validate: {pattern: {sepc: x}}  ### none of the 5 kinds that the rule matches has a field sepc
- name: generation
  match: {any: [{resources: {kinds: [Pod]}}]}
  generate: {apiVersion: v1, kind: ConfigMap, name: "{{ request.object.spec.nodeNam }}", namespace: a, data: {}}  ### did you mean nodeName?
- name: mutation
  match: {any: [{resources: {kinds: [Pod]}}]}
  preconditions: {all: [{key: "{{ request.object.spec.hostPDI }}", operator: Equals, value: true}]}  ### hostPDI
  mutate:
    patchStrategicMerge: {spec: {nme: "{{ request.object.spec.nodeNam }}"}}  ### did you mean nodeName?
`,
		"kinds": `
- name: several
  match: {any: [{resources: {kinds: [Deployment, StatefulSet]}}, {resources: {kinds: [CronJob]}}]}
  validate:
    pattern:
      spec:
        strategy: {typ: x}  ### no Deployment has a field spec.strategy.typ in
        updateStrategy: {type: x}
        schedule: x
        schedul: x  ### no Deployment, StatefulSet or CronJob has a field spec.schedul in Kubernetes 1.34; did you mean schedule?
        template: {spec: {containers: [{imge: x}]}}  ### no Deployment or StatefulSet has a field spec.template.spec.containers[].imge
- name: choice
  match: {any: [{resources: {kinds: [Deployment, CronJob]}}]}
  validate:
    deny:
      conditions:
        all:
          - key: "{{ request.object.spec.template.spec.containers || request.object.spec.jobTemplate.spec.template.spec.containers }}"
            operator: Equals
            value: "{{ request.object.spec.template.spec.containrs || request.object.spec.jobTemplate.spec.foo }}"  ### no Deployment has a field spec.template.spec.containrs in ### no CronJob has a field spec.jobTemplate.spec.foo in
- name: unknown
  match: {any: [{resources: {kinds: [Deployment, Gadget]}}]}
  validate: {pattern: {spec: {x: y}}}
- name: unknown-first
  match: {any: [{resources: {kinds: [Gadget, Deployment]}}]}
  validate: {pattern: {spec: {x: y}}}
- name: all
  match: {any: [{resources: {kinds: ["*"]}}]}
  validate: {pattern: {spec: {x: y}}}
- name: wild
  match: {any: [{resources: {kinds: ["*Set"]}}]}
  validate: {pattern: {spec: {x: y}}}
- name: any-version
  match: {any: [{resources: {kinds: ["apps/*/Deployment"]}}]}
  validate: {pattern: {spec: {x: y}}}
- name: versions
  match: {any: [{resources: {kinds: [HorizontalPodAutoscaler]}}]}
  validate: {pattern: {spec: {metrics: [], targetCPUUtilizationPercentage: 1, x: y}}}  ### no HorizontalPodAutoscaler has a field spec.x in
- name: one-version
  match: {any: [{resources: {kinds: [autoscaling/v2/HorizontalPodAutoscaler]}}]}
  validate: {pattern: {spec: {targetCPUUtilizationPercentage: 1}}}  ### no HorizontalPodAutoscaler has a field spec.target
- name: options
  match: {any: [{resources: {kinds: [Pod/exec], operations: [CONNECT]}}]}
  validate: {pattern: {comand: x, command: y, spec: {a: b}}}  ### no Pod/exec has a field comand in ### no Pod/exec has a field spec in
- name: scale
  match: {any: [{resources: {kinds: [Deployment/scale]}}]}
  validate: {pattern: {spec: {replicas: 1, template: x}}}  ### no Deployment/scale has a field spec.template in
- name: status
  match: {any: [{resources: {kinds: [Pod/status]}}]}
  validate: {pattern: {status: {phas: x}}}  ### no Pod has a field status.phas in
- name: nameless
  match: {any: [{resources: {namespaces: [default]}}]}
  validate: {pattern: {spec: {x: y}}}
- name: many
  match: {any: [{resources: {kinds: [Deployment, StatefulSet, DaemonSet, Job, CronJob]}}]}
  validate: {pattern: {spec: {x: y}}}  ### none of the 5 kinds that the rule matches has a field spec.x in
`,
		"custom": `
- name: widget
  match: {any: [{resources: {kinds: [Widget]}}]}
  validate:
    pattern:
      spec:
        siz: 1  ### no Widget has a field spec.siz; did you mean size?
        open: {anything: 1}
        some: {anything: 1, known: {unknown: 1}}  ### no Widget has a field spec.some.known.unknown
        byName: {any: {weight: 1, hight: 1}}  ### no Widget has a field spec.byName.any.hight
        raw: {kind: x, spec: {a: b}}
- name: with-builtin
  match: {any: [{resources: {kinds: [Widget, Pod]}}]}
  validate: {pattern: {spec: {size: 1, nodeName: 1, neither: 1}}}  ### no Widget or Pod has a field spec.neither in Kubernetes 1.34
- name: open
  match: {any: [{resources: {kinds: [Loose]}}]}
  validate: {pattern: {spec: {x: y}, other: {z: 1}}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkUnknownFields(t, "annotations: {pod-policies.kyverno.io/autogen-controllers: none}", rules)
		})
	}
}

// A field of the pod is unknown only if it is so in the pod templates too.
func TestUnknownFieldsOfTemplates(t *testing.T) {
	t.Parallel()
	checkUnknownFields(t, "", `
- name: pattern
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    pattern:
      status: {phase: x}
      metadata: {labels: {a: b}}
      spec: {hostNetwrok: false, hostNetwork: false}  ### no Pod has a field spec.hostNetwrok in
- name: template
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    pattern: {spec: {template: {spec: {x: y}}}}  ### no Pod has a field spec.template in
- name: any
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    anyPattern: [{spec: {hostNetwrok: false}}]  ### no Pod has a field spec.hostNetwrok in
- name: expressions
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    deny:
      conditions:
        any:
          - {key: "{{ request.object.spec.nodeNam }}", operator: Equals, value: "{{ request.object.spec.nodeName }}"}  ### no Pod has a field spec.nodeNam in
          - {key: "{{ request.object.spec.replicas }}", operator: Equals, value: "{{ request.oldObject.spec.schedule }}"}  ### spec.replicas ### spec.schedule
          - {key: "{{ request.object.status.phase }}", operator: Equals, value: "{{ request.object.status.replicas }}"}
          - {key: "{{ request.object | spec.replicas }}", operator: Equals, value: "{{ request.object.[spec.schedule] }}"}
          - {key: "{{ request.object.status.nothing }}", operator: Equals, value: a}  ### no Pod has a field status.nothing in
- name: elements
  match: {any: [{resources: {kinds: [Pod]}}]}
  validate:
    foreach:
      - list: request.object.spec.containers
        pattern: {imge: x}  ### no Pod has a field spec.containers[].imge in
`)
}

// What is said of the source is said whether the rule is native or not, and does not change
// that. It is among the rule's codes, so that a plan tells of it.
func TestUnknownFieldsAreNoReason(t *testing.T) {
	t.Parallel()
	text, _ := diag.Example(diag.UnknownField)
	r := compileText(t, text, setting{})
	if got := codesIn(r.Diagnostics); !slices.Contains(got, diag.UnknownField) || !slices.Contains(r.Rules[0].Codes, diag.UnknownField) {
		t.Errorf("%v, the rule %v", got, r.Rules[0].Codes)
	}
	if r.Rules[0].Target != translate.Native {
		t.Errorf("the rule is %s", r.Rules[0].Target)
	}
}

// A rule that denies no update is told of its misspelt field, and of what comes of that, alone:
// with the field corrected, it may well deny some.
func TestUnknownFieldsBeforeUpdates(t *testing.T) {
	t.Parallel()
	r := compileText(t, "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Enforce\n  rules:\n"+
		"  - name: r\n    match: {any: [{resources: {kinds: [Service], operations: [CREATE, UPDATE]}}]}\n"+
		"    validate: {pattern: {metadata: {anotations: {team: '?*'}}}}\n", setting{})
	of := slices.Sorted(slices.Values(r.Rules[0].Codes))
	if got := codesIn(r.Diagnostics); !slices.Equal(got, []diag.Code{diag.UnknownField, diag.DeniesEvery}) || !slices.Equal(got, of) {
		t.Errorf("%v, the rule %v", got, r.Rules[0].Codes)
	}
}

func codesIn(ds diag.List) (out []diag.Code) {
	for _, d := range ds {
		out = append(out, d.Code)
	}
	return out
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.x.io}
spec:
  group: x.io
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                size: {type: integer}
                open: {type: object, x-kubernetes-preserve-unknown-fields: true}
                some:
                  type: object
                  x-kubernetes-preserve-unknown-fields: true
                  properties: {known: {type: object, properties: {a: {type: string}}}}
                byName: {type: object, additionalProperties: {type: object, properties: {weight: {type: integer}}}}
                raw: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: looses.x.io}
spec:
  group: x.io
  scope: Namespaced
  names: {kind: Loose, plural: looses}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func checkUnknownFields(t *testing.T, metadata, rules string) {
	t.Helper()
	text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: p\n  " + metadata + "\nspec:\n  rules:" +
		strings.ReplaceAll(rules, "\n", "\n    ")
	file, found := policy.Parse("p.yaml", []byte(text))
	if found.HasErrors() {
		t.Fatal(found)
	}
	schemas, bad := builtin(t, 34).WithCRDs([]byte(widgets))
	if bad.HasErrors() {
		t.Fatal(bad)
	}
	wants := map[int][]string{}
	for i, line := range strings.Split(text, "\n") {
		if said := strings.Split(line, "  ### "); len(said) > 1 {
			wants[i+1] = strings.Split(strings.Join(said[1:], " ### "), " ### ")
		}
	}
	r := compile.Policies(compile.Input{Policies: file.Policies}, compile.Options{Translate: translate.Options{Release: 34, Schemas: schemas}})
	for _, d := range r.Diagnostics {
		if d.Code != diag.UnknownField {
			continue
		}
		i := slices.IndexFunc(wants[d.Line], func(want string) bool { return strings.Contains(d.Message+"\n", want) })
		if d.Severity != diag.Warning || i < 0 {
			t.Errorf("unexpected: %v", d)
			continue
		}
		wants[d.Line] = slices.Delete(wants[d.Line], i, i+1)
	}
	for line, missing := range wants {
		for _, want := range missing {
			t.Errorf("p.yaml:%d: nothing says %q", line, want)
		}
	}
}

// What stands twice counts once: a field is still known to be missing after as many
// alternatives of one value as would be too many of different ones.
func TestUnknownFieldsOfTheSameTwice(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"alternatives": strings.Repeat(" | (@ || @)", 12),
		"lists":        strings.Repeat(" | [@, @] | [0]", 12),
	} {
		result := compileText(t, denying("{{ request.object.spec"+steps+" | hostNetwrok }}"), setting{})
		found := slices.ContainsFunc(result.Diagnostics, func(d diag.Diagnostic) bool {
			return d.Code == diag.UnknownField && strings.Contains(d.Message, "spec.hostNetwrok")
		})
		if !found {
			t.Errorf("%s: %v", name, result.Diagnostics)
		}
	}
}

// denying is a policy that denies Pods by a text.
func denying(key string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [Pod]}}]}\n" +
		"    validate: {deny: {conditions: {all: [{key: \"" + key + "\", operator: Equals, value: never}]}}}\n"
}

// TestUnknownFieldsOfMutatingPolicies: what a MutatingPolicy reads is told as what a ValidatingPolicy
// does. Of a policy that changes other objects, it is what asks for the trigger.
func TestUnknownFieldsOfMutatingPolicies(t *testing.T) {
	t.Parallel()
	const policy = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: p}
spec:
  TARGETS
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [services]}]}
  variables: [{name: kind, expression: object.spec.tpe}]
  matchConditions: [{name: external, expression: "has(object.spec.externlName)"}]
  mutations:
  - {patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'kind': object.spec.typ}}}"}}
  - {patchType: JSONPatch, jsonPatch: {expression: "has(object.spec.clustrIP) ? [JSONPatch{op: 'remove', path: '/spec/x'}] : []"}}
`
	for targets, want := range map[string]string{
		"": "spec.tpe spec.externlName spec.typ spec.clustrIP",
		"targetMatchConstraints: {resourceRules: [{apiGroups: [\"\"], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}": "spec.tpe spec.externlName",
	} {
		var got []string
		for _, d := range compileText(t, strings.Replace(policy, "TARGETS", targets, 1), setting{}).Diagnostics {
			if d.Code == diag.UnknownField {
				rest := strings.TrimPrefix(d.Message, "no Service has a field ")
				field, _, _ := strings.Cut(rest, " ")
				got = append(got, field)
			}
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%q: told of %q, want %q", targets, got, want)
		}
	}
}
