package interp

import (
	"strings"
	"unicode/utf8"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// A word is what membership operators compare: a text, of which the wildcards that the
// policy wrote count, or data from elsewhere, of which a text that is nothing but * may
// count (deviations 9 and 15).
type word struct {
	text string
	glob []globRune // nil when the text is its own pattern
	// data is the value of what the policy did not write.
	data   any
	isData bool
}

// A globRune is a character of a pattern. Only where wild is set are * and ?
// wildcards.
type globRune struct {
	r    rune
	wild bool
}

// plainWord is a text whose wildcards count.
func plainWord(text string) word { return word{text: text} }

// dataWord is data that are not the policy's, whose wildcards do not count, but for the
// text * where star is set.
func dataWord(value any, star bool) word {
	w := word{text: printed(value), data: value, isData: true}
	if wildcard.Has(w.text) && !(star && w.text == "*") {
		w.glob = appendGlob(nil, w.text, false)
	}
	return w
}

// joined is the word that the pieces of a template make. It is data but where the policy
// wrote a wildcard.
func joined(pieces []word) word {
	var text strings.Builder
	literal, isData := false, false
	for _, p := range pieces {
		text.WriteString(p.text)
		literal = literal || p.glob != nil
		isData = isData || p.isData
	}
	w := word{text: text.String(), isData: isData}
	w.data = w.text
	for _, p := range pieces {
		if p.glob != nil {
			w.glob = append(w.glob, p.glob...)
		} else {
			w.glob = appendGlob(w.glob, p.text, !p.isData)
		}
		w.isData = w.isData && (p.isData || !wildcard.Has(p.text))
	}
	if !literal {
		w.glob = nil
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

// alike tells whether either word has the form of the other. Data are alike where they
// are the same.
func alike(a, b word) bool {
	if a.isData && b.isData {
		return a.isStar() || b.isStar() || datum.Equal(a.data, b.data)
	}
	return a.matches(b.text) || b.matches(a.text)
}

// isStar tells of a * that counts.
func (w word) isStar() bool { return w.glob == nil && w.text == "*" }

// value is what a pattern of the policy is asked of.
func (w word) value() any {
	if datum.IsNumber(w.data) {
		return w.data
	}
	return w.text
}

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
