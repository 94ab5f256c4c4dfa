package webhook

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kvap/kvap/controller/webhook/registration"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A Policy is a policy to serve, with only the rules that stay behind. It must not
// be changed afterwards.
type Policy struct {
	*policy.Policy
	// Shadow tells that the policy is judged and recorded, and changes nothing.
	Shadow bool
}

// A PolicySet is all that is served.
type PolicySet struct {
	Policies   []Policy
	Exceptions []*policy.Exception
}

// linger is how long a policy also answers on a route that it had before: until
// the API servers have seen the configuration that names the new one.
const linger = time.Minute

// A servedPolicy is ready to judge.
type servedPolicy struct {
	Policy
	engine *interp.Interpreter
	rules  map[string]*policy.Rule // by the name that is reported
	// paths are those of its routes, one for each verb that it has.
	paths []string
	// evaluatesConditions tells that API servers do not evaluate its match conditions.
	evaluatesConditions bool
}

// A routedPolicy is a policy on a route; until is zero where it belongs there.
type routedPolicy struct {
	*servedPolicy
	until time.Time
}

// A snapshot is what is served where. It does not change.
type snapshot struct {
	routes     map[string][]routedPolicy // by path, in the order of the policies
	policies   map[*policy.Policy]*servedPolicy
	exceptions []*policy.Exception
}

// Set replaces what is served, at once and as a whole. Requests that are being
// judged end with what they began with.
func (s *Server) Set(set PolicySet) {
	s.setting.Lock()
	defer s.setting.Unlock()
	before := s.current.Load()
	next := &snapshot{
		routes: map[string][]routedPolicy{}, policies: map[*policy.Policy]*servedPolicy{}, exceptions: slices.Clone(set.Exceptions),
	}
	inOrder := slices.Clone(set.Policies) // by name, so that patches are always made in one order
	slices.SortStableFunc(inOrder, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(a.FullName(), b.FullName()), cmp.Compare(a.Kind, b.Kind))
	})
	for _, p := range inOrder {
		one := s.serve(p, before, next.exceptions)
		next.policies[p.Policy] = one
		for _, path := range one.paths {
			next.routes[path] = append(next.routes[path], routedPolicy{servedPolicy: one})
		}
	}
	if before != nil {
		next.keepPlaces(before, s.options.Now())
	}
	s.current.Store(next)
}

// Broken is what does not compile of the policies that are served, of those of which
// something does not. They are served all the same: what errs is refused. It compiles what
// no request has needed yet, while requests are judged, and stops with its context.
func (s *Server) Broken(ctx context.Context) map[*policy.Policy]error {
	out := map[*policy.Policy]error{}
	now := s.current.Load()
	if now == nil {
		return out
	}
	for p, one := range now.policies {
		if err := one.engine.Broken(ctx); err != nil && ctx.Err() == nil {
			out[p] = err
		}
	}
	return out
}

// serve makes a policy ready, or takes what there is: an engine reads rules once.
func (s *Server) serve(p Policy, before *snapshot, exceptions []*policy.Exception) *servedPolicy {
	var old *servedPolicy
	if before != nil {
		old = before.policies[p.Policy]
	}
	if old != nil && slices.Equal(before.exceptions, exceptions) {
		return &servedPolicy{p, old.engine, old.rules, old.paths, old.evaluatesConditions}
	}
	one := &servedPolicy{Policy: p, rules: map[string]*policy.Rule{}, evaluatesConditions: registration.EvaluatesNone(p.Policy)}
	one.engine = interp.New([]*policy.Policy{p.Policy}, exceptions, s.options.WorldOf(p.Policy), interp.Limits{})
	for verb, has := range map[registration.Verb]bool{
		registration.Validate: registration.Validates(p.Policy), registration.Mutate: registration.Mutates(p.Policy),
	} {
		if has {
			one.paths = append(one.paths, registration.RouteOf(p.Policy, verb).Path())
		}
	}
	for _, r := range policy.Expand(p.Policy) {
		if _, taken := one.rules[r.Name]; !taken {
			one.rules[r.Name] = r
		}
	}
	return one
}

// keepPlaces lets policies answer for a while where an earlier form of them did. A
// route that nobody has any more stays known: its requests are admitted, and not
// refused as if the policy were yet to come.
func (s *snapshot) keepPlaces(before *snapshot, now time.Time) {
	byName := map[string]*servedPolicy{}
	for _, p := range s.policies {
		byName[p.Kind+" "+p.FullName()] = p
	}
	for path, list := range before.routes {
		here := s.routes[path]
		for _, was := range list {
			p := byName[was.Kind+" "+was.FullName()]
			at := func(other routedPolicy) bool { return other.servedPolicy == p }
			switch {
			case p == nil || slices.ContainsFunc(here, at):
			case was.until.IsZero():
				here = append(here, routedPolicy{p, now.Add(linger)})
			case was.until.After(now):
				here = append(here, routedPolicy{p, was.until})
			}
		}
		s.routes[path] = here
	}
}

// at are the policies at a path; known is false for a path that nobody has been at.
func (s *snapshot) at(path string, now time.Time) (policies []*servedPolicy, known bool) {
	list, known := s.routes[path]
	for _, p := range list {
		if p.until.IsZero() || p.until.After(now) {
			policies = append(policies, p.servedPolicy)
		}
	}
	return policies, known
}
