package diff

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// A writer knows what judges write around messages.
type writer struct{ kyvernoBefore, kyvernoBehind, kvapBefore, fault *regexp.Regexp }

func newWriter() writer {
	return writer{
		kyvernoBefore: regexp.MustCompile(`^(validation (error|failure): )+`),
		kyvernoBehind: regexp.MustCompile(`(?s)\.? ?rule \S+ (failed|execution error).*$`),
		kvapBefore:    regexp.MustCompile(`^\[[^\]]*\] `),
		fault:         regexp.MustCompile(`^expression '(?s:.*)' resulted in error: |^variables substitution error in|^the produced message didn't resolve to a string`),
	}
}

// ofKyverno is what the author of a legacy rule wrote of a message; nil where that cannot be told.
func (w writer) ofKyverno(message string) []string {
	return w.plain(w.kyvernoBehind.ReplaceAllString(w.kyvernoBefore.ReplaceAllString(message, ""), ""))
}

// ofNative is what the author wrote of the message of a native policy, made by kvap or not.
func (w writer) ofNative(message string, made bool) []string {
	if made {
		message = w.kvapBefore.ReplaceAllString(message, "")
	}
	return w.plain(message)
}

// plain is a text without what a reader does not see; nil of what a judge says by itself of a fault.
func (w writer) plain(s string) []string {
	if w.fault.MatchString(s) {
		return nil
	}
	return []string{strings.TrimSuffix(strings.Join(strings.Fields(s), " "), ".")}
}

// conditionsTell tells of a rule with conditions that have messages of their own, which Kyverno puts
// behind that of the rule.
func conditionsTell(v *policy.Validate) bool {
	tells := func(d *policy.Deny) bool {
		return d != nil && d.Conditions != nil && slices.ContainsFunc(slices.Concat(d.Conditions.Any, d.Conditions.All), func(c *policy.Condition) bool { return c.Message != "" })
	}
	var loops func([]*policy.ForEach) bool
	loops = func(list []*policy.ForEach) bool {
		return slices.ContainsFunc(list, func(f *policy.ForEach) bool { return tells(f.Deny) || loops(f.ForEach) })
	}
	return tells(v.Deny) || loops(v.ForEach)
}
