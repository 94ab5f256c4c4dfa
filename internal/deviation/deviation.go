package deviation

import (
	"regexp"
	"strings"

	"github.com/kvap/kvap/policy"
)

// A Listed deviation is a place where kvap differs from Kyverno on purpose.
type Listed struct {
	Number int // in the list of deviations
	Reason string
	// excuses tells that a difference is this one. It goes by what the rule and the
	// request are, never by what they are called.
	excuses func(Difference) bool
}

// A Difference is what Kyverno says of a rule on a request, and what is said
// instead: a status, or an outcome of the native form.
type Difference struct {
	Rule           *policy.Rule
	Exceptions     []*policy.Exception // that name the rule
	Operation      string
	Object, Before any // JSON as Go data
	Want, Said     string
}

// admits tells that what was said lets the request pass.
func (d Difference) admits() bool {
	switch d.Said {
	case "allow", "nomatch", "pass", "skip", "none":
		return true
	}
	return false
}

// List is the table of all that is excused.
func List() []Listed {
	return []Listed{
		{3, "Kyverno edits a pattern with a wildcard key in place, so it looks in the old object for the key that it found in the new one", otherWildcardKey},
		{3, "Kyverno drops entries of labels and annotations that are no strings from a pattern", nonStringEntry},
		{12, "on DELETE, Kyverno looks at the context and the preconditions of a rule that checks nothing there", blindDeletion},
	}
}

// Reason says what Kyverno does where the interpreter gives its status beside kvap's, by
// the number of the deviation.
func Reason(number int) string {
	switch number {
	case 2:
		return "Kyverno errs on a violation where a key that an anchor names is nowhere in the object"
	case 9:
		return "Kyverno takes a text of the request that has a wildcard for a pattern in membership operators"
	case 13:
		return "Kyverno takes a text that is the pattern's own for a match, whatever the pattern says"
	}
	return ""
}

// Of tells whether a difference is a listed one.
func Of(d Difference) (Listed, bool) {
	if d.Rule == nil {
		return Listed{}, false
	}
	for _, l := range List() {
		if l.excuses(d) {
			return l, true
		}
	}
	return Listed{}, false
}

// otherWildcardKey: on UPDATE, a wildcard key under labels or annotations matches
// a key of the new object that the old one has not, and another key of the old
// one. kvap sees that the old object violates as well, and lets the new one pass.
func otherWildcardKey(d Difference) bool {
	if d.Operation != "UPDATE" || d.Want != "fail" || !d.admits() || d.Rule.Validate == nil {
		return false
	}
	wild := wildcardKeys(d.Rule.Validate.Pattern)
	wild = append(wild, wildcardKeys(d.Rule.Validate.AnyPattern)...)
	have, had := metadataKeys(d.Object), metadataKeys(d.Before)
	for _, w := range wild {
		added, other := false, false
		for key := range have {
			added = added || w.MatchString(key) && !had[key]
		}
		for key := range had {
			other = other || w.MatchString(key)
		}
		if added && other {
			return true
		}
	}
	return false
}

// nonStringEntry: a pattern wants something else than a string of a label or
// annotation, and Kyverno forgets it.
func nonStringEntry(d Difference) bool {
	if d.Want != "pass" && d.Want != "skip" || d.admits() || d.Rule.Validate == nil {
		return false
	}
	found := false
	look := func(f policy.Field) { found = found || f.Value.Kind != policy.String }
	metadataEntries(d.Rule.Validate.Pattern, look)
	metadataEntries(d.Rule.Validate.AnyPattern, look)
	return found
}

// wildcardKeys are the keys with wildcards under labels and annotations of a
// pattern, without their anchors, as expressions.
func wildcardKeys(n *policy.Node) (out []*regexp.Regexp) {
	metadataEntries(n, func(f policy.Field) {
		if key := bare(f.Key); strings.ContainsAny(key, "*?") {
			out = append(out, wildcard(key))
		}
	})
	return out
}

// metadataEntries calls do for each entry of labels and annotations in a pattern.
func metadataEntries(n *policy.Node, do func(policy.Field)) {
	if n == nil {
		return
	}
	for _, item := range n.Items {
		metadataEntries(item, do)
	}
	for _, f := range n.Fields {
		if name := bare(f.Key); name == "labels" || name == "annotations" {
			for _, entry := range f.Value.Fields {
				do(entry)
			}
		}
		metadataEntries(f.Value, do)
	}
}

// bare is a pattern's key without its anchor.
func bare(key string) string {
	if open := strings.IndexByte(key, '('); open >= 0 && open <= 1 && strings.HasSuffix(key, ")") {
		return key[open+1 : len(key)-1]
	}
	return key
}

func wildcard(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(text, `\*`, `.*`)
	text = strings.ReplaceAll(text, `\?`, `.`)
	return regexp.MustCompile(`(?s)^` + text + `$`)
}

// metadataKeys are the keys of all labels and annotations in an object.
func metadataKeys(object any) map[string]bool {
	out := map[string]bool{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for key, sub := range v {
				if entries, ok := sub.(map[string]any); ok && (key == "labels" || key == "annotations") {
					for name := range entries {
						out[name] = true
					}
				}
				walk(sub)
			}
		}
	}
	walk(object)
	return out
}
