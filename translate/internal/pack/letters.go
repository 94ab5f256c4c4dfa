package pack

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/translate/internal/native"
)

// Groups are split by the names of policies and rules as the volumes of a dictionary
// are, a to m and n to z, but where the volumes end does not depend on the words:
// so a rule that comes, goes or changes moves no other, unless its own volume
// becomes too thick.

// letters are the names that begin alike and go on with one of some symbols.
type letters struct {
	prefix      string
	first, last int
}

// The symbols are what is no letter or digit, or the end; digits; letters.
const lastSymbol = 36

func symbolAt(name string, i int) int {
	if i >= len(name) {
		return 0
	}
	switch c := name[i]; {
	case c >= '0' && c <= '9':
		return int(c-'0') + 1
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 11
	}
	return 0
}

// symbols are how symbols are written.
const symbols = "-0123456789abcdefghijklmnopqrstuvwxyz"

// String is, for instance, disallow-a-to-h.
func (l letters) String() string {
	symbol := func(i int) string { return symbols[max(1, i) : max(1, i)+1] } // the least that can be written
	prefix := strings.Trim(l.prefix, "-")
	switch {
	case l.first == 0 && l.last == lastSymbol:
		return prefix
	case l.first == l.last:
		return hyphened(prefix, symbol(l.first))
	case l.first == 0:
		return hyphened(prefix, "up-to", symbol(l.last))
	case l.last == lastSymbol:
		return hyphened(prefix, "from", symbol(l.first))
	}
	return hyphened(prefix, symbol(l.first), "to", symbol(l.last))
}

// split halves the range of symbols until each part fits. Names that are alike go on
// with the next symbol; those that are the same stay together.
func (g group) split(o Options, l letters) []group {
	if g.part = l.String(); g.fits(o) {
		return []group{g}
	}
	return g.halves(o, l)
}

// halves are the parts of a group that does not fit. Where all are in one half, it is
// not asked again whether they fit.
func (g group) halves(o Options, l letters) []group {
	if l.first == l.last {
		if !slices.ContainsFunc(g.units, func(u Unit) bool { return len(u.splitName(o)) > len(l.prefix) }) { // they are the same
			g.part = l.String()
			return []group{g}
		}
		return g.halves(o, letters{prefix: l.prefix + symbols[l.first:l.first+1], last: lastSymbol})
	}
	middle := (l.first + l.last) / 2
	isLow := func(u Unit) bool { return symbolAt(u.splitName(o), len(l.prefix)) <= middle }
	isHigh := func(u Unit) bool { return !isLow(u) }
	below, above := letters{l.prefix, l.first, middle}, letters{l.prefix, middle + 1, l.last}
	switch {
	case !slices.ContainsFunc(g.units, isHigh):
		return g.halves(o, below)
	case !slices.ContainsFunc(g.units, isLow):
		return g.halves(o, above)
	}
	low := g.with(slices.DeleteFunc(slices.Clone(g.units), isHigh))
	high := g.with(slices.DeleteFunc(slices.Clone(g.units), isLow))
	return append(low.split(o, below), high.split(o, above)...)
}

// splitName is what a group is split by.
func (u Unit) splitName(o Options) string {
	if o.ByKind {
		return inSymbols(native.MemberName(u.Policy) + "/" + u.name())
	}
	return inSymbols(u.Rule.Name)
}

// inSymbols is s in symbols.
func inSymbols(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && symbolAt(string(r), 0) > 0 {
			return r
		}
		return '-'
	}, strings.ToLower(s))
}
