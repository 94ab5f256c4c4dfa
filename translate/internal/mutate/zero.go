package mutate

import (
	"slices"

	"github.com/kvap/kvap/cel"
)

// Between two mutations an API server has the object in its Go type, which drops most fields that
// are false, 0 or empty. A rule that asks for such a field behind one that writes it so finds
// nothing, where Kyverno finds what was written.

// isZero tells of a literal that the Go type of an object may drop.
func isZero(v cel.Value) bool {
	return !v.IsZero() && slices.Contains([]string{"false", "0", "0.0", "''"}, v.String())
}

// asksForZero tells that a change asks for what one of those before it writes as nothing.
func (c change) asksForZero(before []change) bool {
	var zeros [][]string
	for _, b := range before {
		for _, e := range b.effects {
			zeros = append(zeros, e.zeros...)
		}
	}
	if len(zeros) == 0 {
		return false
	}
	composed := map[string]cel.Value{}
	for _, v := range c.variables {
		composed[v.Name] = v.Expr
	}
	reads := []placedValue{{c.match.Value, nil}, {c.pre.Expr.Value, nil}}
	for _, e := range c.effects {
		if slices.ContainsFunc(e.additions, func(path []string) bool { return meets(path, zeros) }) {
			return true
		}
		reads = append(reads, e.reads...)
	}
	return slices.ContainsFunc(reads, func(r placedValue) bool { return r.meets(zeros, composed) })
}
