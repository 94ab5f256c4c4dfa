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

// Remedy is what to do about a code, and what follows from it: the text without
// its first paragraph, which says when the code occurs. It is empty where there is
// no more to say.
func Remedy(c Code) string {
	_, text, _ := describe(c)
	_, rest, _ := strings.Cut(text, "\n\n")
	return strings.Join(strings.Fields(rest), " ")
}
