package verify

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/compile"
	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap/apiserver"
)

// Options are the choices of a search. The same seed tries the same requests.
type Options struct {
	Setting
	// Requests and Time bound the search of a policy, whichever comes first; zero is
	// no bound. With neither, 2000 requests are tried.
	Requests int
	Time     time.Duration
	// Progress, where not nil, is told now and then how many requests were tried.
	Progress func(tried int)
}

const defaultRequests = 2000

// Evidence is what came of the search in one policy.
type Evidence struct {
	Policy   *policy.Policy
	Requests int
	Elapsed  time.Duration
	Rules    []RuleEvidence // as written and expanded
	// Refused is why an API server would not take the objects.
	Refused []string
}

// Disagree tells whether a counterexample was found.
func (e Evidence) Disagree() bool {
	for _, r := range e.Rules {
		if r.Counterexample != nil {
			return true
		}
	}
	return len(e.Refused) > 0
}

// RuleEvidence is what came of the search for one rule.
type RuleEvidence struct {
	Rule string // as Kyverno reports it
	// Native tells that the rule has a native form; others are not held against
	// anything. Target is where the rule is judged.
	Native bool
	Target translate.Target
	// Requests were tried, of which Matched the rule applies to.
	Requests, Matched int
	// Verdicts counts the interpreter's.
	Verdicts map[interp.Status]int
	// BothWays of the Predicates (conditions and keys of patterns) were seen to
	// hold and to fail; Unseen are the others.
	BothWays, Predicates int
	Unseen               []Unseen
	Counterexample       *Counterexample
}

// Unseen is a predicate that was not seen both ways.
type Unseen struct {
	At           string // "" is whether the rule applies
	Holds, Fails bool   // what it was seen to do
}

// A Counterexample is a request of which the two sides think differently, as
// small as was found.
type Counterexample struct {
	judge.Opinion
	Request *Request // as somebody would write its objects
	Asked   *Request // as it was judged, with all that an API server fills in
	// Params are the objects that rules looked up, given and made up.
	Params []*unstructured.Unstructured
	// Tried is how many requests had been tried when the first of its kind was found.
	Tried int
}

// Policy looks for requests on which the translation of a policy and the
// interpreter disagree. An error says why there was nothing to search with.
func Policy(ctx context.Context, p *policy.Policy, o Options) (Evidence, error) {
	out := Evidence{Policy: p}
	j, err := NewJudges(p, o.Setting)
	if err != nil {
		return out, err
	}
	out.Refused = j.Refused()
	s := newSearch(j, o)
	begin := time.Now()
	err = s.run(ctx, begin)
	out.Requests, out.Elapsed = s.tried, time.Since(begin)
	out.Rules = s.evidence()
	return out, err
}

// A search goes on from requests that showed something new.
type search struct {
	judges   *Judges
	options  Options
	explore  *Explorer
	coverage *Coverage
	native   map[*compile.Form]*findings
	refuted  int // how many of them have a counterexample
	tried    int
}

// findings are what came of one native rule so far.
type findings struct {
	verdicts       map[interp.Status]int
	matched        int
	counterexample *Counterexample
}

func newSearch(j *Judges, o Options) *search {
	s := &search{
		judges: j, options: o, explore: NewExplorer(about(j.policy, o.Translate.Exceptions), o.Translate.Schemas, o.Seed),
		native: map[*compile.Form]*findings{}, coverage: NewCoverage(j.covered()),
	}
	for _, f := range j.Native() {
		s.native[f] = &findings{verdicts: map[interp.Status]int{}}
	}
	return s
}

// run tries requests until the budget is used up, or every rule is refuted.
func (s *search) run(ctx context.Context, begin time.Time) error {
	limit := s.options.Requests
	if limit == 0 && s.options.Time == 0 {
		limit = defaultRequests
	}
	for (limit == 0 || s.tried < limit) && s.refuted < len(s.native) {
		if s.tried%32 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if s.options.Time > 0 && time.Since(begin) > s.options.Time {
				return nil
			}
			if s.options.Progress != nil {
				s.options.Progress(s.tried)
			}
		}
		if err := s.try(ctx); err != nil {
			return err
		}
	}
	return nil
}

// about is one policy as a subject.
func about(p *policy.Policy, exceptions []*policy.Exception) Subject {
	return Subject{Policies: []*policy.Policy{p}, Exceptions: exceptions}
}

// A verdict is what both judges say of a rule.
type verdict struct {
	rule   *compile.Form
	native apiserver.Outcome
	interp interp.Status
}

// covered are the rules as coverage knows them.
func (j *Judges) covered() (out []CoveredRule) {
	for _, f := range j.rules {
		out = append(out, CoveredRule{Name: f.Name, Source: f.Source, Whole: f.Source == nil && isOf(f) && f.Name == f.Rule.Policy.Name})
	}
	return out
}

// try judges one more request.
func (s *search) try(ctx context.Context) error {
	a := s.explore.Next()
	r := a.Request
	s.tried++
	s.coverage.Begin()
	opinions, err := s.judges.Judge(interp.Observed(ctx, s.coverage.Observe), r)
	if err != nil {
		return fmt.Errorf("a request cannot be judged: %w: %s", err, r)
	}
	for _, o := range opinions {
		s.coverage.Note(verdict{o.Rule, o.Native, o.Status})
	}
	fresh := s.coverage.Fresh()
	for _, o := range opinions {
		f := s.native[o.Rule]
		f.verdicts[o.Status]++
		if o.Status != interp.None || o.Native != apiserver.NoMatch {
			f.matched++
		}
		if !o.Agree() && f.counterexample == nil {
			small, opinion := s.shrink(ctx, a, o)
			f.counterexample = &Counterexample{Opinion: opinion, Request: small, Asked: s.judges.asked(small), Params: s.judges.params(small), Tried: s.tried}
			s.refuted++
		}
	}
	if fresh {
		s.explore.Keep(a)
	}
	return nil
}

func (s *search) evidence() []RuleEvidence {
	var out []RuleEvidence
	for i, f := range s.judges.rules {
		if !isOf(f) {
			continue
		}
		e := RuleEvidence{Rule: f.Name, Target: f.Rule.Target}
		if found := s.native[f]; found != nil {
			e.Target = translate.Native // as what is deployed may be, although this run would not make it so
			e.Native, e.Requests, e.Matched, e.Verdicts = true, s.tried, found.matched, found.verdicts
			e.BothWays, e.Predicates = s.coverage.BothWays(i)
			e.Unseen = s.coverage.OneWay(i)
			e.Counterexample = found.counterexample
		}
		out = append(out, e)
	}
	return out
}
