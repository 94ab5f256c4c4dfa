package interp

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kvap/kvap/interp/internal/datum"
	"github.com/kvap/kvap/interp/internal/wildcard"
	"github.com/kvap/kvap/policy"
)

// selects tells whether a selector selects something with the given labels.
// Only matchLabels may hold wildcards. A selector that Kubernetes would not
// accept selects nothing.
func selects(s *policy.Selector, actual map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(labelSelector(s, actual))
	return err == nil && selector.Matches(labels.Set(actual))
}

// labelSelector is s with its wildcards resolved to labels that are there.
func labelSelector(s *policy.Selector, actual map[string]string) *metav1.LabelSelector {
	out := &metav1.LabelSelector{MatchLabels: make(map[string]string, len(s.MatchLabels))}
	for _, want := range s.MatchLabels {
		key, value := resolveLabel(want.Key, want.Value, actual)
		out.MatchLabels[key] = value
	}
	for _, e := range s.Expressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	return out
}

// resolveLabel finds the label that a pair with wildcards stands for. Where
// there is none, zeros take the place of the wildcards, so that the pair stays
// valid and normally matches nothing.
func resolveLabel(key, value string, actual map[string]string) (string, string) {
	if !wildcard.Has(key) && !wildcard.Has(value) {
		return key, value
	}
	for _, k := range datum.Keys(actual) {
		if wildcard.Match(key, k) && wildcard.Match(value, actual[k]) {
			return k, actual[k]
		}
	}
	zeros := strings.NewReplacer("*", "0", "?", "0")
	return zeros.Replace(key), zeros.Replace(value)
}
