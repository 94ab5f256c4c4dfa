package native

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// InvalidRequirement tells whether Kubernetes refuses a requirement. (An entry of
// matchLabels that it refuses is one that no object has.)
func InvalidRequirement(e policy.SelectorExpression) bool {
	var op selection.Operator
	switch e.Operator {
	case "In":
		op = selection.In
	case "NotIn":
		op = selection.NotIn
	case "Exists":
		op = selection.Exists
	case "DoesNotExist":
		op = selection.DoesNotExist
	}
	_, err := labels.NewRequirement(e.Key, op, e.Values)
	return err != nil
}

// RefusedSelector tells of a selector that no API server takes.
func RefusedSelector(s *policy.Selector) bool {
	return slices.ContainsFunc(s.Expressions, InvalidRequirement) || slices.ContainsFunc(s.MatchLabels, func(p policy.Pair) bool {
		return InvalidRequirement(policy.SelectorExpression{Key: p.Key, Operator: "In", Values: []string{p.Value}})
	})
}

// SelectorKey is everything that a selector says.
func SelectorKey(s vap.Selector) string {
	parts := []string{"selector"}
	for _, l := range s.Labels {
		parts = append(parts, l.Key+"="+l.Value)
	}
	for _, e := range s.Expressions {
		parts = append(parts, e.Key+" "+e.Operator+" "+strings.Join(e.Values, ","))
	}
	return strings.Join(parts, "\x04")
}

// PlainSelector is a selector in which nothing is a wildcard.
func PlainSelector(s *policy.Selector) vap.Selector {
	var out vap.Selector
	for _, p := range s.MatchLabels {
		out.Labels = append(out.Labels, vap.Label{Key: p.Key, Value: p.Value})
	}
	for _, e := range s.Expressions {
		out.Expressions = append(out.Expressions, vap.Requirement{Key: e.Key, Operator: e.Operator, Values: e.Values})
	}
	return out
}
