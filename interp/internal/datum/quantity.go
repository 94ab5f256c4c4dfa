package datum

import "k8s.io/apimachinery/pkg/api/resource"

// maxQuantityLength bounds the texts that are read as quantities; real ones are
// short.
const maxQuantityLength = 64

// ParseQuantity reads a quantity. Texts that are very long or have an exponent of
// more than three digits are none: reading them would take seconds, or for ever.
func ParseQuantity(text string) (resource.Quantity, error) {
	if len(text) > maxQuantityLength || exponentDigits(text) > 3 {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

func exponentDigits(text string) int {
	for i := range len(text) {
		if text[i] != 'e' && text[i] != 'E' {
			continue
		}
		rest := text[i+1:]
		if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
			rest = rest[1:]
		}
		return CountDigits(rest)
	}
	return 0
}

// CountDigits counts the digits at the front of a text.
func CountDigits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
