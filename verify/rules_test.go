package verify

import (
	"fmt"

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

// rulesAbout makes a policy about a kind, and sometimes an exception to it.
func rulesAbout(c *choice, kind string, typ *schema.Type) []obj {
	m := &ruleMaker{choice: c, kind: kind, typ: typ, root: "request.object"}
	out := []obj{m.policy()}
	if m.percent(5) {
		out = append(out, m.exception(out[0]))
	}
	return out
}

// exception is one to some rules of a policy.
func (m *ruleMaker) exception(p obj) obj {
	m.vars, m.root, m.inLoop = nil, "request.object", false
	name := "p"
	if meta := p["metadata"].(obj); meta["namespace"] != nil {
		name = meta["namespace"].(string) + "/p"
	}
	spec := obj{
		"exceptions": arr{obj{"policyName": name, "ruleNames": arr{m.word("r", "s", "r*", "*")}}},
		"match":      obj{m.word("any", "all"): arr{obj{"resources": m.resources(true)}}},
	}
	if m.percent(50) {
		spec["conditions"] = obj{m.word("any", "all"): arr{m.condition()}}
	}
	return obj{"apiVersion": "kyverno.io/v2", "kind": "PolicyException", "metadata": obj{"name": "e", "namespace": "default"}, "spec": spec}
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
			if m.percent(20) {
				entries = append(entries, obj{"name": name, "configMap": obj{"name": "settings", "namespace": "default"}})
				m.vars = append(m.vars, name+".data.app", name+".data.abc", name+".metadata.labels")
				continue
			}
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
	if m.kind == "Pod" && m.percent(4) {
		v["podSecurity"] = m.podSecurity()
		return
	}
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
				k = m.word("v1/Pod", "Pod*", "*", "*/Pod", "Pod/exec", "Pod/*", "Pod/ephemeralcontainers")
			case "Deployment":
				k = m.word("apps/v1/Deployment", "apps/*/Deployment", "*/Deployment", "Deployment/scale", "Deployment/*", "*/scale")
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
