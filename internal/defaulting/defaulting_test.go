package defaulting_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kvap/kvap/internal/defaulting"
	"github.com/kvap/kvap/internal/textdiff"
	"github.com/kvap/kvap/schema"
)

func newDefaulter(t *testing.T) *defaulting.Defaulter {
	t.Helper()
	builtin, err := schema.Builtin("1.36")
	if err != nil {
		t.Fatal(err)
	}
	schemas, found := builtin.WithCRDs([]byte(widgets))
	if found.HasErrors() {
		t.Fatal(found)
	}
	return defaulting.New(schemas)
}

func object(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// The end-to-end test of the same name holds all kinds to a real API server.
func TestDefaults(t *testing.T) {
	d := newDefaulter(t)
	for name, c := range map[string]struct{ given, want string }{
		"a service": {
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP, internalTrafficPolicy: Cluster, sessionAffinity: None, ports: [{port: 80, protocol: TCP, targetPort: 80}]}, status: {loadBalancer: {}}}",
		},
		"requests of limits, in a Pod": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: 'a:1', resources: {limits: {cpu: 1}}}]}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: 'a:1', imagePullPolicy: IfNotPresent, resources: {limits: {cpu: '1'}, requests: {cpu: '1'}}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}], " +
				"dnsPolicy: ClusterFirst, enableServiceLinks: true, restartPolicy: Always, schedulerName: default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30}, status: {}}",
		},
		"none in a template": {
			"{apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {spec: {containers: [{name: a, image: a, resources: {limits: {cpu: 1}}}]}}}",
			"{apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {metadata: {}, spec: {containers: [{name: a, image: a, imagePullPolicy: Always, resources: {limits: {cpu: '1'}}, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}], " +
				"dnsPolicy: ClusterFirst, restartPolicy: Always, schedulerName: default-scheduler, securityContext: {}, terminationGracePeriodSeconds: 30}}}",
		},
		"what is said twice": {
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {key: a}}",
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque, data: {key: YQ==}}",
		},
		"the label of a namespace": {
			"{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
			"{apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {kubernetes.io/metadata.name: a}}, spec: {}, status: {phase: Active}}",
		},
		"none of its kind": {
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: all}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: all}}",
		},
		"a custom kind": {
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: null, parts: [{}, {note: null}], sets: {a: {}}}}",
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: small, parts: [{count: 1, note: none}, {count: 1, note: null}], sets: {a: {set: true}}}}",
		},
		"a custom kind with nothing": {
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}",
			"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {size: large}}",
		},
		"a kind that is not known": {
			"{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}",
			"{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := object(t, c.given)
			got := d.Fill(given)
			text, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := textdiff.Values(object(t, c.want), object(t, string(text))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := textdiff.Values(object(t, c.given), given); diff != "" {
				t.Errorf("what was given was changed:\n%s", diff)
			}
			if diff := textdiff.Values(got, d.Fill(got)); diff != "" {
				t.Errorf("filled in again it changes:\n%s", diff)
			}
		})
	}
}

func TestFillsIn(t *testing.T) {
	d := newDefaulter(t)
	for _, c := range []struct {
		kind, path string
		want       bool
	}{
		{"v1 Service", "spec type", true},
		{"v1 Service", "spec ports [] targetPort", true},
		{"v1 Service", "spec ports [] nodePort", false},
		{"v1 Service", "spec selector", false},
		{"v1 Pod", "spec containers [] imagePullPolicy", true},
		{"v1 Pod", "spec containers [] resources", true},
		{"v1 Pod", "spec containers [] resources requests", false},
		{"v1 Pod", "spec containers [] livenessProbe", false},
		{"v1 Pod", "spec containers [] livenessProbe periodSeconds", true},
		{"v1 Pod", "spec containers [] securityContext", false},
		{"v1 Pod", "spec securityContext", true},
		{"v1 Pod", "spec volumes [] configMap defaultMode", true},
		{"v1 Pod", "spec priority", true},
		{"v1 Pod", "spec nodeName", false},
		{"v1 Pod", "metadata uid", true},
		{"v1 Pod", "metadata labels", false},
		{"v1 Pod", "metadata labels app", false},
		{"apps/v1 Deployment", "spec replicas", true},
		{"apps/v1 Deployment", "spec strategy", true},
		{"apps/v1 Deployment", "spec strategy rollingUpdate", false}, // not of Recreate
		{"apps/v1 Deployment", "spec template spec dnsPolicy", true},
		{"apps/v1 Deployment", "spec template spec enableServiceLinks", false}, // of Pods alone
		{"batch/v1 Job", "spec completions", false},                            // not beside parallelism
		{"example.com/v1 Widget", "spec", true},
		{"example.com/v1 Widget", "spec size", true},
		{"example.com/v1 Widget", "spec parts [] count", true},
		{"example.com/v1 Widget", "spec parts", false},
	} {
		version, kind, _ := strings.Cut(c.kind, " ")
		group, number, grouped := strings.Cut(version, "/")
		if !grouped {
			group, number = "", version
		}
		if got := d.FillsIn(schema.GVK{Group: group, Version: number, Kind: kind}, strings.Fields(c.path)); got != c.want {
			t.Errorf("%s: %s: %v", c.kind, c.path, got)
		}
	}
}

const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
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
              default: {size: large}
              properties:
                size: {type: string, default: small}
                sets: {type: object, additionalProperties: {type: object, properties: {set: {type: boolean, default: true}}}}
                parts: {type: array, items: {type: object, properties: {count: {type: integer, default: 1}, note: {type: string, nullable: true, default: none}}}}
`
