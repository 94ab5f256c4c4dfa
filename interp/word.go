package interp

import (
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/interp/internal/wildcard"
)

// A word is a text that membership operators compare. Wildcards that the policy
// wrote, or that come from cluster data such as a ConfigMap, count; those of the
// request do where the operator takes them for patterns (deviation 9).
type word struct {
	text string
	glob []globRune // nil when the text is its own pattern
}

// A globRune is a character of a pattern. Only where wild is set are * and ?
// wildcards.
type globRune struct {
	r    rune
	wild bool
}

// plainWord is a text whose wildcards count.
func plainWord(text string) word { return word{text: text} }

// requestWord is a text of the request whose wildcards do not count.
func requestWord(text string) word {
	if !wildcard.Has(text) {
		return word{text: text}
	}
	return word{text: text, glob: appendGlob(nil, text, false)}
}

// joined is the word that the pieces of a template make.
func joined(pieces []word) word {
	var text strings.Builder
	literal := false
	for _, p := range pieces {
		text.WriteString(p.text)
		literal = literal || p.glob != nil
	}
	w := word{text: text.String()}
	if !literal {
		return w
	}
	for _, p := range pieces {
		if p.glob != nil {
			w.glob = append(w.glob, p.glob...)
		} else {
			w.glob = appendGlob(w.glob, p.text, true)
		}
	}
	return w
}

func appendGlob(glob []globRune, text string, wild bool) []globRune {
	for _, r := range text {
		glob = append(glob, globRune{r, wild && (r == '*' || r == '?')})
	}
	return glob
}

// matches tells whether text has the form that w describes.
func (w word) matches(text string) bool {
	if w.glob == nil {
		return wildcard.Match(w.text, text)
	}
	return globMatch(w.glob, text)
}

// alike tells whether either word has the form of the other.
func alike(a, b word) bool { return a.matches(b.text) || b.matches(a.text) }

// globMatch is wildcard.Match for a pattern in which only some * and ? count.
func globMatch(glob []globRune, text string) bool {
	star, restart := -1, 0
	p, t := 0, 0
	for t < len(text) {
		r, size := utf8.DecodeRuneInString(text[t:])
		switch {
		case p < len(glob) && glob[p].wild && glob[p].r == '*':
			star, restart = p, t
			p++
			continue
		case p < len(glob) && (glob[p].wild || glob[p].r == r):
			p, t = p+1, t+size
			continue
		case star < 0:
			return false
		}
		_, size = utf8.DecodeRuneInString(text[restart:])
		restart += size
		p, t = star+1, restart
	}
	for p < len(glob) && glob[p].wild && glob[p].r == '*' {
		p++
	}
	return p == len(glob)
}
