package kvap_test

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// strangeWords are words that no type is called by: a reader who knows Kubernetes has no
// use for a second vocabulary (reconciler, queue, cache, status writer, debouncer), and
// nobody knows what is in a helper.
func strangeWords() []string {
	return []string{
		"passer", "bell", "shelf", "scribe", "deed", "purse", "held", "workshop", "news",
		"common", "helper", "helpers", "impl", "manager", "misc", "util", "utils",
	}
}

// oneMeaning are the names of types that many packages have because they mean the same
// thing in each of them.
func oneMeaning() map[string]string {
	return map[string]string{
		"Options": "what the caller of a package chooses",
		"Policy":  "a policy of Kyverno's, with what the package needs of it",
		"Rule":    "a rule of such a policy",
		"World":   "what rules may ask about besides the request",
	}
}

// TestTypeNames holds types to the words of CONTRIBUTING.md: none is called by a strange
// word, and one name stands for one thing.
func TestTypeNames(t *testing.T) {
	packages := map[string]map[string]bool{} // by type name
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Assign.IsValid() { // another name of the same type has its meaning
				return true
			}
			name := spec.Name.Name
			for _, word := range words(name) {
				if slices.Contains(strangeWords(), word) {
					t.Errorf("%s: type %s: say %q in Kubernetes' words", s.at(spec), name, word)
				}
			}
			if packages[name] == nil {
				packages[name] = map[string]bool{}
			}
			packages[name][s.pkg] = true
			return true
		})
	}
	const few = 3
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		in := slices.Sorted(maps.Keys(packages[name]))
		_, listed := oneMeaning()[name]
		switch {
		case len(in) > few && !listed:
			t.Errorf("%d packages have a type %s: call it by what it is in each, or list the one meaning: %s", len(in), name, strings.Join(in, ", "))
		case len(in) <= few && listed:
			t.Errorf("type %s need not be listed any more", name)
		}
	}
}

// words are the words of a name, in lower case.
func words(name string) []string {
	var out []string
	start := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(rune(name[i-1])) {
			out = append(out, strings.ToLower(name[start:i]))
			start = i
		}
	}
	return append(out, strings.ToLower(name[start:]))
}
