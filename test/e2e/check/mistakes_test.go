//go:build e2e

package check

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// widgets is a custom kind with a field of each sort.
const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.acme.io}
spec:
  group: acme.io
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
              required: [name]
              properties:
                name: {type: string}
                count: {type: integer}
                ratio: {type: number}
                when: {type: string, format: date-time}
                day: {type: string, format: date}
                lasting: {type: string, format: duration}
                raw: {type: string, format: byte}
                port: {x-kubernetes-int-or-string: true}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                any: {x-kubernetes-preserve-unknown-fields: true}
                labels: {type: object, additionalProperties: {type: string}}
                maybe: {type: string, nullable: true}
                embedded: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object, properties: {a: {type: string}}}}}
                items:
                  type: array
                  items: {type: object, properties: {name: {type: string}, in: {type: string}, "a-b": {type: string}}}
`

// subjects are the resources that the expressions of the table are about.
func subjects() []admissionregistrationv1.Rule {
	return []admissionregistrationv1.Rule{
		{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "configmaps", "pods/status", "events"}},
		{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments", "statefulsets"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"customresourcedefinitions"}},
		{APIGroups: []string{"batch", ""}, APIVersions: []string{"v1"}, Resources: []string{"cronjobs", "secrets", "nodes", "services"}},
		{APIGroups: []string{"", "apps", "batch"}, APIVersions: []string{"v1"}, Resources: []string{
			"pods", "configmaps", "secrets", "services", "endpoints", "limitranges", "persistentvolumes", "replicationcontrollers", "resourcequotas",
			"serviceaccounts", "deployments", "daemonsets", "jobs", "cronjobs",
		}},
		{APIGroups: []string{"acme.io"}, APIVersions: []string{"v1"}, Resources: []string{"widgets"}},
		{APIGroups: []string{"*"}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
		{APIGroups: []string{"nowhere.io"}, APIVersions: []string{"v1"}, Resources: []string{"things"}},
	}
}

// expressions have every kind of mistake, and what is near to one.
func expressions() []string {
	return strings.Split(strings.TrimSpace(`
object.spec.hostNetwrok == true
!has(object.spec.nope) || object.spec.nope.deeper == 1
object.metadata.name == 1
object.metadata.name > 1
object.metadata.nam == 'a'
object.metadata.creationTimestamp == 'a'
object.metadata.creationTimestamp < timestamp('2020-01-01T00:00:00Z')
timestamp(object.metadata.creationTimestamp) < timestamp('2020-01-01T00:00:00Z')
object.metadata.labels.a == 1
object.metadata.labels['a'] == 'a'
object.metadata['name'] == 'a'
object.metadata.__namespace__ == 'a' || object.metadata.namespace == 'a'
object.metadata.managedFields.all(f, f.fieldsV1.a == 1)
object.metadata.ownerReferences.exists(o, o.kindd == 'a')
object.spec.containers.all(c, c.resources.limits['cpu'] == '1')
object.spec.containers.all(c, has(c.resources.requests) && c.imag != '')
object.spec.containers.all(c, c.ports.all(p, p.containerPort == 'a'))
object.spec.containers.all(c, c.livenessProbe.httpGet.port == 80 && c.livenessProbe.httpGet.port == 'a')
object.spec.containers[0].env[0].valueFrom.secretKeyRef.nam == ''
object.spec.?securityContext.?runAsNonRot.orValue(false) == true
object.spec.?securityContext.runAsNonRoot.orValue('') == ''
object.spec.volumes.all(v, v.emptyDir.sizeLimit == '1')
object.spec.template.spec.containers.all(c, c.image.startsWith(1))
object.spec.template.spec.hostPid == true
object.spec.replicas == '1' || object.spec.replicas > 1.5
object.data.all(k, k + 1 == 2)
object.data.a == b'a'
object.binaryData.a == 'a'
object.spec.capacity.storage == '1'
object.status.capacity['cpu'] == '1'
object.spec.versions.all(v, v.schema.openAPIV3Schema.properties.all(k, k == 1))
object.spec.versions[0].schema.openAPIV3Schema.properties['a'].nope == 1
object.spec.versions[0].schema.openAPIV3Schema.default == 1
object.spec.schedule == 1 || object.spec.jobTemplate.spec.template.spec.nope
object.spec == null || object.spec == {}
'a' in object.spec || object.spec.size() == 1
size(object.metadata.labels) == 'a'
object.spec.name == 1 && object.spec.count == 'a'
object.spec.ratio == 1 || object.spec.ratio == 1.0
object.spec.when < timestamp('2020-01-01T00:00:00Z') && object.spec.day < timestamp('2020-01-01T00:00:00Z')
object.spec.when == 'a'
object.spec.lasting < duration('1h') && object.spec.lasting == '1h'
object.spec.raw == b'a' || object.spec.raw == 'a'
object.spec.port == 1 || object.spec.port == 'a' || object.spec.port.nope
object.spec.free.x == 1
object.spec.any == 1
object.spec.labels.x == 1
object.spec.maybe == null
object.spec.maybe == 1
object.spec.embedded.spec.a == 1 || object.spec.embedded.metadata.name == 1 || object.spec.embedded.metadata.labels.a == 1
object.spec.items.all(i, i.in == 1 || i.__a_b__ == 'a')
object.spec.items.all(i, i.__in__ == 'a' || i.name.nope)
oldObject.metadata.nam == 'a'
request.kind.kind == 'a' && request.name == 'a' && request.options.nope == 1
namespaceObject.metadata.name == 'a' && namespaceObject.metadata.labels.a == 'a'
authorizer.group('').resource('pods').check('get').allowed()
authorizer.requestResource.check('get').allowed()
variables.good == 1
variables.bad == 1
variables.list.all(l, l == 1)
variables.names.all(n, n == 1)
[1, 2].distinct() == [1]
semver('1.0.0').major() == 'a'
object.kind == 1 && object.apiVersion == 1
object.metadata.annotations.exists(k, object.metadata.annotations[k] == 1)
object.spec.containers.filter(c, c.nope).map(c, c.name).size() == 0
object.spec.containers.map(c, {'a': c.nope}).size() == 0
(object.spec.containers + object.spec.initContainers).all(c, c.nope == 1)
object.spec.containers == object.spec.initContainers || object.spec == object.metadata
object.spec.hostname.orValue('') == ''
`), "\n")
}

// mistaken are policies with the expressions, about each of the subjects.
func mistaken() ([]*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
	var out []*admissionregistrationv1.ValidatingAdmissionPolicy
	for i, rule := range subjects() {
		for j, text := range expressions() {
			p := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			p.Name = fmt.Sprintf("mistake-%d-%d", i, j)
			p.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: rule},
			}}}
			err := yaml.Unmarshal([]byte(`[{name: good, expression: "object.metadata.name.size()"}, {name: bad, expression: object.metadata.nam},
{name: list, expression: object.spec.containers}, {name: names, expression: "object.spec.containers.map(c, c.name)"}]`), &p.Spec.Variables)
			if err != nil {
				return nil, err
			}
			p.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "(" + text + ") == true", MessageExpression: "string(" + text + ") + object.metadata.nam"}}
			out = append(out, p)
		}
	}
	return out, nil
}
