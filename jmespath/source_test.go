package jmespath

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/kvap/kvap/diag"
)

// A place is the same in whatever order places are asked for.
func TestPlaces(t *testing.T) {
	text := "aé\nb\n\n{{ ü }} c\nd"
	for _, start := range []diag.Pos{{}, {Line: 3}, {Line: 3, Col: 7}} {
		src := newSource(text, start)
		for _, offset := range slices.Concat(rand.Perm(len(text)+3), rand.Perm(len(text)+3)) {
			if offset < len(text) && !utf8.RuneStart(text[offset]) {
				continue
			}
			want := start
			if before := text[:min(offset, len(text))]; start.Line > 0 {
				last := strings.LastIndexByte(before, '\n')
				want.Line += strings.Count(before, "\n")
				if last >= 0 {
					want.Col = 1
				}
				if want.Col > 0 {
					want.Col += len([]rune(before[last+1:]))
				}
			}
			if got := src.at(offset); got != want {
				t.Errorf("from %v, offset %d: %v, want %v", start, offset, got, want)
			}
		}
	}
}
