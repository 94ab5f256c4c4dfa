package verify

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/schema"
)

// A maker makes values of types. It prefers the fields and values that the hints
// name.
type maker struct {
	*choice
	hints *hints
	// loose types are only a suggestion: a value may be of any other type, or null.
	loose bool
	left  int // how many more values there may be, so that objects stay small
}

// near are the values that the policy has beside a name, most of the time, where
// it has any of a kind.
func near[T any](m *maker, name string, kind func(*pool) []T) T {
	if p := m.hints.near[name]; p != nil {
		if list := kind(p); len(list) > 0 && m.percent(70) {
			return one(m.choice, list...)
		}
	}
	return one(m.choice, kind(m.hints.all)...)
}

// fields are those of an object by name.
func fields(t *schema.Type) []string { return slices.Sorted(maps.Keys(t.Fields)) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// value makes a value of a type, found under a name.
func (m *maker) value(t *schema.Type, name string, f *focus, depth int) any {
	m.left--
	if m.loose && m.percent(12) {
		return m.any(name, 2)
	}
	if t.Nullable && m.percent(15) {
		return nil
	}
	switch t.Kind {
	case schema.Bool:
		return m.of(2) == 1
	case schema.Int:
		return m.int(name)
	case schema.Number:
		return m.number(name)
	case schema.String:
		return m.string(t.Format, name)
	case schema.IntOrString:
		if m.of(2) == 0 {
			return m.int(name)
		}
		return m.string(schema.AnyText, name)
	case schema.Object:
		return m.object(t, f, depth)
	case schema.Map:
		return m.mapOf(t, name, f, depth)
	case schema.List:
		return m.list(t, name, f, depth)
	}
	return m.any(name, 3)
}

// int is what every integer field of a built-in kind can hold.
func (m *maker) int(name string) int64 {
	n := near(m, name, func(p *pool) []int64 { return p.ints })
	return max(min(n, 1<<31-1), -1<<31)
}

func (m *maker) number(name string) any {
	if m.of(3) == 2 {
		return m.float(name)
	}
	return m.int(name)
}

func (m *maker) float(name string) float64 {
	return near(m, name, func(p *pool) []float64 { return p.floats })
}

func (m *maker) text(name string) string {
	return near(m, name, func(p *pool) []string { return p.texts })
}

func (m *maker) quantity(name string) string {
	return near(m, name, func(p *pool) []string { return p.quantities })
}

func (m *maker) duration(name string) string {
	return near(m, name, func(p *pool) []string { return p.durations })
}

func (m *maker) string(format schema.Format, name string) string {
	switch format {
	case schema.Quantity:
		return m.quantity(name)
	case schema.Duration:
		return m.duration(name)
	case schema.DateTime:
		return one(m.choice, "2024-01-01T00:00:00Z", "2030-06-30T12:30:00Z", "1999-12-31T23:59:59Z")
	case schema.Bytes:
		return base64Text(m.text(name))
	}
	switch name {
	case "name", "namespace", "generateName":
		if m.percent(60) {
			return near(m, name, func(p *pool) []string { return p.names })
		}
	}
	switch m.of(10) {
	case 8:
		return m.quantity(name)
	case 9:
		return m.duration(name)
	}
	return m.text(name)
}

func (m *maker) object(t *schema.Type, f *focus, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range fields(t) {
		field := t.Fields[name]
		must := field.Required || field.Mandatory
		if must || m.wants(name, f, depth) {
			out[name] = m.value(field.Type, name, f.at(name), depth+1)
		}
		switch list, isList := out[name].([]any); { // what is empty is as good as missing
		case must && out[name] == "":
			out[name] = "a"
		case field.Required && field.Type.Kind == schema.List && isList && len(list) == 0:
			out[name] = []any{m.value(field.Type.Elem, name, f.at(name).at(anyElement), depth+2)}
		}
	}
	if t.Open && m.percent(20) {
		if name := one(m.choice, m.hints.all.keys...); t.Fields[name] == nil {
			out[name] = m.any("", 1)
		}
	}
	return out
}

// wants tells whether to make an optional field: most of those that the policy
// looks at, some of those that have a name that it mentions, and few others.
func (m *maker) wants(name string, f *focus, depth int) bool {
	switch {
	case m.left <= 0 || depth >= 12:
		return false
	case f.at(name) != nil:
		return m.percent(80)
	case m.hints.words[name]:
		return m.percent(15)
	}
	return m.left > 40 && m.of(50) == 49
}

func (m *maker) mapOf(t *schema.Type, name string, f *focus, depth int) map[string]any {
	out := map[string]any{}
	for _, key := range f.keys() {
		if key != anyKey && key != anyElement && m.left > 0 && m.percent(65) {
			out[key] = m.entry(t, name, key, f.at(key), depth)
		}
	}
	for range one(m.choice, 0, 1, 0, 2, 0, 3) {
		if m.left <= 0 {
			break
		}
		key := one(m.choice, m.hints.all.keys...)
		out[key] = m.entry(t, name, key, f.at(anyKey), depth)
	}
	return out
}

// entry is a value of a map. Labels have values of their own.
func (m *maker) entry(t *schema.Type, name, key string, f *focus, depth int) any {
	if name == "labels" && t.Elem.Kind == schema.String {
		return near(m, key, func(p *pool) []string { return p.labels })
	}
	return m.value(t.Elem, key, f, depth+1)
}

func (m *maker) list(t *schema.Type, name string, f *focus, depth int) []any {
	out := []any{}
	length := one(m.choice, 1, 0, 2, 1, 2, 3)
	if many := m.counts(name); len(many) > 0 && m.percent(10) {
		length = one(m.choice, many...)
		m.left += 4 * length
	}
	for i := range length {
		if i > 0 && m.left <= 0 {
			break
		}
		out = append(out, m.value(t.Elem, name, f.at(anyElement), depth+1))
	}
	if isContainer(t.Elem) { // of which an API server takes no two of one name
		names := map[string]bool{}
		out = slices.DeleteFunc(out, func(container any) bool {
			of, _ := container.(map[string]any) // of a kind without a schema it may be anything, its name too
			name, ok := of["name"].(string)
			repeated := ok && names[name]
			names[name] = true
			return repeated
		})
	}
	return out
}

// counts are how many elements lists of a name may have to have, where a policy counts them.
func (m *maker) counts(name string) (out []int) {
	if p := m.hints.near[name]; p != nil {
		for _, n := range p.ints {
			if n > 3 && n <= 16 {
				out = append(out, int(n))
			}
		}
	}
	return out
}

// isContainer tells of the type of a container: nothing else has an image and a port.
func isContainer(t *schema.Type) bool {
	return t.Kind == schema.Object && t.Fields["name"] != nil && t.Fields["image"] != nil && t.Fields["ports"] != nil
}

// any makes a value of any type.
func (m *maker) any(name string, depth int) any {
	m.left--
	n := 8
	if depth <= 0 || m.left <= 0 {
		n = 6
	}
	switch m.of(n) {
	case 0:
		return nil
	case 1:
		return m.of(2) == 1
	case 2:
		return m.int(name)
	case 3, 4:
		return m.string(schema.AnyText, name)
	case 5:
		return m.float(name)
	case 6:
		out := []any{}
		for range m.of(3) {
			out = append(out, m.any(name, depth-1))
		}
		return out
	}
	out := map[string]any{}
	for range m.of(3) {
		out[one(m.choice, m.hints.all.keys...)] = m.any(name, depth-1)
	}
	return out
}
