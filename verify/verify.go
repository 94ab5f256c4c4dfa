package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate"
	"github.com/kvap/kvap/vap"
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
	Opinion
	Request *Request
	// Params are the objects that rules looked up, given and made up.
	Params []*unstructured.Unstructured
	// Tried is how many requests had been tried when the first of its kind was found.
	Tried int
}

// Policy looks for requests on which the translation of a policy and the
// interpreter disagree. An error says why there was nothing to search with.
func Policy(ctx context.Context, p *policy.Policy, o Options) (Evidence, error) {
	out := Evidence{Policy: p}
	e, err := NewEngines(p, o.Setting)
	if err != nil {
		return out, err
	}
	out.Refused = e.Refused(o.Setting)
	s := newSearch(e, o)
	begin := time.Now()
	err = s.run(ctx, begin)
	out.Requests, out.Elapsed = s.tried, time.Since(begin)
	out.Rules = s.evidence()
	return out, err
}

// A search goes on from requests that showed something new.
type search struct {
	engines  *Engines
	options  Options
	make     *generator
	coverage *coverage
	chance   *rand.Rand
	rules    []*policy.Rule
	found    map[string]*Counterexample
	verdicts map[string]map[interp.Status]int
	matched  map[string]int
	queue    [][]byte // decisions that made something new
	tried    int
}

func newSearch(e *Engines, o Options) *search {
	s := &search{
		engines: e, options: o, make: newGenerator(e.Policy, o.Translate.Exceptions, o.Translate.Schemas),
		chance: rand.New(rand.NewPCG(o.Seed, 0x6b766170)),
		found:  map[string]*Counterexample{}, verdicts: map[string]map[interp.Status]int{}, matched: map[string]int{},
	}
	for _, r := range policy.Expand(e.Policy) {
		for _, name := range e.Native {
			if name == r.Name {
				s.rules = append(s.rules, r)
				s.verdicts[name] = map[interp.Status]int{}
			}
		}
	}
	s.coverage = newCoverage(s.rules)
	return s
}

// run tries requests until the budget is used up, or every rule is refuted.
func (s *search) run(ctx context.Context, begin time.Time) error {
	limit := s.options.Requests
	if limit == 0 && s.options.Time == 0 {
		limit = defaultRequests
	}
	for (limit == 0 || s.tried < limit) && len(s.found) < len(s.rules) {
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

// try judges one more request.
func (s *search) try(ctx context.Context) error {
	c := s.next()
	r := s.make.request(c)
	s.tried++
	s.coverage.fresh = false
	opinions, err := s.engines.Judge(interp.Observed(ctx, s.coverage.observe), r)
	if err != nil {
		return fmt.Errorf("a request cannot be judged: %w: %s", err, r)
	}
	for _, o := range opinions {
		s.coverage.verdict(o)
		s.verdicts[o.Rule][o.Interp]++
		if o.Interp != interp.None || o.Native != vap.NoMatch {
			s.matched[o.Rule]++
		}
		if !o.Agree() && s.found[o.Rule] == nil {
			small, opinion := s.shrink(ctx, c.made(), r, o)
			s.found[o.Rule] = &Counterexample{Opinion: opinion, Request: small, Params: s.engines.Params(small), Tried: s.tried}
		}
	}
	if s.coverage.fresh {
		s.queue = append(s.queue, c.made())
	}
	return nil
}

// next are the decisions for one more request: new ones, or those of one that
// showed something new, changed in some places.
func (s *search) next() *choice {
	if len(s.queue) == 0 || s.chance.IntN(3) == 0 {
		return follow(nil, s.chance)
	}
	// the later ones needed more luck to find
	from := s.queue[max(s.chance.IntN(len(s.queue)), s.chance.IntN(len(s.queue)))]
	list := append([]byte{}, from...)
	for range 1 + s.chance.IntN(4) {
		if len(list) == 0 {
			break
		}
		at := s.chance.IntN(len(list))
		switch s.chance.IntN(6) {
		case 0:
			list = list[:at]
		case 1:
			list = append(list[:at], list[at+1:]...)
		default:
			list[at] = byte(s.chance.IntN(256))
		}
	}
	return follow(list, s.chance)
}

func (s *search) evidence() []RuleEvidence {
	var out []RuleEvidence
	for _, r := range policy.Expand(s.engines.Policy) {
		e := RuleEvidence{Rule: r.Name, Target: s.target(r)}
		if verdicts, native := s.verdicts[r.Name]; native {
			e.Native, e.Requests, e.Matched, e.Verdicts = true, s.tried, s.matched[r.Name], verdicts
			e.BothWays, e.Predicates = s.coverage.bothWays(r.Name)
			e.Unseen = s.coverage.oneWay(r.Name)
			e.Counterexample = s.found[r.Name]
		}
		out = append(out, e)
	}
	return out
}

// target is where a rule is judged, as written or expanded.
func (s *search) target(r *policy.Rule) translate.Target {
	for _, result := range s.engines.Translation.Rules {
		if result.Rule != nil && result.Rule.Index == r.Index {
			return result.Target
		}
	}
	return translate.Unsupported
}
