package scan

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/report"
	"github.com/kvap/kvap/vap/apiserver"
)

// A Survey counts the objects that violate each rule. It keeps a few names, and
// nothing else of an object.
type Survey struct {
	judge  *Judge
	known  []map[string]any
	counts map[*compile.Rule]report.Violations
	// Objects is how many were judged, and Excluded how many were not, for bindings leave
	// out their namespaces.
	Objects, Excluded int
}

// NewSurvey begins a survey by policies, which knows some objects of the cluster: its
// Namespaces, and what rules look up.
func NewSurvey(p Policies, known []map[string]any) (*Survey, error) {
	by, err := NewJudge(p, known)
	if err != nil {
		return nil, err
	}
	s := &Survey{judge: by, known: known, counts: map[*compile.Rule]report.Violations{}}
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
	opinions, err := s.judge.opinions(ctx, o, nil)
	if err != nil {
		return err
	}
	s.Objects++
	results := map[*compile.Rule]surveyed{} // of a rule with its expansions, the gravest
	for _, opinion := range opinions {
		result, rule := s.of(opinion), opinion.Rule.Rule
		if result.violated && !results[rule].violated || result.unknown != "" && results[rule] == (surveyed{}) {
			result.message = resultRow(opinion, "").Message
			results[rule] = result
		}
	}
	for rule, result := range results {
		v := s.counts[rule]
		v.Add(report.Violator{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), Message: result.message}, result.unknown)
		s.counts[rule] = v
	}
	return nil
}

// A surveyed is what is counted of a rule and an object.
type surveyed struct {
	violated bool
	unknown  report.Ignorance
	message  string
}

// of is what an opinion counts as. An error is a violation, for the API server denies, unless the
// rule errs for what only a cluster knows, or its failure policy is Ignore.
func (s *Survey) of(o judge.Opinion) surveyed {
	switch result := resultOf(o); {
	case o.Lacks != nil, result == "error" && judge.Lacks(o, s.known):
		return surveyed{unknown: report.NotGiven}
	case o.Native == apiserver.Unknown, o.Status == interp.Unknown:
		return surveyed{unknown: report.NotTold}
	case result == "error":
		return surveyed{violated: o.Violated()}
	default:
		return surveyed{violated: result == "fail"}
	}
}
