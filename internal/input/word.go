package input

import (
	"fmt"
	"slices"
	"strings"
)

// OneOf finds a flag's value among those that are allowed.
func OneOf[T ~string](flag, value string, allowed ...T) (T, error) {
	if slices.Contains(allowed, T(value)) {
		return T(value), nil
	}
	var words []string
	for _, a := range allowed {
		if a != "" {
			words = append(words, string(a))
		}
	}
	return "", fmt.Errorf("%s %s: want one of %s", flag, value, strings.Join(words, ", "))
}

// Words are values of a type that is text.
func Words[T ~string](list ...T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}
