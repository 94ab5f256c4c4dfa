package deviation

import (
	"strings"

	"github.com/kvap/kvap/policy"
)

// requestAsPattern: a membership operator of the rule has a constant, and the
// request a text with a wildcard which, taken for a pattern, matches it.
func requestAsPattern(d Difference) bool {
	constants := membershipConstants(d.Rule)
	if len(constants) == 0 {
		return false
	}
	for _, text := range append(texts(d.Object), texts(d.Before)...) {
		if !strings.ContainsAny(text, "*?") {
			continue
		}
		pattern := wildcard(text)
		for _, c := range constants {
			if c != text && pattern.MatchString(c) {
				return true
			}
		}
	}
	return false
}

// membershipConstants are the constant texts that membership operators of a rule
// compare, in preconditions and denials.
func membershipConstants(r *policy.Rule) []string {
	out := conditionConstants(r.Preconditions)
	if r.Validate == nil {
		return out
	}
	if r.Validate.Deny != nil {
		out = append(out, conditionConstants(r.Validate.Deny.Conditions)...)
	}
	return append(out, loopConstants(r.Validate.ForEach)...)
}

func loopConstants(loops []*policy.ForEach) (out []string) {
	for _, f := range loops {
		out = append(out, conditionConstants(f.Preconditions)...)
		if f.Deny != nil {
			out = append(out, conditionConstants(f.Deny.Conditions)...)
		}
		out = append(out, loopConstants(f.ForEach)...)
	}
	return out
}

func conditionConstants(c *policy.Conditions) (out []string) {
	if c == nil {
		return nil
	}
	for _, condition := range append(append([]*policy.Condition{}, c.Any...), c.All...) {
		switch strings.ToLower(condition.Operator) {
		case "in", "notin", "anyin", "allin", "anynotin", "allnotin":
			out = append(out, constants(condition.Key)...)
			out = append(out, constants(condition.Value)...)
		}
	}
	return out
}

func constants(n *policy.Node) (out []string) {
	if n == nil {
		return nil
	}
	if n.Kind == policy.String && !strings.Contains(n.Str, "{{") {
		out = append(out, n.Str)
	}
	for _, item := range n.Items {
		out = append(out, constants(item)...)
	}
	return out
}

// texts are all strings of an object.
func texts(object any) (out []string) {
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, sub := range v {
				walk(sub)
			}
		}
	}
	walk(object)
	return out
}
