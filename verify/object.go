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

// fields are those of an object by name.
func fields(t *schema.Type) []string { return slices.Sorted(maps.Keys(t.Fields)) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// value makes a value of a type, found under a name.
func (m *maker) value(t *schema.Type, name string, depth int) any {
	m.left--
	if m.loose && m.percent(12) {
		return m.any(2)
	}
	if t.Nullable && m.percent(15) {
		return nil
	}
	switch t.Kind {
	case schema.Bool:
		return m.of(2) == 1
	case schema.Int:
		return m.int()
	case schema.Number:
		return m.number()
	case schema.String:
		return m.string(t.Format, name)
	case schema.IntOrString:
		if m.of(2) == 0 {
			return m.int()
		}
		return m.string("", name)
	case schema.Object:
		return m.object(t, depth)
	case schema.Map:
		return m.mapOf(t, name, depth)
	case schema.List:
		return m.list(t, name, depth)
	}
	return m.any(3)
}

// int is what every integer field of a built-in kind can hold.
func (m *maker) int() int64 {
	n := one(m.choice, m.hints.ints...)
	return max(min(n, 1<<31-1), -1<<31)
}

func (m *maker) number() any {
	if m.of(3) == 2 {
		return one(m.choice, m.hints.floats...)
	}
	return m.int()
}

func (m *maker) string(format, name string) string {
	switch format {
	case "quantity":
		return one(m.choice, m.hints.quantities...)
	case "duration":
		return one(m.choice, m.hints.durations...)
	case "date-time":
		return one(m.choice, "2024-01-01T00:00:00Z", "2030-06-30T12:30:00Z", "1999-12-31T23:59:59Z")
	case "byte":
		return base64Text(one(m.choice, m.hints.texts...))
	}
	switch name {
	case "labels":
		return one(m.choice, m.hints.labels...)
	case "name", "namespace", "generateName":
		if m.percent(80) {
			return one(m.choice, m.hints.names...)
		}
	}
	switch m.of(8) {
	case 6:
		return one(m.choice, m.hints.quantities...)
	case 7:
		return one(m.choice, m.hints.durations...)
	}
	return one(m.choice, m.hints.texts...)
}

func (m *maker) object(t *schema.Type, depth int) map[string]any {
	out := map[string]any{}
	for _, name := range fields(t) {
		f := t.Fields[name]
		include := f.Required || f.Mandatory
		if !include && m.left > 0 && depth < 12 {
			if m.hints.words[name] {
				include = m.percent(75)
			} else if m.left > 40 {
				include = m.of(40) == 39
			}
		}
		if include {
			out[name] = m.value(f.Type, name, depth+1)
		}
	}
	if t.Open && m.percent(20) {
		out[one(m.choice, m.hints.keys...)] = m.any(1)
	}
	return out
}

func (m *maker) mapOf(t *schema.Type, name string, depth int) map[string]any {
	out := map[string]any{}
	keys := m.hints.keys
	for range m.of(4) {
		if m.left <= 0 {
			break
		}
		out[one(m.choice, keys...)] = m.value(t.Elem, name, depth+1)
	}
	return out
}

func (m *maker) list(t *schema.Type, name string, depth int) []any {
	out := []any{}
	n := one(m.choice, 1, 0, 2, 1, 2, 3)
	for i := range n {
		if i > 0 && m.left <= 0 {
			break
		}
		out = append(out, m.value(t.Elem, name, depth+1))
	}
	return out
}

// any makes a value of any type.
func (m *maker) any(depth int) any {
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
		return m.int()
	case 3, 4:
		return m.string("", "")
	case 5:
		return one(m.choice, m.hints.floats...)
	case 6:
		out := []any{}
		for range m.of(3) {
			out = append(out, m.any(depth-1))
		}
		return out
	}
	out := map[string]any{}
	for range m.of(3) {
		out[one(m.choice, m.hints.keys...)] = m.any(depth - 1)
	}
	return out
}
