//go:build e2e && kyverno

package kyverno

// policies are of all sorts that move: native and for the webhook, of a namespace and of
// the cluster, with admission: false and without it, in CEL, with an exception; they
// change objects, change others, and generate.
const policies = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labelled}
spec:
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop], names: ["probe*"]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: spared, namespace: shop}
spec:
  exceptions: [{policyName: labelled, ruleNames: [labelled]}]
  match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop], names: [probe-spared]}}]}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: asks}
spec:
  validationFailureAction: Enforce
  rules:
  - name: asks
    match: {any: [{resources: {kinds: [Secret], namespaces: [shop]}}]}
    context:
    - {name: here, apiCall: {urlPath: /api/v1/namespaces/shop, jmesPath: metadata.name}}
    validate:
      message: no team in {{ here }}
      deny:
        conditions:
          all:
          - {key: "{{ request.object.metadata.labels.team || '' }}", operator: Equals, value: ""}
          - {key: "{{ here }}", operator: Equals, value: shop}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: foreground}
spec:
  background: false
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Service], namespaces: [shop]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: kyverno.io/v1
kind: Policy
metadata: {name: own, namespace: shop}
spec:
  validationFailureAction: Enforce
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [ServiceAccount]}}]}
    validate: {message: no team, pattern: {metadata: {labels: {team: "?*"}}}}
---
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: expressed}
spec:
  validationActions: [Deny]
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [resourcequotas]}]
  validations: [{expression: "has(object.metadata.labels) && 'team' in object.metadata.labels", message: no team}]
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stamped}
spec:
  rules:
  - name: stamp
    match: {any: [{resources: {kinds: [LimitRange], namespaces: [shop]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {+(team): none, stamped: "yes"}}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: touched}
spec:
  rules:
  - name: touch
    match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop], names: [trigger]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: target}]
      patchStrategicMerge: {metadata: {annotations: {seen: "{{ request.object.data.n }}"}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: quota}
spec:
  rules:
  - name: made
    match: {any: [{resources: {kinds: [Namespace], names: ["generated-*"]}}]}
    generate:
      apiVersion: v1
      kind: ResourceQuota
      name: made
      namespace: "{{ request.object.metadata.name }}"
      synchronize: true
      data: {spec: {hard: {pods: "10"}}}
`

// names are what the policies are called on the command line.
func names() []string {
	return []string{"labelled", "asks", "foreground", "shop/own", "expressed", "stamped", "touched", "quota"}
}

// A probe is an object by which a policy is asked; without its label it is to be denied.
type probe struct{ policy, text string }

func probes() []probe {
	return []probe{
		{policy: "labelled", text: "{apiVersion: v1, kind: ConfigMap, metadata: {name: probe, namespace: shop}}"},
		{policy: "asks", text: "{apiVersion: v1, kind: Secret, metadata: {name: probe, namespace: shop}}"},
		{policy: "foreground", text: "{apiVersion: v1, kind: Service, metadata: {name: probe, namespace: shop}, spec: {ports: [{port: 80}]}}"},
		{policy: "own", text: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: probe, namespace: shop}}"},
		{policy: "expressed", text: "{apiVersion: v1, kind: ResourceQuota, metadata: {name: probe, namespace: shop}}"},
	}
}
