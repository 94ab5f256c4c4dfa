package background

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A Policy is a policy whose work is done, with only the rules that remain. It must
// not be changed afterwards.
type Policy struct {
	*policy.Policy
	// Of is the object in the cluster.
	Of v1alpha1.PolicyReference
}

// A PolicySet is all policies whose work is done.
type PolicySet struct {
	Policies   []Policy
	Exceptions []*policy.Exception
	// ExcludeNamespaces are those whose objects, and which themselves, trigger nothing
	// that is there already: no request for them does either.
	ExcludeNamespaces []string
}

// A preparedPolicy is ready to be asked.
type preparedPolicy struct {
	Policy
	key    string // keyOf
	engine *interp.Interpreter
	rules  []*preparedRule
}

// A policySnapshot is the policies at a time. It does not change.
type policySnapshot struct {
	policies   map[string]*preparedPolicy // by keyOf
	kinds      map[string][]ObjectKind    // by keyOf: those that its rules match and the cluster serves
	exceptions []*policy.Exception
	excluded   []string // namespaces
}

// keyOf tells policies apart. One that was made anew under its name takes over what
// the one before has left.
func keyOf(r v1alpha1.PolicyReference) string {
	return r.Group + "/" + r.Kind + "/" + r.Namespace + "/" + r.Name
}

// prepare makes policies ready, and keeps what is as before: an engine reads rules
// once.
func (w *Worker) prepare(set PolicySet, before *policySnapshot) *policySnapshot {
	next := &policySnapshot{policies: map[string]*preparedPolicy{}, kinds: map[string][]ObjectKind{}, exceptions: slices.Clone(set.Exceptions), excluded: slices.Clone(set.ExcludeNamespaces)}
	same := before != nil && slices.Equal(before.exceptions, next.exceptions)
	for _, p := range set.Policies {
		key := keyOf(p.Of)
		if same && before.policies[key] != nil && before.policies[key].Policy == p {
			next.policies[key] = before.policies[key]
		} else {
			engine := interp.New([]*policy.Policy{p.Policy}, next.exceptions, w.options.World, w.options.Limits)
			next.policies[key] = &preparedPolicy{Policy: p, key: key, engine: engine, rules: preparedRules(p.Policy)}
			for _, r := range next.policies[key].rules {
				r.policy = next.policies[key]
			}
		}
		for _, r := range next.policies[key].rules {
			if !r.invalid {
				next.kinds[key] = append(next.kinds[key], w.matched(r)...)
			}
		}
	}
	return next
}

// isNew tells of a policy that was not there before, or was another one, or of which a
// kind is served that was not: there may be objects from before anybody heard of it.
func (s *policySnapshot) isNew(key string, before *policySnapshot) bool {
	return before == nil || before.policies[key] != s.policies[key] ||
		slices.ContainsFunc(s.kinds[key], func(k ObjectKind) bool { return !slices.Contains(before.kinds[key], k) })
}

// watched are the kinds whose changes the Worker needs: of objects that rules with
// synchronize have made, and of objects that they have copied.
func (w *Worker) watched(s *policySnapshot) []Watched {
	all := map[Watched]bool{}
	for _, p := range s.policies {
		for _, r := range p.rules {
			if !r.keepsInStep() {
				continue
			}
			for _, k := range w.makes(r) {
				all[Watched{ObjectKind: k, Namespace: p.scope()}] = true
			}
			for _, k := range w.copies(r) {
				all[Watched{ObjectKind: k, Namespace: p.scope(), Sources: true}] = true
			}
		}
	}
	out := slices.Collect(maps.Keys(all))
	return slices.DeleteFunc(out, func(one Watched) bool { // a watch of all namespaces takes it in
		wide := one
		wide.Namespace = ""
		return one.Namespace != "" && all[wide]
	})
}

// scope is the namespace that the policy is confined to; empty for none.
func (p *preparedPolicy) scope() string { return scopeOf(p.Policy.Policy) }

// rule is the rule of a name; nil where there is none, or no policy.
func (p *preparedPolicy) rule(name string) *preparedRule {
	if p == nil {
		return nil
	}
	for _, r := range p.rules {
		if r.name == name {
			return r
		}
	}
	return nil
}
