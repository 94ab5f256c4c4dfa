package diag

import "strings"

// Title is what a code is about in a few words: its name, and when it occurs.
func Title(c Code) (name, when string) {
	name, text, _ := describe(c)
	first, _, _ := strings.Cut(strings.Join(strings.Fields(text), " "), ". ")
	first = strings.TrimSuffix(strings.TrimPrefix(first, "Occurs "), ".")
	if head, _, ok := strings.Cut(first, ": "); ok && len(strings.Fields(head)) > 5 && !strings.Contains(head, "(") {
		first = head // what follows are examples
	}
	return name, strings.TrimPrefix(first, "when ")
}
