package deviation

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// requestAsPattern: a negated membership operator of the rule compares a text with
// one of the request that has a wildcard and, taken for a pattern, matches it. To
// Kyverno it is on the list, to kvap it is not. In conditions of exceptions it is
// the operators that are not negated.
func requestAsPattern(d Difference) bool {
	if d.Want == "error" || d.Said == "error" {
		return false
	}
	before := texts(d.Before)
	if d.Want == "fail" && !(d.Operation == "UPDATE" && d.admits() && slices.ContainsFunc(before, hasWildcard)) {
		return false // kvap denies more, but for a new object whose old one violates as well
	}
	all := append(texts(d.Object), before...)
	for _, c := range literalConditions(d) {
		if takenForPattern(c, all) {
			return true
		}
	}
	return false
}

// takenForPattern tells whether one of the request's texts, as it stands or put
// into a text of the condition, matches what the condition compares.
func takenForPattern(c *policy.Condition, request []string) bool {
	key, keyTemplates := written(c.Key)
	value, valueTemplates := written(c.Value)
	others := append(key, value...)
	if len(keyTemplates) > 0 && len(valueTemplates) > 0 {
		others = append(others, request...)
	}
	for _, text := range request {
		if !hasWildcard(text) {
			continue
		}
		for _, t := range append(keyTemplates, valueTemplates...) {
			filled := variable().ReplaceAllLiteralString(t, text)
			pattern := wildcard(filled)
			if slices.ContainsFunc(others, func(other string) bool { return other != filled && pattern.MatchString(other) }) {
				return true
			}
		}
	}
	return false
}

// written are the constant texts of a key or value, and those with variables.
func written(n *policy.Node) (constants, templates []string) {
	for _, text := range leaves(n) {
		if strings.Contains(text, "{{") {
			templates = append(templates, text)
		} else {
			constants = append(constants, text)
		}
	}
	return constants, templates
}

// variable is a variable in a text.
func variable() *regexp.Regexp { return regexp.MustCompile(`(?s)\{\{.*?\}\}`) }

func hasWildcard(text string) bool { return strings.ContainsAny(text, "*?") }

// literalConditions are the conditions in which kvap, other than Kyverno, takes no
// text of the request for a pattern.
func literalConditions(d Difference) (out []*policy.Condition) {
	for _, c := range ruleConditions(d.Rule) {
		if negated(c.Operator) {
			out = append(out, c)
		}
	}
	for _, e := range d.Exceptions {
		for _, c := range conditionsOf(e.Conditions) {
			switch strings.ToLower(c.Operator) {
			case "in", "anyin", "allin":
				out = append(out, c)
			}
		}
	}
	return out
}

func negated(operator string) bool {
	switch strings.ToLower(operator) {
	case "notin", "anynotin", "allnotin":
		return true
	}
	return false
}

// ruleConditions are those of a rule's preconditions, denials and loops.
func ruleConditions(r *policy.Rule) []*policy.Condition {
	out := conditionsOf(r.Preconditions)
	if r.Validate == nil {
		return out
	}
	if r.Validate.Deny != nil {
		out = append(out, conditionsOf(r.Validate.Deny.Conditions)...)
	}
	return append(out, loopConditions(r.Validate.ForEach)...)
}

func loopConditions(loops []*policy.ForEach) (out []*policy.Condition) {
	for _, f := range loops {
		out = append(out, conditionsOf(f.Preconditions)...)
		if f.Deny != nil {
			out = append(out, conditionsOf(f.Deny.Conditions)...)
		}
		out = append(out, loopConditions(f.ForEach)...)
	}
	return out
}

func conditionsOf(c *policy.Conditions) []*policy.Condition {
	if c == nil {
		return nil
	}
	return append(slices.Clone(c.Any), c.All...)
}

// texts are all strings of an object.
func texts(object any) (out []string) {
	switch v := object.(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			out = append(out, texts(item)...)
		}
	case map[string]any:
		for _, sub := range v {
			out = append(out, texts(sub)...)
		}
	}
	return out
}
