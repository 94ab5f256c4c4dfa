package verify

import "github.com/kvap/kvap/schema"

// podSecurity is a rule on the standards for Pods.
func (m *ruleMaker) podSecurity() obj {
	out := obj{"level": m.word("baseline", "restricted", "baseline", "privileged"), "version": m.word("latest", "v1.24", "v1.30")}
	if m.percent(50) {
		return out
	}
	exclude := one(m.choice,
		obj{"controlName": "Capabilities", "images": arr{m.word("*", "nginx*", "abc")}},
		obj{"controlName": "Host Namespaces"},
		obj{"controlName": "Seccomp", "images": arr{"*"}},
		obj{"controlName": "Privileged Containers", "images": arr{"*"}, "restrictedField": "spec.containers[*].securityContext.privileged", "values": arr{"true"}},
		obj{"controlName": "Host Ports", "images": arr{m.word("*", "a*")}},
		obj{"controlName": "HostPath Volumes"},
		obj{"controlName": "Sysctls", "restrictedField": "spec.securityContext.sysctls[*].name", "values": arr{m.word("abc", "net*")}},
	)
	out["exclude"] = arr{exclude}
	return out
}

// widget is what objects of the kind without a schema may look like.
func widget() *schema.Type {
	text := &schema.Type{Kind: schema.String}
	num := &schema.Type{Kind: schema.Int}
	anyType := &schema.Type{Kind: schema.Any}
	object := func(fields map[string]*schema.Type) *schema.Type {
		t := &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{}}
		for name, typ := range fields {
			t.Fields[name] = &schema.Field{Name: name, Type: typ}
		}
		return t
	}
	list := func(t *schema.Type) *schema.Type { return &schema.Type{Kind: schema.List, Elem: t} }
	m := &schema.Type{Kind: schema.Map, Elem: text}
	item := object(map[string]*schema.Type{"n": text, "v": anyType, "tags": list(text), "img": text, "o": object(map[string]*schema.Type{"p": num}), "m": m})
	return object(map[string]*schema.Type{"spec": object(map[string]*schema.Type{
		"x": anyType, "y": text, "z": num, "q": {Kind: schema.String, Format: schema.Quantity}, "d": {Kind: schema.String, Format: schema.Duration}, "b": {Kind: schema.Bool},
		"m": m, "l": list(item), "tags": list(text), "nums": list(num), "ll": list(list(text)),
		"deep": object(map[string]*schema.Type{"a": object(map[string]*schema.Type{"b": anyType, "c": list(item)})}), "a-b": text,
	})})
}

const gadgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.y.io}
spec:
  group: y.io
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
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
              size: {type: integer}
              ratio: {type: number}
              on: {type: boolean}
              port: {x-kubernetes-int-or-string: true}
              note: {type: string, nullable: true}
              tags: {type: array, items: {type: string}}
              m: {type: object, additionalProperties: {type: string}}
              nums: {type: object, additionalProperties: {type: integer}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              opt: {type: object, nullable: true, properties: {a: {type: string}, b: {type: integer}}}
              parts:
                type: array
                items:
                  type: object
                  required: [n]
                  properties:
                    n: {type: string}
                    v: {type: integer}
                    on: {type: boolean}
                    tags: {type: array, items: {type: string}}
                    sub: {type: object, properties: {x: {type: string}}}
`

// wanted are the fields of built-in kinds that rules are usually about.
func wanted(name string) bool {
	switch name {
	case "spec", "metadata", "labels", "annotations", "containers", "initContainers", "ephemeralContainers", "image", "name", "imagePullPolicy",
		"securityContext", "privileged", "runAsUser", "runAsNonRoot", "capabilities", "add", "drop", "hostNetwork", "hostPID",
		"volumes", "hostPath", "path", "emptyDir", "sizeLimit", "configMap", "resources", "limits", "requests", "ports", "containerPort", "hostPort",
		"env", "value", "valueFrom", "command", "args", "livenessProbe", "httpGet", "port", "scheme", "terminationGracePeriodSeconds",
		"serviceAccountName", "nodeSelector", "tolerations", "key", "effect", "operator", "template", "replicas", "selector", "matchLabels", "strategy", "type",
		"rollingUpdate", "maxUnavailable", "clusterIP", "externalIPs", "nodePort", "targetPort", "protocol", "rules", "host", "http", "paths", "backend", "service", "tls", "hosts",
		"data", "immutable", "apiGroups", "resourceNames", "verbs", "accessModes", "storageClassName", "storage", "jobTemplate", "schedule", "suspend",
		"automountServiceAccountToken", "minReadySeconds", "fsGroup", "supplementalGroups", "sysctls", "ownerReferences", "finalizers", "namespace", "generateName",
		"aggregationRule", "allocateLoadBalancerNodePorts", "loadBalancerSourceRanges", "number", "pathType", "secretName", "readOnly", "medium", "hostAliases", "ip", "hostnames":
		return true
	}
	return false
}
