package translate

import "github.com/kvap/kvap/cel"

// inOrder is a sequence as a list of which the order matters. The entries of a map
// have none: CEL may go through them in another order each time.
func (l *lowering) inOrder(s sequence) (cel.Value, bool) {
	l.mustBeOrdered(sequenceOf(s))
	return s.list(l, false)
}

// mustBeOrdered refuses a list of which the order matters and is that of a map.
func (l *lowering) mustBeOrdered(j operand) {
	if j.some(func(j operand) bool { return j.form == sequenceForm && !keepsOrder(j.s) }) {
		panic(l.unsupported("the order of a map's keys or values"))
	}
}

// keepsOrder tells that the order of a sequence is not that of a map.
func keepsOrder(s sequence) bool {
	switch s := s.(type) {
	case entries, unordered:
		return false
	case single:
		return s.j.form != sequenceForm || keepsOrder(s.j.s)
	case filtered:
		return keepsOrder(s.of)
	case nonNull:
		return keepsOrder(s.of)
	case mapped:
		return keepsOrder(s.of)
	case flat:
		return keepsOrder(s.of) && keepsOrder(s.probe())
	case sliced:
		return keepsOrder(s.of)
	case orEmpty:
		return keepsOrder(s.sequence)
	case guarded:
		return keepsOrder(s.sequence)
	case complete:
		return keepsOrder(s.sequence)
	case presentSequence:
		return keepsOrder(s.sequence)
	case branch:
		return keepsOrder(s.then) && keepsOrder(s.els)
	case concat:
		for _, part := range s {
			if !keepsOrder(part) {
				return false
			}
		}
	}
	return true
}
