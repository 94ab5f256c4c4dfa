package interp

import (
	"fmt"
	"slices"

	"github.com/kvap/kvap/interp/internal/expr"
	"github.com/kvap/kvap/interp/internal/wildcard"
)

// An operand is the key or value of a condition after substitution.
type operand struct {
	value any
	from  expr.Provenance
	field Format // of a text that is a field of the request
	// words are the text of a string in which some are the policy's, or the elements of
	// a list that the policy writes; nil otherwise.
	words []word
	// star tells that * is a pattern, though it is not the policy's.
	star bool
}

// hasWildcards tells of the request's texts that look like patterns.
func (o operand) hasWildcards() bool {
	if o.from.Origin != expr.OfRequest {
		return false
	}
	list, ok := o.value.([]any)
	if !ok {
		list = []any{o.value}
	}
	return slices.ContainsFunc(list, func(v any) bool {
		text, ok := v.(string)
		return ok && wildcard.Has(text)
	})
}

// word is the text of a scalar operand.
func (o operand) word() word {
	if len(o.words) == 1 {
		return o.words[0]
	}
	return o.wordOf(o.value, o.from)
}

// list is the texts of a list operand.
func (o operand) list() []word {
	if o.words != nil {
		return o.words
	}
	items, _ := o.value.([]any)
	words := make([]word, len(items))
	for i, item := range items {
		words[i] = o.wordOf(item, o.from.Element(i))
	}
	return words
}

func (o operand) wordOf(v any, from expr.Provenance) word {
	if from.Origin != expr.OfRequest {
		return plainWord(printed(v))
	}
	return dataWord(v, o.star)
}

// asList is an operand whose text is not the policy's as a list: the one that the text of a
// ConfigMap is the JSON of, or the text alone.
func (o operand) asList() operand {
	text, ok := o.value.(string)
	if !ok || o.from.Origin == expr.OfPolicy {
		return o
	}
	if o.from.Origin == expr.OfCluster && o.words == nil {
		if list, ok := jsonWords(text); ok {
			o.value, o.from = anyList(list), expr.Provenance{Origin: expr.OfCluster}
			return o
		}
	}
	o.words, o.value = []word{o.word()}, []any{text}
	return o
}

// printed is a value as membership operators see it.
func printed(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		if text := floatText(v, 'g'); wholeText(text) {
			return text
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprint(v)
}

func wholeText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
