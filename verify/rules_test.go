package verify

import (
	"fmt"
	"strings"

	"github.com/kvap/kvap/schema"
)

// A ruleMaker makes small random policies about one kind. They mean nothing; they
// use every construct that the translation lowers.
type ruleMaker struct {
	*choice
	kind   string
	typ    *schema.Type // of the objects
	inLoop bool
	root   string // where expressions start
	vars   []string
}

// obj and arr write JSON down shortly.
type (
	obj = map[string]any
	arr = []any
)

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
		"x": anyType, "y": text, "z": num, "q": {Kind: schema.String, Format: "quantity"}, "d": {Kind: schema.String, Format: "duration"}, "b": {Kind: schema.Bool},
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

// rulesAbout makes a policy about a kind.
func rulesAbout(c *choice, kind string, typ *schema.Type) obj {
	m := &ruleMaker{choice: c, kind: kind, typ: typ, root: "request.object"}
	return m.policy()
}

func (m *ruleMaker) policy() obj {
	spec := obj{"validationFailureAction": one(m.choice, "Enforce", "Audit"), "background": false}
	if m.percent(15) {
		spec["failurePolicy"] = "Ignore"
	}
	if m.percent(5) {
		spec["validationFailureActionOverrides"] = arr{obj{"action": one(m.choice, "Audit", "Enforce"), "namespaces": arr{m.word("prod", "dev-*", "*")}}}
	}
	if m.percent(4) {
		spec["webhookConfiguration"] = obj{"matchConditions": arr{obj{"name": "c", "expression": "request.operation != 'DELETE'"}}}
	}
	rules := arr{m.rule("r")}
	if m.percent(15) {
		m.vars = nil
		rules = append(rules, m.rule("s"))
	}
	spec["rules"] = rules
	meta := obj{"name": "p"}
	if !m.percent(40) {
		meta["annotations"] = obj{"pod-policies.kyverno.io/autogen-controllers": "none"}
	}
	p := obj{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": meta, "spec": spec}
	if m.percent(7) {
		p["kind"] = "Policy"
		meta["namespace"] = one(m.choice, "default", "prod")
		delete(spec, "validationFailureActionOverrides")
	}
	return p
}

func (m *ruleMaker) rule(name string) obj {
	r := obj{"name": name, "match": m.match(true)}
	if m.percent(20) {
		r["exclude"] = m.match(false)
	}
	if m.percent(15) {
		var entries arr
		for i := range 1 + m.of(2) {
			name := fmt.Sprintf("v%d", i)
			entries = append(entries, m.entry(name))
			m.vars = append(m.vars, name)
		}
		r["context"] = entries
	}
	if m.percent(25) {
		r["preconditions"] = m.conditions()
	}
	v := obj{}
	if m.percent(70) {
		v["message"] = one(m.choice, "no", "no {{ request.object.metadata.name }}", "no {{ request.operation }} by {{ request.userInfo.username }}", "no {{ request.object.spec.x }}", "x: {{ request.object.metadata.labels.app || 'none' }}", "")
	}
	if m.percent(10) {
		v["failureAction"] = one(m.choice, "Enforce", "Audit")
	}
	if m.percent(10) {
		v["allowExistingViolations"] = false
	}
	m.body(v, 1)
	r["validate"] = v
	return r
}

// body adds what is checked.
func (m *ruleMaker) body(v obj, depth int) {
	switch m.of(12) {
	case 0, 1, 2, 3, 4:
		v["pattern"] = m.pattern(m.typ, "", 0)
	case 5, 6:
		var list arr
		for range 1 + m.of(3) {
			list = append(list, m.pattern(m.typ, "", 0))
		}
		v["anyPattern"] = list
	case 7, 8, 9:
		v["deny"] = m.deny()
	default:
		if depth <= 0 {
			v["deny"] = m.deny()
			return
		}
		var list arr
		for range one(m.choice, 1, 1, 1, 2) {
			list = append(list, m.loop(1))
		}
		v["foreach"] = list
	}
}

func (m *ruleMaker) deny() obj {
	if m.percent(2) {
		return obj{}
	}
	return obj{"conditions": m.conditions()}
}

// loop is a foreach over a list of the object.
func (m *ruleMaker) loop(depth int) obj {
	path, elem := m.listPath(m.typ)
	f := obj{"list": m.root + path}
	switch m.of(12) {
	case 11:
		f["list"] = m.expression(2)
		elem = &schema.Type{Kind: schema.Any}
	case 10:
		f["list"] = m.root + path + "[]"
	}
	saved := *m
	defer func() { m.typ, m.root, m.inLoop, m.vars = saved.typ, saved.root, saved.inLoop, saved.vars }()
	m.typ, m.root, m.inLoop = elem, "element", true
	if m.percent(8) {
		f["elementScope"] = m.of(2) == 0
	}
	if m.percent(10) {
		f["context"] = arr{m.entry("w")}
		m.vars = append(m.vars, "w")
	}
	if m.percent(30) {
		f["preconditions"] = m.conditions()
	}
	switch m.of(6) {
	case 0, 1:
		f["deny"] = m.deny()
	case 2, 3:
		f["pattern"] = m.pattern(m.typ, "", 1)
	case 4:
		f["anyPattern"] = arr{m.pattern(m.typ, "", 1), m.pattern(m.typ, "", 1)}
	default:
		if depth <= 0 {
			f["deny"] = m.deny()
			break
		}
		f["foreach"] = arr{m.loop(depth - 1)}
	}
	return f
}

func (m *ruleMaker) entry(name string) obj {
	v := obj{}
	switch m.of(5) {
	case 0, 1:
		v["jmesPath"] = m.expression(2)
	case 2:
		v["value"] = m.operand()
	case 3:
		v["jmesPath"] = m.expression(2)
		v["default"] = m.constant()
	default:
		v["value"] = m.constant()
		v["jmesPath"] = one(m.choice, "@", "[0]", "a", "length(@)", "to_string(@)")
		if m.of(2) == 1 {
			v["default"] = m.constant()
		}
	}
	return obj{"name": name, "variable": v}
}

func (m *ruleMaker) word(words ...string) string { return one(m.choice, words...) }

// match is a match or exclude block.
func (m *ruleMaker) match(kinds bool) obj {
	filter := func() obj {
		f := obj{}
		resources := m.resources(kinds)
		if len(resources) > 0 {
			f["resources"] = resources
		}
		if m.percent(6) || len(f) == 0 {
			f["subjects"] = arr{one(m.choice,
				obj{"kind": "User", "name": "alice"}, obj{"kind": "User", "name": "system:*"}, obj{"kind": "Group", "name": "dev"},
				obj{"kind": "Group", "name": "system:*"}, obj{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}, obj{"kind": "ServiceAccount", "name": "r*", "namespace": "*"})}
		}
		return f
	}
	switch m.of(6) {
	case 4:
		return filter()
	case 5:
		list := arr{filter()}
		if m.of(2) == 1 {
			list = append(list, filter())
		}
		return obj{"all": list}
	}
	list := arr{filter()}
	if m.percent(25) {
		list = append(list, filter())
	}
	return obj{"any": list}
}

func (m *ruleMaker) resources(kinds bool) obj {
	r := obj{}
	if kinds || m.of(2) == 0 {
		k := m.kind
		if m.percent(8) {
			switch k {
			case "Widget":
				k = m.word("x.io/v1/Widget", "*/Widget", "Wid*", "x.io/*/Widget")
			case "Pod":
				k = m.word("v1/Pod", "Pod*", "*", "*/Pod")
			case "Deployment":
				k = m.word("apps/v1/Deployment", "apps/*/Deployment", "*/Deployment")
			}
		}
		r["kinds"] = arr{k}
		if m.percent(6) {
			r["kinds"] = arr{k, m.word("ConfigMap", "Service", "Deployment")}
		}
	}
	add := func(p int, key string, value func() any) {
		if m.percent(p) {
			r[key] = value()
		}
	}
	add(4, "name", func() any { return m.word("web-1", "a*", "?*", "*", "w?b*", "") })
	add(4, "names", func() any { return arr{m.word("web-1", "a*", "abc"), m.word("?bc", "*-1")} })
	add(8, "namespaces", func() any {
		return arr{m.word("prod", "default", "?*", "*", "pr*", "kube-*"), m.word("team-a", "prod")}
	})
	add(9, "operations", func() any {
		return one(m.choice, arr{"CREATE"}, arr{"CREATE", "UPDATE"}, arr{"UPDATE"}, arr{"DELETE"}, arr{"CREATE", "UPDATE", "DELETE"})
	})
	add(5, "annotations", func() any {
		return obj{m.word("app", "a*", "*", "*.io/*"): m.word("a", "*", "?*", "a*", "", "abc")}
	})
	add(7, "selector", m.selector)
	add(5, "namespaceSelector", m.selector)
	return r
}

func (m *ruleMaker) selector() any {
	s := obj{}
	if m.of(3) < 2 {
		s["matchLabels"] = obj{m.word("app", "tier", "a*", "*", "kubernetes.io/metadata.name", "app.kubernetes.io/?*"): m.word("a", "web", "*", "?*", "w*", "", "prod")}
		if m.percent(15) {
			s["matchLabels"].(obj)["t*"] = m.word("a*", "*")
		}
	}
	if m.of(3) == 0 || len(s) == 0 {
		switch m.of(4) {
		case 0:
			s["matchExpressions"] = arr{obj{"key": m.word("app", "tier"), "operator": "In", "values": arr{"a", "web"}}}
		case 1:
			s["matchExpressions"] = arr{obj{"key": m.word("app", "tier"), "operator": "NotIn", "values": arr{"a", "web"}}}
		case 2:
			s["matchExpressions"] = arr{obj{"key": m.word("app", "tier"), "operator": "Exists"}}
		default:
			s["matchExpressions"] = arr{obj{"key": m.word("app", "tier"), "operator": "DoesNotExist"}}
		}
	}
	return s
}

// choosable are the fields that a rule may be about.
func (m *ruleMaker) choosable(t *schema.Type, top bool) []string {
	var out []string
	for _, name := range fields(t) {
		if wanted(name) || m.kind == "Widget" || m.kind == "Gadget" {
			out = append(out, name)
		}
	}
	if top && (m.kind == "Widget" || m.kind == "Gadget") {
		return []string{"spec", "spec", "metadata"}
	}
	if len(out) == 0 || m.percent(3) {
		out = fields(t)
	}
	return out
}

func (m *ruleMaker) fieldType(t *schema.Type, name string) *schema.Type {
	if f := t.Fields[name]; f != nil {
		return f.Type
	}
	if name == "metadata" {
		text := &schema.Type{Kind: schema.String}
		labels := &schema.Type{Kind: schema.Map, Elem: text}
		return &schema.Type{Kind: schema.Object, Fields: map[string]*schema.Field{
			"labels": {Name: "labels", Type: labels}, "annotations": {Name: "annotations", Type: labels}, "name": {Name: "name", Type: text}, "namespace": {Name: "namespace", Type: text},
		}}
	}
	return &schema.Type{Kind: schema.Any}
}

// pattern is a pattern for a type, found under a key.
func (m *ruleMaker) pattern(t *schema.Type, key string, depth int) any {
	if depth > 0 && m.percent(4) {
		return m.scalar(&schema.Type{Kind: schema.Any})
	}
	if depth > 1 && m.percent(6) && t.Kind != schema.String {
		return one[any](m.choice, "*", "?*", nil, "!x")
	}
	switch t.Kind {
	case schema.Object:
		return m.mapPattern(t, depth)
	case schema.Map:
		return m.entriesPattern(t, key, depth)
	case schema.List:
		return m.listPattern(t, key, depth)
	case schema.Any:
		if depth < 4 && m.percent(25) {
			return obj{m.anchor(m.word("a", "b", "app"), false): m.pattern(t, "", depth+2)}
		}
	}
	return m.scalar(t)
}

func (m *ruleMaker) mapPattern(t *schema.Type, depth int) any {
	out := obj{}
	if depth > 7 {
		return "*"
	}
	names := m.choosable(t, depth == 0)
	if len(names) == 0 {
		return "*"
	}
	for range one(m.choice, 1, 1, 2, 2, 3) {
		name := one(m.choice, names...)
		if m.percent(3) {
			name = m.word("missing", "x", "name")
		}
		sub := m.fieldType(t, name)
		if strings.HasPrefix(name, "X") {
			continue
		}
		value := m.pattern(sub, name, depth+1)
		out[m.anchor(name, sub.Kind == schema.List)] = value
	}
	return m.fixExistence(out)
}

// fixExistence makes what an existence anchor has a list of maps, which is the
// only thing that it takes.
func (m *ruleMaker) fixExistence(out obj) obj {
	for key, v := range out {
		if !strings.HasPrefix(key, "^(") {
			continue
		}
		list, ok := v.(arr)
		if !ok || len(list) == 0 {
			delete(out, key)
			out[key[2:len(key)-1]] = v
			continue
		}
		if _, ok := list[0].(obj); !ok {
			delete(out, key)
			out[key[2:len(key)-1]] = v
		}
	}
	return out
}

func (m *ruleMaker) anchor(name string, list bool) string {
	switch m.of(20) {
	case 11, 12:
		return "(" + name + ")"
	case 13, 14, 15:
		return "=(" + name + ")"
	case 16:
		return "X(" + name + ")"
	case 17:
		return "<(" + name + ")"
	case 18, 19:
		if list {
			return "^(" + name + ")"
		}
	}
	return name
}

func (m *ruleMaker) entriesPattern(t *schema.Type, key string, depth int) any {
	out := obj{}
	for range one(m.choice, 1, 1, 2) {
		name := m.word("app", "tier", "a", "abc", "app.kubernetes.io/name")
		if (key == "labels" || key == "annotations") && m.percent(35) {
			name = m.word("a*", "*", "*/name", "ti?r", "?*")
		}
		out[m.anchor(name, false)] = m.pattern(t.Elem, name, depth+1)
	}
	return out
}

func (m *ruleMaker) listPattern(t *schema.Type, key string, depth int) any {
	switch m.of(12) {
	case 10:
		return m.scalar(t.Elem)
	case 11:
		return arr{}
	}
	out := arr{m.pattern(t.Elem, key, depth+1)}
	if m.percent(15) {
		out = append(out, m.pattern(t.Elem, key, depth+1))
	}
	return out
}

// scalar is a pattern for a value that is no map or list.
func (m *ruleMaker) scalar(t *schema.Type) any {
	if m.percent(4) && len(m.vars) > 0 {
		return m.variable()
	}
	if m.percent(6) {
		return m.word("{{ request.object.metadata.name }}", "{{ request.namespace }}", "{{request.operation}}", "{{ request.object.metadata.labels.app || 'abc' }}", "?*{{ request.object.metadata.name }}", "{{ request.object.spec.replicas }}", "!{{ request.object.metadata.name }}", "{{ request.userInfo.username }}")
	}
	free := t.Kind == schema.Any || m.percent(10)
	switch {
	case free:
		switch m.of(6) {
		case 0:
			return nil
		case 1:
			return m.of(2) == 0
		case 2:
			return one(m.choice, 0, 1, 5, -1)
		case 3:
			return one(m.choice, 0.5, 1.5)
		case 4:
			return m.numeric()
		}
		return m.textPattern()
	case t.Kind == schema.Bool:
		return one[any](m.choice, true, false, "true", "false", "!true", "?*", "true | false", nil)
	case t.Kind == schema.Int || t.Kind == schema.Number:
		return one[any](m.choice, m.numeric(), 0, 1, 5, 100, nil, "*", 0.5)
	case t.Kind == schema.IntOrString:
		return one[any](m.choice, 1, "5", "5%", ">0", "<100", "*", "http", "!0", "1-5")
	case t.Format == "quantity":
		return one(m.choice, "<=1Gi", ">500m", "1Gi", "1024Mi", "!1Gi", "100m-1Gi", "?*", "100Mi!-1Gi", "<1", "0", ">=1 & <=5", "5 | 1Gi")
	case t.Format == "duration":
		return one(m.choice, "<=60s", ">1h", "1h", "60m", "!1h", "30s-2h", "?*")
	}
	return m.textPattern()
}

func (m *ruleMaker) numeric() string {
	return m.word(">0", "<5", ">=1", "<=100", "1-5", "1!-5", "!5", "5", "0", "5 | >100", ">0 & <5", "!0 & !1", "<1h", "1.5", ">0.5", "-1-5", "0-0")
}

func (m *ruleMaker) textPattern() string {
	return m.word("?*", "abc", "*", "a*", "!abc", "!a*", "abc | web", "!abc & !web*", "*:latest", "!*:latest", "nginx:*", "ghcr.io/* | nginx*", "", "a?c", "*b*", "!*b*", "5", "1.10", "<=1Gi", "60s", "true", "null", "!", "a|b", "a-b", "1-5", "!5", ">=1Gi", "*/*:?*", "0", "<5", ">a", "!?*", "*a*b*")
}

// constant is a value that a condition compares with.
func (m *ruleMaker) constant() any {
	switch m.of(9) {
	case 0, 1, 2:
		return m.word("abc", "a*", "5", "1Gi", "1h", "*", "", "1.10", "true", "60s", "?*", "nginx:latest", "default", "0", "1.10.0")
	case 3:
		return one(m.choice, 0, 1, 5, 100, 1000000)
	case 4:
		return m.of(2) == 0
	case 5:
		return one[any](m.choice, 0.5, 1.5, nil)
	case 6, 7:
		out := arr{}
		for range m.of(4) {
			out = append(out, one[any](m.choice, "abc", "a*", "5", "web", "*", 5, "", "default", "nginx:latest", true, "?b*", 1.5))
		}
		return out
	}
	return m.word("1-10", "1!-10", "[\"abc\",\"web\"]", "[\"a*\"]", "[1,2]", "123", "{}", "-5-10", "500m-2Gi", "1h-2h", ">5", "true")
}

// operand is a key or value of a condition.
func (m *ruleMaker) operand() any {
	switch m.of(10) {
	case 8:
		return m.constant()
	case 9:
		return one(m.choice, "a-{{ "+m.expression(1)+" }}", "{{ "+m.expression(1)+" }}:{{ "+m.expression(1)+" }}")
	}
	if len(m.vars) > 0 && m.percent(40) {
		return m.variable()
	}
	return "{{ " + m.expression(2) + " }}"
}

func (m *ruleMaker) variable() string {
	return "{{ " + one(m.choice, m.vars...) + m.word("", "", ".a", "[0]", " || 'abc'", ".name") + " }}"
}

func (m *ruleMaker) conditions() any {
	list := func() arr {
		out := arr{}
		for range one(m.choice, 1, 1, 2, 2, 0, 3) {
			out = append(out, m.condition())
		}
		return out
	}
	switch m.of(7) {
	case 0, 1, 2:
		return obj{"all": list()}
	case 3, 4:
		return obj{"any": list()}
	case 5:
		return obj{"any": list(), "all": list()}
	}
	return list()
}

func (m *ruleMaker) condition() obj {
	operator := m.word("Equals", "NotEquals", "AnyIn", "AllIn", "AnyNotIn", "AllNotIn", "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals",
		"In", "NotIn", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationGreaterThanOrEquals", "DurationLessThan", "Equals", "NotEquals", "AnyIn", "AnyNotIn")
	c := obj{"key": m.operand(), "operator": operator, "value": m.constant()}
	if m.percent(20) {
		c["value"] = m.operand()
	}
	if m.percent(5) {
		c["message"] = "not {{ request.operation }}"
	}
	return c
}
