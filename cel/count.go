package cel

// Count is how often the free identifier occurs in v.
func (v Value) Count(name string) int {
	n := 0
	v.Walk(func(w Value) bool {
		if w.n.op == opIdent && w.n.name == name {
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
