package translate_test

import (
	"strings"
	"testing"
)

const mutateHead = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
`

func mutateRule(body string) string {
	return "  - name: r\n    match: {any: [{resources: {kinds: [Pod]}}]}\n" + body + "\n"
}

// requests are for what a rule on Pods may meet: a Pod, one with more in it, and a controller.
func mutateRequests() map[string]string {
	full := strings.NewReplacer("labels: {app: a}", "labels: {app: b, x: xx}, annotations: {note: nn}",
		"spec: {containers:", "spec: {hostNetwork: true, terminationGracePeriodSeconds: 90, imagePullSecrets: [{name: s}, {name: t}], volumes: [{name: v, emptyDir: {}}], nodeSelector: {disk: ssd}, securityContext: {runAsUser: 5}, containers:",
		`image: "i:latest"`, `image: "i:latest", imagePullPolicy: Never, env: [{name: A, value: "1"}, {name: B, value: "2"}], securityContext: {privileged: true}`).Replace(podRequest)
	return map[string]string{"a pod": podRequest, "a full pod": full, "an update": strings.ReplaceAll(full, "operation: CREATE", "operation: UPDATE\noldObject: {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: [{name: a, image: i}]}}"),
		"a deployment": deploymentRequest}
}

// Each rule that is native makes of an object what the interpreter makes of it.
func TestMutateRules(t *testing.T) {
	t.Parallel()
	merge := func(patch string) string { return "    mutate: {patchStrategicMerge: " + patch + "}" }
	patch := func(text string) string { return "    mutate:\n      patchesJson6902: |-\n        " + text }
	loop := func(entry string) string { return "    mutate:\n      foreach:\n      - " + entry }
	for name, tt := range map[string]struct{ body, want string }{
		"labels":                        {merge(`{metadata: {labels: {a: b, "c/d": "e"}}}`), "native"},
		"annotations that are added":    {merge(`{metadata: {annotations: {+(note): xx, +(other): zz}}}`), "native"},
		"a label beside an addition":    {merge(`{metadata: {labels: {marked: "yes", +(version): kept}}}`), "native"},
		"a field":                       {merge(`{spec: {hostNetwork: false}}`), "native"},
		"a field that is added":         {merge(`{spec: {+(hostNetwork): false}}`), "native"},
		"a struct that is added":        {merge(`{spec: {+(securityContext): {runAsNonRoot: true, runAsUser: 7}}}`), "native"},
		"fields of a struct":            {merge(`{spec: {securityContext: {runAsNonRoot: true, +(runAsUser): 7}}}`), "native"},
		"an atomic map":                 {merge(`{spec: {nodeSelector: {+(disk): hdd, zone: z}}}`), "native"},
		"an atomic list":                {merge(`{spec: {tolerations: [{key: k, operator: Exists}]}}`), "native"},
		"a condition":                   {merge(`{spec: {(hostNetwork): true, dnsPolicy: Default}}`), "native"},
		"a condition on a label":        {merge(`{metadata: {labels: {(app): "b*", z: w}}}`), "native"},
		"a condition on what is not":    {merge(`{spec: {(nodeName): x, dnsPolicy: Default}}`), "native"},
		"a condition with a map":        {merge(`{spec: {(securityContext): {runAsUser: ">3"}, dnsPolicy: Default}}`), "native"},
		"all containers":                {merge(`{spec: {containers: [{(name): "*", imagePullPolicy: Always}]}}`), "native"},
		"some containers":               {merge(`{spec: {containers: [{(image): "*:latest", imagePullPolicy: Always}]}}`), "native"},
		"containers without a policy":   {merge(`{spec: {containers: [{(name): "*", +(imagePullPolicy): Always}]}}`), "native"},
		"env of all containers":         {merge(`{spec: {containers: [{(name): "*", env: [{name: B, value: x}, {name: C, value: z}]}]}}`), "native"},
		"a container by name":           {merge(`{spec: {containers: [{name: b, tty: true}]}}`), "native"},
		"two containers by name":        {merge(`{spec: {containers: [{name: b, tty: true}, {name: a, stdin: true}]}}`), "native"},
		"one that adds before another":  {merge(`{spec: {containers: [{name: b, resources: {limits: {+(cpu): "1"}}}, {name: side, image: s, tty: true}]}}`), "native"},
		"two that add before another":   {merge(`{spec: {containers: [{name: b, resources: {limits: {+(cpu): "1"}}}, {name: a, +(tty): true}, {name: side, image: s, tty: true}]}}`), "native"},
		"an addition of nothing":        {merge(`{metadata: {labels: {a: b}}, spec: {+(securityContext): {}}}`), "native"},
		"some that lack a policy":       {merge(`{spec: {containers: [{(image): "*:latest", +(imagePullPolicy): Always}]}}`), "native"},
		"an addition with a directive":  {merge(`{spec: {+(securityContext): {$patch: replace, runAsUser: 1}}}`), "webhook KV201"},
		"two keys of one parent":        {patch("- {op: add, path: /metadata/annotations/q, value: x}\n        - {op: add, path: /metadata/annotations/r, value: z}"), "native"},
		"labels with a directive":       {merge(`{metadata: {+(labels): {$patch: replace, a: b}}}`), "webhook KV201"},
		"an empty map in an addition":   {merge(`{spec: {+(securityContext): {runAsUser: 7, seccompProfile: {}}}}`), "native"},
		"a very large integer":          {merge(`{spec: {terminationGracePeriodSeconds: 9007199254740993}}`), "webhook KV201"},
		"what goes twice":               {"    preconditions: {all: [{key: \"{{ request.object.metadata.labels.app || '' }}\", operator: Equals, value: a}]}\n" + patch("- {op: remove, path: /metadata/labels/app}\n        - {op: remove, path: /metadata/labels/app}"), "native"},
		"an entry that may be an error": {loop("list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/tty\", value: true}\n      - list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/env/-\", value: {name: I, value: \"{{ element.image }}\"}}"), "webhook KV201"},
		"a container of its own":        {merge(`{spec: {containers: [{name: side, image: s, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {medium: Memory}}]}}`), "native"},
		"a container with arguments":    {merge(`{spec: {containers: [{name: side, image: s, args: [a, b]}]}}`), "native"},
		"a container with additions":    {merge(`{spec: {containers: [{name: b, +(tty): true}]}}`), "native"},
		"capabilities":                  {merge(`{spec: {containers: [{(name): "*", securityContext: {privileged: false, capabilities: {drop: [ALL]}}}]}}`), "native"},
		"capabilities among others":     {merge(`{spec: {securityContext: {runAsNonRoot: true, +(runAsUser): 7, seccompProfile: {type: RuntimeDefault}}, hostPID: false, containers: [{(name): "*", +(imagePullPolicy): Always, securityContext: {privileged: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}}]}}`), "native"},
		"labels and tolerations":        {merge(`{metadata: {labels: {a: b, c: d, e: f, g: h}, annotations: {i: j, k: l}}, spec: {hostPID: false, hostIPC: false, tolerations: [{key: k, operator: Exists}]}}`), "native"},
		"a label and a selector of it":  {merge(`{metadata: {labels: {app: other, c: d, e: f, g: h}, annotations: {i: j, k: l}}, spec: {hostPID: false, nodeSelector: {of: "{{ request.object.metadata.labels.app }}"}}}`), "native"},
		"what is deep":                  {patch(`- {op: add, path: /spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-1/matchExpressions/-1, value: {key: k, operator: Exists}}`), "native"},
		"two elements of one list":      {patch("- {op: add, path: /spec/tolerations/-, value: {key: k}}\n        - {op: add, path: /spec/tolerations/-, value: {key: l}}"), "native"},
		"pull secrets":                  {merge(`{spec: {imagePullSecrets: [{name: t}]}}`), "native"},
		"two pull secrets":              {merge(`{spec: {imagePullSecrets: [{name: u}, {name: t}]}}`), "native"},
		"a test":                        {merge(`{metadata: {labels: {tested: "yes"}}, spec: {containers: [{<(image): "j*"}]}}`), "native"},
		"a test of volumes":             {merge(`{metadata: {labels: {tested: "yes"}}, spec: {volumes: [{<(emptyDir): {}}]}}`), "native"},
		"a variable in a mere test":     {merge(`{spec: {containers: [{<(image): "j*", image: "x-{{ request.object.metadata.labels.x }}"}]}}`), "webhook KV201"},
		"a key that may be missing":     {"    preconditions: {all: [{key: \"{{ request.object.metadata.labels.x }}\", operator: Equals, value: a}]}\n" + merge(`{spec: {containers: [{<(image): "j*"}]}}`), "webhook KV201"},
		"a field that goes":             {merge(`{metadata: {annotations: {note: null}}}`), "native"},
		"an empty map":                  {merge(`{spec: {volumes: [{name: w, emptyDir: {}}]}}`), "native"},
		"a variable":                    {merge(`{metadata: {labels: {u: "{{ request.userInfo.username }}", a: "is-{{ request.object.metadata.labels.app }}"}}}`), "native"},
		"a variable and a condition":    {merge(`{metadata: {labels: {(app): b, a: "{{ request.object.metadata.labels.x }}"}}}`), "native"},
		"a default":                     {merge("{metadata: {labels: {a: \"{{ request.object.metadata.annotations.note || 'none' }}\"}}}"), "native"},
		"preconditions":                 {"    preconditions: {all: [{key: \"{{ request.object.spec.terminationGracePeriodSeconds || `0` }}\", operator: GreaterThan, value: 50}]}\n" + merge(`{spec: {terminationGracePeriodSeconds: 50}}`), "native"},
		"an exclusion":                  {"    exclude: {any: [{resources: {selector: {matchLabels: {app: b}}}}]}\n" + merge(`{spec: {hostPID: true}}`), "native"},
		"a name to come":                {merge(`{metadata: {labels: {a: b}}}`), "native"},
		"a JSON patch":                  {patch(`- {op: add, path: /spec/nodeSelector/zone, value: z}`), "native"},
		"an element at the end":         {patch(`- {op: add, path: /spec/tolerations/-, value: {key: k, operator: Exists}}`), "native"},
		"a container's mounts":          {patch(`- {op: add, path: /spec/containers/0/volumeMounts/-, value: {name: v, mountPath: /v}}`), "native"},
		"what is removed":               {patch("- {op: remove, path: /metadata/annotations/note}\n        - {op: remove, path: /spec/hostNetwork}"), "native"},
		"two parents":                   {patch("- {op: add, path: /spec/affinity/podAffinity/x, value: y}"), "webhook KV201"},
		"two in one parent":             {patch("- {op: add, path: /metadata/annotations/a, value: b}\n        - {op: add, path: /metadata/annotations/c~1d, value: e}"), "native"},
		"a replacement":                 {patch(`- {op: replace, path: /spec/hostNetwork, value: false}`), "native"},
		"a value in quotes":             {patch(`- {op: add, path: /metadata/labels/u, value: "u-{{ request.userInfo.username }}"}`), "native"},
		"a value without quotes":        {patch(`- {op: add, path: /metadata/labels/u, value: u-{{ request.userInfo.username }}}`), "webhook KV201"},
		"a test operation":              {patch(`- {op: test, path: /spec/hostNetwork, value: false}`), "webhook KV201"},
		"images of a loop":              {loop("list: request.object.spec.containers\n        patchStrategicMerge: {spec: {containers: [{name: \"{{ element.name }}\", image: \"reg/{{ element.image }}\"}]}}"), "native"},
		"some of a loop":                {loop("list: request.object.spec.containers\n        preconditions: {all: [{key: \"{{ element.image }}\", operator: Equals, value: \"*:latest\"}]}\n        patchStrategicMerge: {spec: {containers: [{name: \"{{ element.name }}\", image: \"reg/{{ element.image }}\"}]}}"), "native"},
		"keys of a loop":                {loop("list: request.object.spec.containers\n        patchStrategicMerge: {metadata: {annotations: {\"c/{{ element.name }}\": v}}}"), "native"},
		"operations of a loop":          {loop("list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/env/-\", value: {name: I, value: \"{{ element.image }}\"}}"), "native"},
		"a list that is missing":        {loop("list: request.object.spec.volumes\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/volumes/{{elementIndex}}/emptyDir/sizeLimit\", value: 1Gi}"), "native"},
		"a list that may be missing":    {loop("list: request.object.spec.volumes[]\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/volumes/{{elementIndex}}/emptyDir/sizeLimit\", value: 1Gi}"), "native"},
		"two entries":                   {loop("list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/tty\", value: true}\n      - list: request.object.spec.containers\n        patchesJson6902: |-\n          - {op: add, path: \"/spec/containers/{{elementIndex}}/stdin\", value: true}"), "native"},
		"ascending merges":              {loop("list: request.object.spec.containers\n        order: Ascending\n        patchStrategicMerge: {spec: {containers: [{name: \"{{ element.name }}\", tty: true}]}}"), "webhook KV201"},
		"a number for a text":           {merge(`{metadata: {labels: {a: 1}}}`), "webhook KV201"},
		"a field that is not":           {merge(`{spec: {nope: 1}}`), "webhook KV201"},
		"two templates":                 {merge(`{spec: {containers: [{(name): a, tty: true}, {(name): b, stdin: true}]}}`), "webhook KV201"},
		"a directive":                   {merge(`{spec: {securityContext: {$patch: replace, runAsUser: 1}}}`), "webhook KV201"},
		"DELETE":                        {"    match: {any: [{resources: {kinds: [Pod], operations: [DELETE]}}]}\n" + merge(`{spec: {hostPID: true}}`), "webhook KV201"},
	} {
		rule := mutateRule(tt.body)
		if strings.Contains(tt.body, "match:") {
			rule = "  - name: r\n" + tt.body + "\n"
		}
		p := translateText(t, mutateHead+rule, setting{release: 36, mutations: true})
		if got := strings.TrimSuffix(p.targets(), " KV328"); got != tt.want {
			t.Errorf("%s: %s, want %s: %v", name, got, tt.want, p.result.Diagnostics)
			continue
		}
		if tt.want == "native" {
			for note, request := range mutateRequests() {
				bothMutate(t, name+", "+note, p.result, nil, request)
			}
		}
	}
	warned := strings.Replace(mutateHead, "  rules:", "  emitWarning: true\n  rules:", 1) + mutateRule(merge(`{spec: {hostNetwork: false}}`))
	if p := translateText(t, warned, setting{release: 36, mutations: true}); p.targets() != "webhook KV201" {
		t.Errorf("a rule that tells users of its changes: %s", p.targets())
	}
}

// An object whose lists have elements without their keys is changed as any other.
func TestMutateElementsWithoutKeys(t *testing.T) {
	t.Parallel()
	const request = `
operation: CREATE
name: s
namespace: default
kind: {group: "", version: v1, kind: ServiceAccount}
resource: {group: "", version: v1, resource: serviceaccounts}
userInfo: {username: u}
object: {apiVersion: v1, kind: ServiceAccount, metadata: {name: s, namespace: default}, secrets: [SECRETS], imagePullSecrets: [{}]}
`
	for name, patch := range map[string]string{
		"labels":                  `{metadata: {labels: {a: b}}}`,
		"labels and a field":      `{metadata: {labels: {a: b, +(c): d}}, automountServiceAccountToken: false}`,
		"a label, where it is no": `{metadata: {labels: {+(a): b}}}`,
	} {
		p := translateText(t, mutateHead+"  - name: r\n    match: {any: [{resources: {kinds: [ServiceAccount]}}]}\n    mutate: {patchStrategicMerge: "+patch+"}\n", setting{release: 36, mutations: true})
		if got := p.targets(); !strings.HasPrefix(got, "native") {
			t.Errorf("%s: %s: %v", name, got, p.result.Diagnostics)
			continue
		}
		for _, secrets := range []string{"", "{}", "{name: a}, {}", "{namespace: x}, {name: a}"} {
			bothMutate(t, name+" with the secrets "+secrets, p.result, nil, strings.Replace(request, "SECRETS", secrets, 1))
		}
	}
}

// What the native form of a rule says is as short as a person would write it.
func TestMutateRuleText(t *testing.T) {
	t.Parallel()
	merge := func(patch string) string { return "    mutate: {patchStrategicMerge: " + patch + "}" }
	patch := func(text string) string { return "    mutate:\n      patchesJson6902: |-\n        " + text }
	loop := func(entry string) string { return "    mutate:\n      foreach:\n      - " + entry }
	for name, tt := range map[string]struct{ body, want string }{
		"what is asked is there": {"    preconditions: {all: [{key: \"{{ request.object.metadata.labels.app || '' }}\", operator: Equals, value: a}]}\n" + merge(`{metadata: {annotations: {is: "{{ request.object.metadata.labels.app || 'none' }}"}}}`), `
object.metadata.?labels.?app.orValue('') == 'a'
Object{
  metadata: Object.metadata{
    annotations: {'is': object.metadata.labels.app != '' ? object.metadata.labels.app : 'none'}
  }
}`},
		"an apply configuration and a JSON patch": {
			merge(`{spec: {hostPID: false, containers: [{(name): "*", securityContext: {privileged: false, capabilities: {drop: [ALL]}}}]}}`), `
Object{
  spec: Object.spec{
    containers: object.spec.containers.map(container,
      Object.spec.containers{
        name: container.name,
        securityContext: Object.spec.containers.securityContext{privileged: false}
      }
    ),
    hostPID: false
  }
}
object.spec.containers.transformList(i, container,
  has(container.securityContext.capabilities)
    ? JSONPatch{
        op: 'add',
        path: '/spec/containers/' + string(i) + '/securityContext/capabilities/drop',
        value: ['ALL']
      }
    : JSONPatch{
        op: 'add',
        path: '/spec/containers/' + string(i) + '/securityContext/capabilities',
        value: {'drop': ['ALL']}
      }
)`},
		"a key and its map": {patch(`- {op: add, path: /spec/nodeSelector/zone, value: z}`), `
[
  has(object.spec.nodeSelector)
    ? JSONPatch{op: 'add', path: '/spec/nodeSelector/zone', value: 'z'}
    : JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {'zone': 'z'}}
]`},
		"a longer element and its list": {patch(`- {op: add, path: /spec/tolerations/-, value: {key: a-long-key, operator: Exists, tolerationSeconds: 3}}`), `
(
  has(object.spec.tolerations) ? [] : [JSONPatch{op: 'add', path: '/spec/tolerations', value: []}]
) + [
  JSONPatch{
    op: 'add',
    path: '/spec/tolerations/-',
    value: {'key': dyn('a-long-key'), 'operator': dyn('Exists'), 'tolerationSeconds': dyn(3)}
  }
]`},
		"a list that must be there": {loop("list: request.object.spec.initContainers\n        patchStrategicMerge: {spec: {initContainers: [{name: \"{{ element.name }}\", image: \"r/{{ element.image }}\"}]}}"), `
Object{
  spec: Object.spec{
    initContainers: object.spec.initContainers.map(container,
      Object.spec.initContainers{name: container.name, image: 'r/' + container.image}
    )
  }
}`},
		"what is deep": {patch(`- {op: add, path: /spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/-1/labelSelector/matchLabels/a, value: b}`), `
variables.requiredDuringSchedulingIgnoredDuringExecution: object.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
variables.hasRequiredDuringSchedulingIgnoredDuringExecution: object.spec.?affinity.?podAffinity.?requiredDuringSchedulingIgnoredDuringExecution.hasValue() &&
size(variables.requiredDuringSchedulingIgnoredDuringExecution) > 0
(has(object.spec.affinity) ? [] : [JSONPatch{op: 'add', path: '/spec/affinity', value: {}}]) +`},
	} {
		p := translateText(t, mutateHead+mutateRule(tt.body), setting{release: 36, mutations: true})
		var got strings.Builder
		for _, o := range p.result.Mutating[:1] {
			for _, v := range o.Policy.Spec.Variables {
				got.WriteString("\nvariables." + v.Name + ": " + v.Expression)
			}
			for _, c := range o.Policy.Spec.MatchConditions {
				got.WriteString("\n" + c.Expression)
			}
			for _, m := range o.Policy.Spec.Mutations {
				if m.JSONPatch != nil {
					got.WriteString("\n" + m.JSONPatch.Expression)
				} else {
					got.WriteString("\n" + m.ApplyConfiguration.Expression)
				}
			}
		}
		if !strings.HasPrefix(got.String(), tt.want) {
			t.Errorf("%s:%s\nwant:%s", name, got.String(), tt.want)
		}
	}
}
