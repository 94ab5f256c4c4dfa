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

// LastField is the name of the last selection of v, looked for through optional
// values and calls; "" where there is none.
func (v Value) LastField() string {
	for n := v.n; n != nil; {
		switch n.op {
		case opSelect, opOpt:
			return n.name
		case opMember, opIndex, opOptIdx, opMacro:
			n = n.args[0]
		case opCond:
			n = n.args[1]
		default:
			return ""
		}
	}
	return ""
}
