package diag

import (
	"fmt"
	"strings"
)

// Docs is where the documentation can be read: who has installed the program has no folder
// docs.
const Docs = "https://github.com/kvap/kvap/blob/main/docs/"

// Explain is the text of kvap explain: what a code means, an example, and the way
// out. It is not ok for a number that is no code.
func Explain(c Code) (string, bool) {
	name, text, example := describe(c)
	if name == "" {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n%s\n", c, name, strings.ReplaceAll(text, "docs/", Docs))
	if example != "" {
		b.WriteString("\nExample:\n\n")
		for line := range strings.Lines(example) {
			if strings.TrimSpace(line) == "" {
				b.WriteByte('\n')
				continue
			}
			b.WriteString("    " + line)
		}
		b.WriteByte('\n')
	}
	return b.String(), true
}

// ParseCode reads a code as users write it: KV106, kv106, 106 or UnknownKey.
func ParseCode(text string) (Code, bool) {
	text = strings.TrimSpace(text)
	digits := strings.TrimPrefix(strings.ToUpper(text), "KV")
	for _, c := range Codes() {
		if name, _ := Title(c); fmt.Sprintf("%03d", int(c)) == digits || strings.EqualFold(name, text) {
			return c, true
		}
	}
	return 0, false
}

// Example is a file whose reading or translating yields the code: the example of
// its comment, with a policy around it where it is a fragment of a rule. It is not
// ok for a code without an example in this form, such as a command.
func Example(c Code) (file string, ok bool) {
	_, _, example := describe(c)
	if example == "" || strings.HasPrefix(example, "$ ") {
		return "", false
	}
	if !isFragment(example) {
		return example + "\n", true
	}
	var b strings.Builder
	b.WriteString("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: example\nspec:\n")
	if hasKey(example, "verifyImages") { // which pin, and only what enforces may
		b.WriteString("  validationFailureAction: Enforce\n")
	}
	b.WriteString("  rules:\n    - name: example\n")
	if !hasKey(example, "match") {
		b.WriteString("      match:\n        any:\n          - resources:\n              kinds: [Pod]\n")
	}
	for line := range strings.Lines(example) {
		b.WriteString("      " + line)
	}
	b.WriteByte('\n')
	if !hasKey(example, "validate") && !hasKey(example, "mutate") && !hasKey(example, "generate") && !hasKey(example, "verifyImages") {
		b.WriteString("      validate:\n        pattern:\n          spec:\n            hostNetwork: false\n")
	}
	return b.String(), true
}

// isFragment tells whether an example is a part of a rule: it starts with a key
// that a rule has.
func isFragment(example string) bool {
	first, _, _ := strings.Cut(example, ":")
	switch first {
	case "match", "exclude", "context", "preconditions", "celPreconditions", "imageExtractors", "skipBackgroundRequests",
		"validate", "mutate", "generate", "verifyImages":
		return true
	}
	return false
}

func hasKey(example, key string) bool {
	return strings.HasPrefix(example, key+":") || strings.Contains(example, "\n"+key+":")
}
