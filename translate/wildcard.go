package translate

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
)

// isWild tells whether a text holds * or ?.
func isWild(s string) bool { return strings.ContainsAny(s, "*?") }

// wild is: text v matches pattern p, in the shortest form that says so. * is any
// run of characters, also an empty one, and ? exactly one.
func wild(v cel.Value, p string) cel.Bool {
	if !isWild(p) {
		return v.Eq(cel.String(p))
	}
	p = collapse(p)
	inner := strings.Trim(p, "*")
	switch {
	case p == "*":
		return cel.True()
	case p == "?*" || p == "*?":
		return v.Ne(cel.String(""))
	case isWild(inner):
		return v.Matches(wildRegexp(p))
	case p == "*"+inner+"*":
		return v.Contains(cel.String(inner))
	case p == inner+"*":
		return v.StartsWith(cel.String(inner))
	default: // "*" + inner
		return v.EndsWith(cel.String(inner))
	}
}

// collapse brings runs of * to one.
func collapse(p string) string {
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	return p
}

// wildRegexp is the RE2 form, for the whole text, newlines included.
func wildRegexp(p string) string {
	var b strings.Builder
	b.WriteString("^")
	for _, r := range p {
		switch r {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteString(".")
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString("$")
	return "(?s)" + b.String()
}

// wildMatch is wild for a text known when compiling.
func wildMatch(p, s string) bool {
	pattern, text := []rune(p), []rune(s)
	i, j := 0, 0
	star, from := -1, 0 // the last * and the text that it has to take up at least
	for j < len(text) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, from = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == text[j]):
			i, j = i+1, j+1
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}

// someKey is: a key of the map matches.
func (l *lowering) someKey(v place, key string) cel.Bool {
	found := l.b.exists(v.settled().expr, "key", func(k cel.Value) cel.Bool { return wild(k, key) })
	return cel.And(v.found(), found)
}

// wildKey is: some key that matches has a value that satisfies p. Kyverno takes
// an arbitrary one of the keys that match; deviation 3.
func (l *lowering) wildKey(v place, key string, p *policy.Node) cel.Bool {
	l.noteWildKey(p.Pos, key)
	m := v.settled()
	found := l.b.exists(m.expr, "key", func(k cel.Value) cel.Bool {
		value := placeOf(m.expr.Index(k), m.elem())
		if p.Kind == policy.String && p.Str == "*" {
			return wild(k, key)
		}
		return cel.And(wild(k, key), l.match(value, p, "").ok())
	})
	return cel.And(v.found(), found)
}
