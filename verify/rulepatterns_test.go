package verify

import (
	"strings"

	"github.com/kvap/kvap/schema"
)

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
	if m.inLoop && m.percent(4) {
		return m.word("{{ element.name }}", "{{ element }}", "{{ element.n || 'abc' }}", "!{{ elementIndex }}")
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
	case t.Format == schema.Quantity:
		return one(m.choice, "<=1Gi", ">500m", "1Gi", "1024Mi", "!1Gi", "100m-1Gi", "?*", "100Mi!-1Gi", "<1", "0", ">=1 & <=5", "5 | 1Gi")
	case t.Format == schema.Duration:
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
