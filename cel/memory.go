package cel

// A simplifyCache keeps what a simplification has found out: what is around a part comes by it
// again, and so does each pass.
type simplifyCache struct {
	totals  map[standing]bool
	outs    map[wanted]*node
	learned map[lesson]*facts
	inside  map[standing]*typer // of macros
}

func newMemory() *simplifyCache {
	return &simplifyCache{totals: map[standing]bool{}, outs: map[wanted]*node{}, learned: map[lesson]*facts{}, inside: map[standing]*typer{}}
}

// A standing is a part where something is known.
type standing struct {
	n      *node
	known  *facts
	around *typer
}

// A wanted is a part to be simplified where it stands, perhaps where what is not a boolean
// is an error.
type wanted struct {
	standing
	boolean bool
}

// A lesson is that n has a value, besides what was known before.
type lesson struct {
	before *facts
	n      *node
	value  bool
}

// isTotal tells that n is not an error, whatever the input.
func (s simplifier) isTotal(n *node) bool {
	q := standing{n, s.known, s.around}
	answer, asked := s.totals[q]
	if !asked {
		answer = s.isTotalAlone(n) || s.around.isTotal(n, s.known)
		s.totals[q] = answer
	}
	return answer
}

// node simplifies n from the inside out. boolean tells that where n stands, what
// is not a boolean is an error: there, x && true is x.
func (s simplifier) node(n *node, boolean bool) *node {
	if len(n.args) == 0 {
		return s.shorter(n, boolean)
	}
	q := wanted{standing{n, s.known, s.around}, boolean}
	out, done := s.outs[q]
	if !done {
		out = s.shorter(n, boolean)
		s.outs[q] = out
	}
	return out
}

// learn is what is known where n has a value, too: the same facts each time, so that
// what was found out where they hold is found again.
func (s simplifier) learn(n *node, value bool) *facts {
	l := lesson{s.known, n, value}
	out, done := s.learned[l]
	if !done {
		out = s.known.and(n, value)
		s.learned[l] = out
	}
	return out
}

// beneath is what is around the body of the macro n, which goes through list.
func (s simplifier) beneath(n, list *node) *typer {
	q := standing{n, s.known, s.around}
	out, done := s.inside[q]
	if !done {
		out = s.around.beneath(n, list)
		s.inside[q] = out
	}
	return out
}
