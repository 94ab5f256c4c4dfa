package vap

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// namespaceName is the label that every Namespace has with its own name.
const namespaceName = "kubernetes.io/metadata.name"

// IsEmpty tells that s selects everything.
func (s Selector) IsEmpty() bool { return len(s.Labels) == 0 && len(s.Expressions) == 0 }

// And selects what both s and t select.
func (s Selector) And(t Selector) Selector {
	out := Selector{Labels: slices.Clone(s.Labels), Expressions: slices.Clone(s.Expressions)}
	for _, l := range t.Labels {
		if !slices.Contains(out.Labels, l) {
			out.Labels = append(out.Labels, l)
		}
	}
	for _, r := range t.Expressions {
		out.Expressions = addRequirement(out.Expressions, r)
	}
	return out
}

// addRequirement adds r, unless it is there; what is not in one list nor in
// another is not in the longer list of both.
func addRequirement(rs []Requirement, r Requirement) []Requirement {
	for i, have := range rs {
		if have.Key != r.Key || have.Operator != r.Operator {
			continue
		}
		if r.Operator == string(metav1.LabelSelectorOpNotIn) {
			rs[i].Values = union(have.Values, r.Values)
			return rs
		}
		if slices.Equal(have.Values, r.Values) {
			return rs
		}
	}
	return append(rs, r)
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// excludeNamespaces narrows s to namespaces that are not among names. Where s
// already names namespaces, only those among them that are excluded matter.
func (s Selector) excludeNamespaces(names []string) Selector {
	if only, ok := s.Namespaces(); ok {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(only, n) })
	}
	if len(names) == 0 {
		return s
	}
	return s.And(Selector{Expressions: []Requirement{{
		Key: namespaceName, Operator: string(metav1.LabelSelectorOpNotIn), Values: names,
	}}})
}

// Namespaces are the only namespaces that s can select, if it names them.
func (s Selector) Namespaces() (names []string, ok bool) {
	for _, l := range s.Labels {
		if l.Key == namespaceName {
			return []string{l.Value}, true
		}
	}
	for _, r := range s.Expressions {
		if r.Key == namespaceName && r.Operator == string(metav1.LabelSelectorOpIn) {
			return r.Values, true
		}
	}
	return nil, false
}

// object is the API's form of s, which is empty and not nil where s selects
// everything: the API server writes it so, and refuses to judge with a nil one.
func (s Selector) object() *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	for _, l := range s.Labels {
		if have, twice := out.MatchLabels[l.Key]; twice {
			if have != l.Value { // a map holds only one; both must hold, so nothing is selected
				out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: l.Key, Operator: metav1.LabelSelectorOpIn, Values: []string{l.Value},
				})
			}
			continue
		}
		if out.MatchLabels == nil {
			out.MatchLabels = map[string]string{}
		}
		out.MatchLabels[l.Key] = l.Value
	}
	for _, r := range s.Expressions {
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator), Values: slices.Clone(r.Values),
		})
	}
	return out
}
