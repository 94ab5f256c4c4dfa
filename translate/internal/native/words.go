package native

import (
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Mentions tells that an expression reads an identifier.
func Mentions(v cel.Value, name string) bool { return v.Count(name) > 0 }

// OneOfTexts is: the string is one of the words, or matches one of the wildcards.
func OneOfTexts(x cel.Value, texts []string) cel.Bool {
	var words []string
	var alts []cel.Bool
	for _, t := range texts {
		if scalar.IsWild(t) {
			alts = append(alts, Matches(x, t))
		} else {
			words = append(words, t)
		}
	}
	if len(words) > 0 {
		alts = append([]cel.Bool{OneOfWords(x, words)}, alts...)
	}
	return cel.Or(alts...)
}

// OneOfWords is: the string is one of the words.
func OneOfWords(v cel.Value, words []string) cel.Bool {
	if len(words) == 1 {
		return v.Eq(cel.String(words[0]))
	}
	return v.In(cel.Strings(words...))
}

// Matches is: text v matches pattern p, in the shortest form that says so. * is any
// run of characters, also an empty one, and ? exactly one.
func Matches(v cel.Value, p string) cel.Bool {
	if !scalar.IsWild(p) {
		return v.Eq(cel.String(p))
	}
	p = scalar.Collapse(p)
	inner := strings.Trim(p, "*")
	switch {
	case p == "*":
		return cel.True()
	case p == "?*" || p == "*?":
		return v.Ne(cel.String(""))
	case scalar.IsWild(inner):
		return v.Matches(scalar.WildRegexp(p))
	case p == "*"+inner+"*":
		return v.Contains(cel.String(inner))
	case p == inner+"*":
		return v.StartsWith(cel.String(inner))
	default: // "*" + inner
		return v.EndsWith(cel.String(inner))
	}
}
