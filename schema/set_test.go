package schema_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kvap/kvap/schema"
)

// describe is a field along a path, such as spec.containers[].image, as text:
// its kind and format, with ! where every step from its parent is required.
// [] is an element of a list or map.
func describe(t *schema.Type, path string) string {
	required := false
	for step := range strings.SplitSeq(strings.ReplaceAll(path, "[]", ".[]"), ".") {
		if t == nil {
			return "nothing"
		}
		if step == "[]" {
			t, required = t.Elem, false
			continue
		}
		f := t.Fields[step]
		if f == nil {
			return "nothing"
		}
		t, required = f.Type, f.Required
	}
	text := kindName(t.Kind)
	if t.Format != schema.AnyText {
		text += "/" + [...]string{"", "quantity", "duration", "date-time", "byte"}[t.Format]
	}
	if t.Open && t.Kind == schema.Object {
		text += " open"
	}
	if t.Nullable {
		text += " nullable"
	}
	if required {
		text += "!"
	}
	return text
}

func kindName(k schema.Kind) string {
	return [...]string{"any", "bool", "int", "number", "string", "int-or-string", "object", "map", "list"}[k]
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		kind schema.GVK
		path string
		want string
	}{
		{pod, "apiVersion", "string!"},
		{pod, "kind", "string!"},
		{pod, "metadata", "object!"},
		{pod, "metadata.name", "string"},
		{pod, "metadata.labels", "map"},
		{pod, "metadata.labels[]", "string"},
		{pod, "metadata.creationTimestamp", "string/date-time"},
		{pod, "metadata.managedFields[].fieldsV1", "object open"},
		{pod, "metadata.ownerReferences[].name", "string!"},
		{pod, "spec", "object!"},
		{pod, "spec.containers", "list!"},
		{pod, "spec.containers[]", "object"},
		{pod, "spec.containers[].name", "string!"},
		{pod, "spec.containers[].image", "string!"},
		{pod, "spec.containers[].resources", "object"},
		{pod, "spec.containers[].resources.limits", "map"},
		{pod, "spec.containers[].resources.limits[]", "string/quantity"},
		{pod, "spec.containers[].livenessProbe.httpGet.port", "int-or-string!"},
		{pod, "spec.containers[].securityContext.runAsUser", "int"},
		{pod, "spec.containers[].securityContext.privileged", "bool"},
		{pod, "spec.initContainers", "list"},
		{pod, "spec.volumes[].hostPath.path", "string!"},
		{pod, "spec.volumes[].emptyDir.sizeLimit", "string/quantity"},
		{pod, "spec.contaners", "nothing"},
		{pod, "status", "object"},
		{gvk("apps/v1 Deployment"), "spec", "object!"},
		{gvk("apps/v1 Deployment"), "spec.replicas", "int"},
		{gvk("apps/v1 Deployment"), "spec.selector", "object!"},
		{gvk("apps/v1 Deployment"), "spec.template", "object!"},
		{gvk("apps/v1 Deployment"), "spec.template.metadata", "object"},
		{gvk("apps/v1 Deployment"), "spec.template.spec", "object!"},
		{gvk("apps/v1 Deployment"), "spec.template.spec.containers", "list!"},
		{gvk("apps/v1 Deployment"), "spec.strategy.rollingUpdate.maxSurge", "int-or-string"},
		{gvk("apps/v1 ReplicaSet"), "spec.template", "object!"},
		{gvk("v1 ReplicationController"), "spec.template", "object!"},
		{gvk("apps/v1 StatefulSet"), "spec.volumeClaimTemplates[].metadata", "object"},
		{gvk("apps/v1 StatefulSet"), "spec.volumeClaimTemplates[].kind", "string"},
		{gvk("batch/v1 CronJob"), "spec", "object!"},
		{gvk("batch/v1 CronJob"), "spec.jobTemplate", "object!"},
		{gvk("batch/v1 CronJob"), "spec.jobTemplate.spec", "object!"},
		{gvk("batch/v1 CronJob"), "spec.jobTemplate.spec.template", "object!"},
		{gvk("batch/v1 CronJob"), "spec.jobTemplate.spec.template.spec.containers[].name", "string!"},
		{gvk("networking.k8s.io/v1 Ingress"), "spec", "object!"},
		{gvk("networking.k8s.io/v1 Ingress"), "spec.rules[].http.paths[].pathType", "string!"},
		{gvk("v1 PersistentVolumeClaim"), "spec.resources.requests[]", "string/quantity"},
		{gvk("v1 PersistentVolumeClaim"), "spec.accessModes[]", "string"},
		{gvk("autoscaling/v1 HorizontalPodAutoscaler"), "spec.targetCPUUtilizationPercentage", "int"},
		{gvk("autoscaling/v2 HorizontalPodAutoscaler"), "spec.metrics[].resource.target.averageValue", "string/quantity"},
		{gvk("autoscaling/v2 HorizontalPodAutoscaler"), "spec.scaleTargetRef.name", "string!"},
		{gvk("v1 Secret"), "data[]", "string/byte"},
		{gvk("v1 LimitRange"), "spec.limits", "list nullable"},
		{gvk("rbac.authorization.k8s.io/v1 RoleBinding"), "roleRef.name", "string!"},
		{gvk("autoscaling/v1 Scale"), "spec.replicas", "int"},
		{gvk("v1 PodExecOptions"), "command", "list nullable"},
		{gvk("v1 PodExecOptions"), "command[]", "string"},
		{gvk("v1 PersistentVolumeClaim"), "spec.dataSource.apiGroup", "string nullable"},
		{gvk("v1 PersistentVolumeClaim"), "spec.dataSource.kind", "string!"},
		{gvk("authentication.k8s.io/v1 TokenRequest"), "spec.boundObjectRef", "object nullable"},
		{gvk("v1 PodExecOptions"), "kind", "string!"},
		{gvk("v1 PodExecOptions"), "metadata", "nothing"},
		{gvk("policy/v1 Eviction"), "metadata", "object!"},
		{gvk("apps/v1 ControllerRevision"), "data", "any"},
	} {
		for _, release := range schema.Releases() {
			if got := describe(builtin(t, release).Type(c.kind), c.path); got != c.want {
				t.Errorf("%s: %s of %s is %s, want %s", release, c.path, c.kind, got, c.want)
			}
		}
	}
}

// Lists and maps that are there have an element, but for those that are encoded when they are empty.
func TestFilled(t *testing.T) {
	for _, c := range []struct {
		kind, field string
		want        bool
	}{
		{"v1 Pod", "volumes", true}, {"v1 Pod", "containers", true}, {"v1 Pod", "nodeSelector", true},
		{"v1 Service", "ports", true}, {"networking.k8s.io/v1 NetworkPolicy", "ingress", true},
		{"v1 LimitRange", "limits", false}, {"storage.k8s.io/v1 CSINode", "drivers", false},
	} {
		for _, release := range schema.Releases() {
			spec := builtin(t, release).Type(gvk(c.kind)).Fields["spec"].Type
			if got := spec.Fields[c.field].Type.Filled; got != c.want {
				t.Errorf("%s: %s of %s: %v", release, c.field, c.kind, got)
			}
		}
	}
	rules := builtin(t, "1.36").Type(gvk("rbac.authorization.k8s.io/v1 Role")).Fields["rules"].Type
	if rules.Filled || !rules.Elem.Fields["verbs"].Type.Filled {
		t.Error("a Role may have no rules, but a rule has verbs")
	}
}

// gvk reads a kind as GVK.String writes it.
func gvk(text string) schema.GVK {
	apiVersion, kind, _ := strings.Cut(text, " ")
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	return schema.GVK{Group: group, Version: version, Kind: kind}
}

func TestUnknownType(t *testing.T) {
	s := builtin(t, "1.36")
	if got := s.Type(gvk("example.com/v1 Pod")); got != nil {
		t.Errorf("an unknown kind has the type %v", got)
	}
	if got := describe(s.ObjectMeta(), "labels[]"); got != "string" {
		t.Errorf("a label is %s", got)
	}
	if _, err := schema.Builtin("1.29"); err == nil || !strings.Contains(err.Error(), "1.30, 1.31") {
		t.Errorf("Builtin(1.29) says %v, want the releases there are", err)
	}
}

// TestEveryType walks the types of every release: each definition decodes, and
// the only values without a type are those that are any JSON.
func TestEveryType(t *testing.T) {
	for _, release := range schema.Releases() {
		s := builtin(t, release)
		anys := map[string]bool{}
		seen := map[*schema.Type]bool{}
		var walk func(path string, typ *schema.Type)
		walk = func(path string, typ *schema.Type) {
			if seen[typ] {
				return
			}
			seen[typ] = true
			switch typ.Kind {
			case schema.Any:
				anys[path] = true
			case schema.Map, schema.List:
				walk(path, typ.Elem)
			case schema.Object:
				if len(typ.Fields) == 0 && !typ.Open {
					t.Errorf("%s: %s has no fields", release, path)
				}
				for name, f := range typ.Fields {
					walk(path+"."+name, f.Type)
				}
			}
		}
		for _, r := range s.Resources("*", "*", "*") {
			if s.Type(r.GVK) == nil {
				t.Errorf("%s: %s has no type", release, r.GVK)
				continue
			}
			walk(r.Kind, s.Type(r.GVK))
			for _, sub := range r.Subresources {
				if s.Type(sub.GVK) == nil {
					t.Errorf("%s: %s/%s has a body without a type: %s", release, r.Plural, sub.Name, sub.GVK)
				}
			}
		}
		for path := range anys {
			if !anyJSON(path) {
				t.Errorf("%s: %s has no type", release, path)
			}
		}
	}
}

// anyJSON tells of the fields that hold any JSON. A path names the first place
// where a definition was met.
func anyJSON(path string) bool {
	last := path[strings.LastIndex(path, ".")+1:]
	switch last {
	case "items", "additionalItems", "additionalProperties", "default", "example", "enum", "dependencies":
		return strings.HasPrefix(path, "CustomResourceDefinition.")
	case "data", "parameters":
		return true
	}
	return false
}

func TestRecursiveType(t *testing.T) {
	s := builtin(t, "1.36")
	root := s.Type(gvk("apiextensions.k8s.io/v1 CustomResourceDefinition"))
	props := root.Fields["spec"].Type.Fields["versions"].Type.Elem.Fields["schema"].Type.Fields["openAPIV3Schema"].Type
	if inner := props.Fields["not"].Type; inner != props {
		t.Errorf("JSONSchemaProps.not is another type: %v", inner)
	}
}

func TestTypesAreMadeOnce(t *testing.T) {
	s := builtin(t, "1.36")
	if first, second := s.Type(pod), s.Type(pod); first != second {
		t.Error("a second call makes a new type")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for _, r := range s.Resources("*", "*", fmt.Sprintf("*%c*", 'a'+i)) {
				s.Type(r.GVK)
			}
		})
	}
	all.Wait()
}

// TestNewestRelease: its types are its own, not those of the release before.
func TestNewestRelease(t *testing.T) {
	s := builtin(t, "1.37")
	if got := s.Release(); got != "1.37" {
		t.Errorf("the release of 1.37 is %s", got)
	}
	if s.Type(gvk("scheduling.k8s.io/v1beta1 PodGroup")) == nil || s.Type(gvk("networking.k8s.io/v1beta1 ServiceCIDR")) != nil {
		t.Error("the kinds of 1.37 are those of 1.36")
	}
	if s.Type(pod).Fields["spec"].Type.Fields["evictionResponders"] == nil {
		t.Error("a Pod of 1.37 lacks spec.evictionResponders")
	}
}

// TestMandatory: what the OpenAPI requires is kept apart from what CEL may rely on.
func TestMandatory(t *testing.T) {
	s := builtin(t, "1.36")
	port := s.Type(gvk("v1 Service")).Fields["spec"].Type.Fields["ports"].Type.Elem.Fields["port"]
	if !port.Mandatory || !port.Required {
		t.Errorf("a port of a Service is mandatory %t, required %t; want both", port.Mandatory, port.Required)
	}
	image := s.Type(pod).Fields["spec"].Type.Fields["containers"].Type.Elem.Fields["image"]
	if image.Mandatory || !image.Required {
		t.Errorf("an image is mandatory %t, required %t; want false, true: validation insists on it", image.Mandatory, image.Required)
	}
	rules := s.Type(gvk("rbac.authorization.k8s.io/v1 ClusterRole")).Fields["rules"]
	if rules.Required {
		t.Error("a ClusterRole may have no rules")
	}
}
