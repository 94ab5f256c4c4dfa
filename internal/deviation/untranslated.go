package deviation

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/policy"
)

// untranslated: a membership operator that is not negated compares a constant with
// a text of the request that has a wildcard and, taken for a pattern, matches it.
// It goes when the native form says so too.
func untranslated(d Difference) bool {
	if d.Said != "allow" && d.Said != "deny" && d.Said != "nomatch" {
		return false
	}
	all := append(texts(d.Object), texts(d.Before)...)
	return slices.ContainsFunc(ruleConditions(d.Rule), func(c *policy.Condition) bool {
		return strings.HasSuffix(strings.ToLower(c.Operator), "in") && !negated(c.Operator) && takenForPattern(c, all)
	})
}
