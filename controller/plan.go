package controller

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A handoverPlan is what has to be written so that the cluster has what is wanted, and in
// which order.
type handoverPlan struct {
	// write are objects that can be applied now: every rule stays enforced while they are.
	write []client.Object
	// held are policies that wait with their update: it takes a rule from them that others
	// are to enforce, and API servers are not seen yet to judge by the others.
	deferred []string
	// remove are objects that can be removed now, and blocked tells that there are
	// others that cannot.
	remove  []client.Object
	blocked bool
	// foreign are wanted names that cannot be had, and why.
	foreign map[string]error
}

// A planner compares what is wanted with what is there.
type planner struct {
	wanted  map[string]*wantedPolicy
	live    clusterState
	failed  map[string]error // names that cannot be written now
	seen    bool             // the API servers are seen to judge by what is live
	current map[string]bool  // wanted names that are live as wanted
	homes   map[string][]string
	kept    map[string]bool // rules that are to be judged elsewhere, and are not yet
}

// standInSuffix ends the names of stand-ins: a copy of a policy under another name, which
// enforces its rules while the policy itself is rewritten.
const standInSuffix = ".handover"

// planFor compares what is wanted with what is there. It looks at nothing else, so the same
// input gives the same plan.
func planFor(wanted map[string]*wantedPolicy, l clusterState, failed map[string]error, seen bool, kept map[string]bool) handoverPlan {
	p := &planner{wanted: wanted, live: l, failed: failed, seen: seen, kept: kept, current: map[string]bool{}, homes: map[string][]string{}}
	out := handoverPlan{foreign: map[string]error{}}
	names := slices.Sorted(maps.Keys(wanted))
	for _, name := range names {
		if err := p.foreign(wanted[name]); err != nil {
			out.foreign[name] = err
		} else {
			p.current[name] = len(p.changes(wanted[name])) == 0
		}
		for _, rule := range wanted[name].rules {
			p.homes[rule] = append(p.homes[rule], name)
		}
	}
	for _, name := range names {
		if out.foreign[name] != nil || p.current[name] || failed[name] != nil {
			continue
		}
		if !p.mayChange(name) {
			out.deferred = append(out.deferred, name)
			continue
		}
		out.write = append(out.write, p.changes(wanted[name])...)
	}
	p.removals(&out)
	return out
}

// foreign is why a policy cannot have the names that it needs: somebody else made an object of
// one, or the controller itself needs it. A ValidatingPolicy, of which the native policy has
// the name, may have such a one by chance, or by intent.
func (p *planner) foreign(j *wantedPolicy) error {
	if name := j.policy.GetName(); name == canaryName || strings.HasSuffix(name, standInSuffix) {
		return errReserved
	}
	for _, o := range j.objects() {
		if have := p.live.like(o); have != nil && !isOurs(have) {
			return errForeign
		}
	}
	return nil
}

// changes are the objects of a policy that are not there as wanted, the policy first.
func (p *planner) changes(j *wantedPolicy) []client.Object {
	return slices.DeleteFunc(j.objects(), func(o client.Object) bool { return current(o, p.live) })
}

func contains(all, some map[string]string) bool {
	return labels.SelectorFromSet(some).Matches(labels.Set(all))
}

// mayChange tells that a policy may become what is wanted of it: others enforce each rule
// that it has now and then no longer, or a stand-in does.
func (p *planner) mayChange(name string) bool {
	have, ok := p.live.policies[name]
	if !ok {
		return true
	}
	if standIn, ok := p.live.policies[standInOf(name)]; p.seen && ok && isOurs(standIn) {
		return true
	}
	return !slices.ContainsFunc(rulesOf(have), func(rule string) bool { return !slices.Contains(p.wanted[name].rules, rule) && !p.settled(rule) })
}

// settled tells that API servers judge by all policies that are to have the rule.
func (p *planner) settled(rule string) bool {
	homes := p.homes[rule]
	if len(homes) == 0 {
		return !p.kept[rule]
	}
	return p.seen && !slices.ContainsFunc(homes, func(name string) bool { return !p.current[name] })
}

// removals are what the controller made and nobody wants any more: bindings first,
// so that no policy is gone that a binding asks for.
func (p *planner) removals(out *handoverPlan) {
	var policies []client.Object
	unwanted := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p.live.policies)) {
		have := p.live.policies[name]
		if p.wanted[name] != nil || !isOurs(have) || have.GetName() == canaryName {
			continue
		}
		if !p.mayGo(have) {
			out.blocked = true
			continue
		}
		unwanted[name] = true
		policies = append(policies, have)
	}
	for _, name := range slices.Sorted(maps.Keys(p.live.bindings)) {
		have := p.live.bindings[name]
		judge := boundTo(have)
		isWanted := p.wanted[judge] != nil && slices.ContainsFunc(p.wanted[judge].bindings, func(b client.Object) bool { return b.GetName() == have.GetName() })
		if isWanted || !isOurs(have) || have.GetName() == canaryName {
			continue
		}
		_, there := p.live.policies[judge]
		if unwanted[judge] || !there || p.current[judge] && p.seen {
			out.remove = append(out.remove, have)
		} else {
			out.blocked = true
		}
	}
	out.remove = append(out.remove, policies...)
}

// mayGo tells that others enforce all rules of a policy that nobody wants. A stand-in goes
// when the policy that it stands in for is as wanted.
func (p *planner) mayGo(have client.Object) bool {
	if of, ok := strings.CutSuffix(keyOf(have), standInSuffix); ok && p.wanted[of] != nil && !(p.current[of] && p.seen) {
		return false
	}
	return !slices.ContainsFunc(rulesOf(have), func(rule string) bool { return !p.settled(rule) })
}

// standInOf is the key of the stand-in of a policy.
func standInOf(key string) string {
	if name, ok := strings.CutPrefix(key, mutatingPrefix); ok {
		return mutatingPrefix + shortName(name+standInSuffix)
	}
	return shortName(key + standInSuffix)
}

// standIns are copies of policies as they are, under other names.
func standIns(names []string, l clusterState) []client.Object {
	copyOf := func(o client.Object) client.Object {
		out := emptyLike(o)
		setContent(out, o)
		out.SetName(shortName(o.GetName() + standInSuffix))
		out.SetLabels(ownLabels(nil))
		return out
	}
	var out []client.Object
	for _, name := range names {
		have, ok := l.policies[name]
		if !ok {
			continue
		}
		copied := copyOf(have)
		copied.SetAnnotations(maps.Clone(have.GetAnnotations()))
		out = append(out, copied)
		for _, b := range l.bindings {
			if boundTo(b) == name && isOurs(b) {
				bound := copyOf(b)
				bind(bound, copied.GetName())
				out = append(out, bound)
			}
		}
	}
	return out
}
