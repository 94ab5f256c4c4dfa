package scalar

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An Atom is one comparison of a string pattern with an operand.
type Atom struct {
	Op      Relation
	Operand string
}

// A Term is one of the conditions that a string pattern joins with &: a comparison,
// or a range, which is two of them. The outside of a range is a term of which
// either may hold; of any other term all must.
type Term struct {
	Atoms  []Atom
	Either bool
}

// ParsePattern splits a string pattern into alternatives of terms that must all
// hold. It never multiplies them out: many ranges in one pattern stay as few terms.
func ParsePattern(p string) [][]Term {
	var out [][]Term
	for _, alt := range strings.Split(p, "|") {
		var terms []Term
		for _, part := range strings.Split(alt, "&") {
			terms = append(terms, parseTerm(strings.TrimSpace(part)))
		}
		out = append(out, terms)
	}
	return out
}

var (
	insideRange  = regexp.MustCompile(`^([-|+]?\d+(?:\.\d+)?[A-Za-z]*)-([-|+]?\d+(?:\.\d+)?[A-Za-z]*)$`)
	outsideRange = regexp.MustCompile(`^([-|+]?\d+(?:\.\d+)?[A-Za-z]*)!-([-|+]?\d+(?:\.\d+)?[A-Za-z]*)$`)
)

// IsRange tells that a text is a range: from one number or quantity to another.
func IsRange(s string) bool { return insideRange.MatchString(s) }

// parseTerm reads one comparison or range.
func parseTerm(s string) Term {
	one := func(op Relation, rest string) Term { return Term{Atoms: []Atom{{op, strings.TrimSpace(rest)}}} }
	if len(s) < 2 {
		return one(Equals, s)
	}
	for _, op := range []Relation{GreaterEqual, LessEqual, Greater, Less} {
		if rest, ok := strings.CutPrefix(s, string(op)); ok {
			return one(op, rest)
		}
	}
	if rest, ok := strings.CutPrefix(s, "!"); ok {
		return one(Differs, rest)
	}
	if m := outsideRange.FindStringSubmatch(s); m != nil {
		return Term{Atoms: []Atom{{Less, m[1]}, {Greater, m[2]}}, Either: true}
	}
	if m := insideRange.FindStringSubmatch(s); m != nil {
		return Term{Atoms: []Atom{{GreaterEqual, m[1]}, {LessEqual, m[2]}}}
	}
	return one(Equals, s)
}

// Satisfies tells whether a literal satisfies a string pattern. A text that is the
// pattern's own is no exception (deviation 13).
func Satisfies(v any, p string) bool {
	for _, alt := range ParsePattern(p) {
		if !slices.ContainsFunc(alt, func(t Term) bool { return !t.holds(v) }) {
			return true
		}
	}
	return false
}

func (t Term) holds(v any) bool {
	satisfied := func(a Atom) bool { return atomHolds(v, a) }
	if t.Either {
		return slices.ContainsFunc(t.Atoms, satisfied)
	}
	return !slices.ContainsFunc(t.Atoms, func(a Atom) bool { return !satisfied(a) })
}

func atomHolds(v any, a Atom) bool {
	number, text := v, ""
	switch x := v.(type) {
	case nil:
		number = "0"
	case bool:
		number, text = nil, strconv.FormatBool(x)
	case int64:
		number, text = strconv.FormatInt(x, 10), strconv.FormatInt(x, 10)
	case float64:
		number, text = strconv.FormatFloat(x, 'f', 6, 64), strconv.FormatFloat(x, 'E', -1, 64)
	case string:
		text = x
	}
	if n, ok := number.(string); ok {
		as := ReadsOf(a.Operand, false)
		_, isNumber := Float(v)
		if c, ok := as.compare(n, a.Operand); ok && !(as == AsDuration && isNumber) {
			return a.Op.Holds(c)
		}
	}
	if v == nil {
		return false
	}
	matches := WildMatch(a.Operand, text)
	return a.Op == Equals && matches || a.Op == Differs && !matches // of texts there is no order
}

// Anything is the pattern that every text matches.
const Anything = "*"

// IsWild tells whether a text holds * or ?.
func IsWild(s string) bool { return strings.ContainsAny(s, "*?") }

// IsAnything tells whether a pattern is * or ?*, which match every text that is not
// empty.
func IsAnything(p string) bool {
	switch Collapse(p) {
	case "*", "?*", "*?":
		return true
	}
	return false
}

// Collapse brings runs of * to one.
func Collapse(p string) string {
	for strings.Contains(p, "**") {
		p = strings.ReplaceAll(p, "**", "*")
	}
	return p
}

// WildRegexp is the RE2 form of a pattern, for the whole text, newlines included.
func WildRegexp(p string) string {
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

// WildMatch tells whether text s matches pattern p: * is any run of characters,
// also an empty one, and ? exactly one.
func WildMatch(p, s string) bool {
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

// AnyWild tells whether a pattern matches the text.
func AnyWild(texts []string, s string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return WildMatch(t, s) })
}
