package scan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/report"
)

// A Survey counts the objects that violate each rule. It keeps a few names, and
// nothing else of an object.
type Survey struct {
	judge  *Judge
	counts map[*compile.Rule]report.Violations
	// Objects is how many were judged, and Excluded how many were not, for bindings leave
	// out their namespaces.
	Objects, Excluded int
}

// NewSurvey begins a survey by policies, which knows some objects of the cluster: its
// Namespaces, and what rules look up.
func NewSurvey(p Policies, known []map[string]any) (*Survey, error) {
	judge, err := NewJudge(p, known)
	if err != nil {
		return nil, err
	}
	s := &Survey{judge: judge, counts: map[*compile.Rule]report.Violations{}}
	for _, r := range p.Compiled.Rules {
		if scannable(r) {
			s.counts[r] = report.Violations{}
		}
	}
	return s, nil
}

// Violations are what violates each rule that was asked.
func (s *Survey) Violations() map[*compile.Rule]report.Violations { return s.counts }

// Unread notes that objects which rules are about may not be read: what violates them is
// not known.
func (s *Survey) Unread(rules []*compile.Rule) {
	for _, r := range rules {
		if v, counted := s.counts[r]; counted {
			v.Unread = true
			s.counts[r] = v
		}
	}
}

// Object puts an object before the policies.
func (s *Survey) Object(ctx context.Context, o *unstructured.Unstructured) error {
	switch {
	case o.GetDeletionTimestamp() != nil:
		return nil
	case s.judge.excludes(o.GetNamespace()):
		s.Excluded++
		return nil
	}
	opinions, err := s.judge.opinions(ctx, o)
	if err != nil {
		return err
	}
	s.Objects++
	results := map[*compile.Rule]report.ScanResult{} // of a rule with its expansions, the gravest
	for _, opinion := range opinions {
		result, rule := resultOf(opinion), opinion.Rule.Rule
		if result == "fail" && results[rule].Result != "fail" || result == "error" && results[rule].Result == "" {
			row := resultRow(opinion, result)
			row.Result = result // whether it is scored or not
			results[rule] = row
		}
	}
	for rule, row := range results {
		v := s.counts[rule]
		v.Add(report.Violator{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Message: row.Message}, row.Result == "error")
		s.counts[rule] = v
	}
	return nil
}
