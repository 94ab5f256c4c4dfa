package cel

import "slices"

// Count is how often the free identifier occurs in v.
func (v Value) Count(name string) int {
	n := 0
	walkFree(v.n, nil, func(m *node, bound []string) bool {
		if m.op == opIdent && m.name == name && !slices.Contains(bound, name) {
			n++
		}
		return true
	})
	return n
}
