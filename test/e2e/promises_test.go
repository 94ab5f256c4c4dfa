//go:build e2e

package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/test/e2e/testcluster"
)

// deniedHere denies everything in a namespace, and says whether it sees a spec.
const deniedHere = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: promises}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: ["*"], scope: Namespaced}]
  validations:
  - expression: "false"
    messageExpression: >-
      'a policy was asked, spec: ' + string(has(object.spec)) +
      (has(object.metadata.name) ? '' : ', no name') +
      (has(object.metadata.annotations) || has(object.metadata.finalizers) ? ', empty metadata' : '') +
      (has(object.spec) && has(object.spec.volumes) || has(object.spec) && has(object.spec.nodeSelector) ? ', empty lists' : '')
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: promises}
spec:
  policyName: promises
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: promises}}}
`

// gizmos are a kind of which nobody knows the fields.
const gizmos = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.promises.example}
spec:
  group: promises.example
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos, singular: gizmo, listKind: GizmoList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// What schema/gen/required.go promises of an object holds before a policy is asked: who
// sends one without it is answered by validation, while a policy denies everything. What is empty
// is gone by then.
func TestPromises(t *testing.T) {
	shared.Namespace(t, "promises", nil)
	shared.Apply(t, gizmos)
	shared.Apply(t, deniedHere)
	const asked = "a policy was asked"
	testcluster.Soon(t, "everything is denied", func() bool {
		err := created(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`)
		return err != nil && strings.Contains(err.Error(), asked)
	})
	const template = `template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}`
	for _, c := range []struct{ field, object string }{
		{"metadata.name", `{apiVersion: v1, kind: ConfigMap}`},
		{"metadata.name", `{apiVersion: promises.example/v1, kind: Gizmo}`},
		{"spec.containers", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}`},
		{"spec.containers[0].image", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}`},
		{"spec.containers[0].name", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{image: i}]}}`},
		{"spec.initContainers[0].image", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {initContainers: [{name: i}], containers: [{name: c, image: i}]}}`},
		{"spec.volumes[0].hostPath.path", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}], volumes: [{name: v, hostPath: {}}]}}`},
		{"spec.template", `{apiVersion: v1, kind: ReplicationController, metadata: {name: r}, spec: {selector: {a: b}}}`},
		{"spec.template.spec.containers[0].image", `{apiVersion: v1, kind: ReplicationController, metadata: {name: r}, spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}`},
		{"spec.template.spec.containers[0].image", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: s}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}}}`},
		{"spec.template.spec.containers[0].image", `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}}`},
		{"spec.jobTemplate.spec.template.spec.containers", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}, spec: {schedule: "@daily", jobTemplate: {}}}`},
		{"spec.selector", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {` + template + `}}`},
		{"selector", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}, spec: {` + template + `}}`},
		{"spec.selector", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: d}, spec: {` + template + `}}`},
		{"spec.selector", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {` + template + `}}`},
		{"rules[0].verbs", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rules: [{apiGroups: [""], resources: [pods]}]}`},
		{"spec.rules[0].http.paths", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {rules: [{http: {}}]}}`},
		{"spec.rules[0].http.paths[0].pathType", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i}, spec: {rules: [{http: {paths: [{path: /, backend: {service: {name: s, port: {number: 80}}}}]}}]}}`},
		{"spec.ports[0].port", `{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{name: p}]}}`},
	} {
		if shared.release < 34 && strings.Contains(c.object, "StatefulSet") && strings.HasPrefix(c.field, "spec.template.") {
			continue // the template is not validated, but the Pods that are made of it
		}
		err := created(t, c.object)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.field) || strings.Contains(err.Error(), asked) {
			t.Errorf("without %s: %v", c.field, err)
		}
	}
	const gizmo = `{apiVersion: promises.example/v1, kind: Gizmo, metadata: {name: g, annotations: {}, finalizers: []}, spec: {l: []}}`
	testcluster.Soon(t, "the metadata of any kind have nothing empty", func() bool {
		err := created(t, gizmo)
		return err != nil && strings.HasSuffix(err.Error(), asked+", spec: true")
	})
	for _, object := range []string{
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np}}`,
		`{apiVersion: v1, kind: LimitRange, metadata: {name: l}}`,
		`{apiVersion: v1, kind: LimitRange, metadata: {generateName: l-}}`,
		`{apiVersion: promises.example/v1, kind: Gizmo, metadata: {generateName: g-}, spec: {}}`,
		`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {}, finalizers: []}, spec: {containers: [{name: c, image: i}], automountServiceAccountToken: false, volumes: [], nodeSelector: {}}}`,
	} {
		if err := created(t, object); err == nil || !strings.HasSuffix(err.Error(), asked+", spec: true") {
			t.Errorf("%s has no spec, no name or what is empty: %v", object, err)
		}
	}
}

// created says how a dry run of a creation in the namespace goes.
func created(t *testing.T, text string) error {
	t.Helper()
	o := testcluster.Read(t, text)[0]
	o.SetNamespace("promises")
	_, err := shared.judged.Resource(guessed(o)).Namespace("promises").Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func guessed(o *unstructured.Unstructured) apischema.GroupVersionResource {
	resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return resource
}
