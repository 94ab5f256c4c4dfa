package main

import (
	"encoding/json"
	"regexp"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kvap/kvap/policy"
)

// A listed deviation is a place where kvap differs from Kyverno on purpose; the
// number is that of the list of deviations.
type listed struct {
	number int
	reason string
	// excuses tells that the difference on a case is this one. It goes by what
	// the rule and the case are, never by what they are called.
	excuses func(difference) bool
}

// A difference is what is recorded and what was said instead: a status, or an
// outcome of the native form.
type difference struct {
	rule       *policy.Rule
	rc         recordedCase
	want, said string
}

// admits tells that what was said lets the request pass.
func (d difference) admits() bool {
	switch d.said {
	case "allow", "nomatch", "pass", "skip", "none":
		return true
	}
	return false
}

// deviations is the table of all that is excused.
func deviations() []listed {
	return []listed{
		{9, "Kyverno takes a text of the request that has a wildcard for a pattern, in membership operators", requestAsPattern},
		{3, "Kyverno edits a pattern with a wildcard key in place, so it looks in the old object for the key that it found in the new one", otherWildcardKey},
		{3, "Kyverno drops entries of labels and annotations that are no strings from a pattern", nonStringEntry},
	}
}

// deviation tells whether a difference is a listed one.
func deviation(d difference) (listed, bool) {
	if d.rule == nil || d.rc.Request == nil {
		return listed{}, false
	}
	for _, l := range deviations() {
		if l.excuses(d) {
			return l, true
		}
	}
	return listed{}, false
}

// otherWildcardKey: on UPDATE, a wildcard key under labels or annotations matches
// a key of the new object that the old one has not, and another key of the old
// one. kvap sees that the old object violates as well, and lets the new one pass.
func otherWildcardKey(d difference) bool {
	if d.rc.Request.Operation != admissionv1.Update || d.want != "fail" || !d.admits() || d.rule.Validate == nil {
		return false
	}
	wild := wildcardKeys(d.rule.Validate.Pattern)
	wild = append(wild, wildcardKeys(d.rule.Validate.AnyPattern)...)
	have, had := metadataKeys(d.rc.Request.Object.Raw), metadataKeys(d.rc.Request.OldObject.Raw)
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
func nonStringEntry(d difference) bool {
	if d.want != "pass" && d.want != "skip" || d.admits() || d.rule.Validate == nil {
		return false
	}
	found := false
	look := func(f policy.Field) { found = found || f.Value.Kind != policy.String }
	metadataEntries(d.rule.Validate.Pattern, look)
	metadataEntries(d.rule.Validate.AnyPattern, look)
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
func metadataKeys(raw []byte) map[string]bool {
	out := map[string]bool{}
	var object any
	if json.Unmarshal(raw, &object) != nil {
		return out
	}
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
