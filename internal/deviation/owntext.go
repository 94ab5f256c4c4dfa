package deviation

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// ownText: a text of the object is, letter by letter, a text of a pattern that does
// not match itself. To Kyverno they are the same; to kvap the pattern decides.
func ownText(d Difference) bool {
	if d.Want == "error" || d.Rule.Validate == nil {
		return false
	}
	var own []string
	for _, text := range append(texts(d.Object), texts(d.Before)...) {
		if !matchesItself(text) {
			own = append(own, text)
		}
	}
	if len(own) == 0 {
		return false
	}
	return slices.ContainsFunc(patternTexts(d.Rule), func(text string) bool {
		return strings.Contains(text, "{{") || strings.Contains(text, "$(") || slices.Contains(own, text)
	})
}

// matchesItself tells whether a text, read as a pattern, matches itself: one does
// unless it has alternatives, an operator, spaces around it, or is a range.
func matchesItself(text string) bool {
	if strings.ContainsAny(text, "|&") || strings.TrimSpace(text) != text {
		return false
	}
	return len(text) < 2 || !strings.ContainsAny(text[:1], "<>!") && !rangeForm().MatchString(text)
}

// rangeForm is the form of A-B and A!-B.
func rangeForm() *regexp.Regexp {
	return regexp.MustCompile(`^[-+]?\d+(\.\d+)?[a-zA-Z]*!?-[-+]?\d+(\.\d+)?[a-zA-Z]*$`)
}

// patternTexts are the texts that a rule reads as patterns: those of its patterns,
// and the ranges of membership.
func patternTexts(r *policy.Rule) (out []string) {
	out = append(leaves(r.Validate.Pattern), leaves(r.Validate.AnyPattern)...)
	var loops func([]*policy.ForEach)
	loops = func(list []*policy.ForEach) {
		for _, f := range list {
			out = append(out, leaves(f.Pattern)...)
			out = append(out, leaves(f.AnyPattern)...)
			loops(f.ForEach)
		}
	}
	loops(r.Validate.ForEach)
	for _, c := range ruleConditions(r) {
		if strings.HasSuffix(strings.ToLower(c.Operator), "in") && c.Value != nil && c.Value.Kind == policy.String {
			out = append(out, c.Value.Str)
		}
	}
	return out
}

// leaves are the texts in a node.
func leaves(n *policy.Node) (out []string) {
	if n == nil {
		return nil
	}
	if n.Kind == policy.String {
		out = append(out, n.Str)
	}
	for _, item := range n.Items {
		out = append(out, leaves(item)...)
	}
	for _, f := range n.Fields {
		out = append(out, leaves(f.Value)...)
	}
	return out
}
