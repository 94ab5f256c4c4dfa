package scalar

import (
	"regexp/syntax"
	"slices"
)

// MayMatch tells that a regular expression might match a text that begins with
// prefix and goes on. It is true, too, where that is not plain to see.
func MayMatch(re, prefix string) bool {
	parsed, err := syntax.Parse(re, syntax.Perl)
	if err != nil {
		return true
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || prog.StartCond()&syntax.EmptyBeginText == 0 {
		return true
	}
	m := machine{prog: prog}
	m.reach(uint32(prog.Start))
	for _, r := range prefix {
		before := m.at
		m.at, m.seen = nil, nil
		for _, pc := range before {
			i := prog.Inst[pc]
			if i.Op == syntax.InstMatch {
				return true
			}
			if i.MatchRune(r) {
				m.reach(i.Out)
			}
		}
	}
	return len(m.at) > 0
}

// A machine is in all states that an expression may be in: before a character, or
// at a match.
type machine struct {
	prog *syntax.Prog
	at   []uint32
	seen []uint32
}

// reach adds a state, or those that follow it without a character. What an
// expression asserts of its surroundings is taken to hold, but for the end.
func (m *machine) reach(pc uint32) {
	if slices.Contains(m.seen, pc) {
		return
	}
	m.seen = append(m.seen, pc)
	switch i := m.prog.Inst[pc]; i.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		m.reach(i.Out)
		m.reach(i.Arg)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(i.Arg)&syntax.EmptyEndText == 0 {
			m.reach(i.Out)
		}
	case syntax.InstCapture, syntax.InstNop:
		m.reach(i.Out)
	case syntax.InstFail:
	default:
		m.at = append(m.at, pc)
	}
}
