package interp

import "fmt"

// An operand is the key or value of a condition after substitution.
type operand struct {
	value any
	// words are the texts of a string, or of the strings of a list, where those
	// of the request are not all of it or none of it; nil otherwise.
	words []word
	// request is set when all of the value comes from the request.
	request bool
}

// word is the text of a scalar operand.
func (o operand) word() word {
	if len(o.words) == 1 {
		return o.words[0]
	}
	return o.wordOf(o.value)
}

// list is the texts of a list operand.
func (o operand) list() []word {
	if o.words != nil {
		return o.words
	}
	items, _ := o.value.([]any)
	words := make([]word, len(items))
	for i, item := range items {
		words[i] = o.wordOf(item)
	}
	return words
}

func (o operand) wordOf(v any) word {
	if o.request {
		return requestWord(printed(v))
	}
	return plainWord(printed(v))
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
