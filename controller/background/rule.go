package background

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kvap/kvap/api/v1alpha1"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
)

// A preparedRule is what a policy has done in the background, read once. The rest of the package
// knows no more of rules than this; what a rule wants is found out by package interp.
type preparedRule struct {
	name    string
	policy  *preparedPolicy
	invalid bool
	source  *policy.Node // as written
	// changes tells that the rule changes objects that are there, in place of making some.
	changes bool
	// existing tells that objects which were there before the policy trigger it, and
	// needsRequest that nothing does that is not a request.
	existing, needsRequest bool
	// onceOnly tells that objects which are there are looked at when the policy is new only.
	onceOnly bool
	// synchronize tells that what it has made is kept in step, goes that it goes with the
	// rule, and makesOfDeleted that it makes something of objects that are deleted.
	synchronize, goes, makesOfDeleted bool
	// makes and copies are the kinds of objects, as far as the text tells: a kind that is a
	// variable is known only when it is made.
	makes, copies []v1alpha1.KindReference
	needs         []accessNeed
	place, asks   string // of its RuleRecord
	match         *policy.MatchBlock
	// constraints are in the place of match for a policy in CEL. Which objects that makes
	// nobody can tell from its text: open tells that makes, copies and needs are known from
	// what has been made.
	constraints *policy.MatchConstraints
	open, apply bool
}

// anyPlace is the place of what is known only when it is made.
const anyPlace = "any"

// preparedRules are the rules of a policy that start work.
func preparedRules(p *policy.Policy) []*preparedRule {
	switch {
	case p.Generating != nil:
		return []*preparedRule{preparedGenerating(p)}
	case p.Mutating != nil && p.Mutating.Existing:
		return []*preparedRule{preparedMutating(p)}
	}
	user := asksUser(p)
	var out []*preparedRule
	for _, r := range p.Rules {
		if !r.StartsWork() {
			continue
		}
		h := &preparedRule{name: r.Name, invalid: r.Invalid, source: r.Source, match: r.Match}
		h.needsRequest = user || asksOperation(r.Match)
		if !r.Invalid {
			h.read(p, r)
		}
		out = append(out, h)
	}
	return out
}

// preparedGenerating is a GeneratingPolicy, which is one rule with its name.
func preparedGenerating(p *policy.Policy) *preparedRule {
	g := p.Generating
	return &preparedRule{
		name: p.Name, invalid: p.Invalid, source: p.Source, constraints: g.MatchConstraints,
		existing: g.Existing, needsRequest: holds(p.Source.Get("spec"), userInCEL),
		synchronize: g.Synchronize, goes: g.Synchronize && !g.Orphan, makesOfDeleted: g.Lists("DELETE"),
		open: true, apply: p.ServerSideApply, place: anyPlace,
	}
}

// preparedMutating is a MutatingPolicy that changes existing objects, which is one rule with its
// name. Where an expression finds these, the objects that it matches trigger it when it is
// new, and not each hour; else those that are targets are changed themselves.
func preparedMutating(p *policy.Policy) *preparedRule {
	m := p.Mutating
	return &preparedRule{
		name: p.Name, invalid: p.Invalid, source: p.Source, changes: true, existing: true,
		needsRequest: holds(p.Source.Get("spec"), userInCEL), constraints: m.MatchConstraints, onceOnly: m.TargetExpression != "",
	}
}

func (r *preparedRule) read(p *policy.Policy, rule *policy.Rule) {
	g := rule.Generate
	if g == nil {
		r.changes, r.existing = true, p.MutateExisting
		if rule.Mutate.OnPolicyUpdate != nil {
			r.existing = *rule.Mutate.OnPolicyUpdate
		}
		return
	}
	r.existing = p.GenerateExisting
	if g.Existing != nil {
		r.existing = *g.Existing
	}
	r.synchronize, r.goes = g.Synchronize, g.Synchronize && !g.Orphans()
	r.makesOfDeleted = slices.ContainsFunc(rule.Match.Filters(), func(f *policy.Filter) bool { return slices.Contains(f.Operations, "DELETE") })
	targets := targetsOf(g)
	r.makes = literalKinds(targets)
	r.copies = literalKinds(slices.DeleteFunc(targets, func(t *policy.GenerateTarget) bool { return t.Clone == nil && t.CloneList == nil }))
	r.needs = needsOf(g, p.ServerSideApply)
	r.place, r.asks = placeOf(rule), asksOf(rule)
}

// key tells the rule from those of all policies.
func (r *preparedRule) key() string { return ruleKey(r.policy.key, r.name) }

// id is the rule as tasks name it.
func (r *preparedRule) id() ruleID { return ruleID{r.policy.key, r.name} }

// selector selects what the rule has made; for a trigger, or for all where it is nil.
func (r *preparedRule) selector(trigger map[string]any) labels.Selector {
	return labels.SelectorFromSet(interp.TargetSelector(r.policy.Policy.Policy, r.name, trigger))
}

// makesObjects tells of a rule that makes objects, and has no error.
func (r *preparedRule) makesObjects() bool { return !r.changes && !r.invalid }

// keepsInStep tells of one that looks after what it has made.
func (r *preparedRule) keepsInStep() bool { return r.makesObjects() && r.synchronize }

// namesKind tells that a rule may be about an object, as far as its kind says. Whoever
// writes labels says of what kind a trigger is; looking for what the rule is not about would
// be work for nothing.
func (r *preparedRule) namesKind(at v1alpha1.ObjectReference) bool {
	kind := schema.FromAPIVersionAndKind(at.APIVersion, at.Kind)
	if r.constraints != nil { // which name resources
		return slices.ContainsFunc(r.constraints.Rules, func(c policy.ResourceRule) bool {
			return slices.Contains(c.Groups, "*") || slices.Contains(c.Groups, kind.Group)
		})
	}
	return slices.ContainsFunc(r.match.Filters(), func(f *policy.Filter) bool {
		return slices.ContainsFunc(f.Kinds, func(text policy.Text) bool {
			k, ok := policy.ParseKind(text.Value)
			return ok && policy.Wildcard(k.Group, kind.Group) && policy.Wildcard(k.Kind, kind.Kind)
		})
	})
}

// matched are the kinds of objects that a rule is about. Of subresources there are no
// objects, and a rule about all kinds is about none of those that are there.
func (w *Worker) matched(h *preparedRule) []v1alpha1.KindReference {
	var all []v1alpha1.KindReference
	if h.constraints != nil { // which name resources
		for _, r := range h.constraints.Rules {
			for _, group := range r.Groups {
				for _, version := range r.Versions {
					for _, resource := range r.Resources {
						all = append(all, w.options.Resources(group, version, resource)...)
					}
				}
			}
		}
		return distinct(all)
	}
	for _, f := range h.match.Filters() {
		for _, text := range f.Kinds {
			if k, ok := policy.ParseKind(text.Value); ok && k.Subresource == "" && k.Kind != "*" {
				all = append(all, w.options.Kinds(k.Group, k.Version, k.Kind)...)
			}
		}
	}
	return distinct(all)
}

// distinct are some kinds in their order, each of them once.
func distinct(kinds []v1alpha1.KindReference) (out []v1alpha1.KindReference) {
	for _, k := range kinds {
		if !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// makes are the kinds of objects that a rule makes, or has made.
func (w *Worker) makes(r *preparedRule) []v1alpha1.KindReference {
	if !r.open {
		return r.makes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records[r.key()].Kinds
}

// copies are the kinds of objects that a rule copies, or may copy.
func (w *Worker) copies(r *preparedRule) []v1alpha1.KindReference {
	if !r.open {
		return r.copies
	}
	return w.makes(r)
}

// needs are what a rule does with what it makes and with what it copies.
func (w *Worker) needs(r *preparedRule) []accessNeed {
	if !r.open {
		return r.needs
	}
	var out []accessNeed
	for _, k := range w.makes(r) {
		out = append(out, accessNeed{k, r.policy.scope(), verbsOf(r.synchronize, r.apply)})
	}
	return out
}

// literalKinds are the kinds of objects that targets make or copy, as far as their text says.
// A kind that is a variable is known only when it is made.
func literalKinds(targets []*policy.GenerateTarget) []v1alpha1.KindReference {
	var all []v1alpha1.KindReference
	for _, t := range targets {
		if t.CloneList == nil {
			all = append(all, v1alpha1.KindReference{APIVersion: t.APIVersion.Value, Kind: t.Kind.Value})
			continue
		}
		for _, listed := range t.CloneList.Kinds {
			if i := strings.LastIndexByte(listed.Value, '/'); i > 0 {
				all = append(all, v1alpha1.KindReference{APIVersion: listed.Value[:i], Kind: listed.Value[i+1:]})
			}
		}
	}
	return distinct(slices.DeleteFunc(all, func(k v1alpha1.KindReference) bool {
		return k.APIVersion == "" || k.Kind == "" || strings.Contains(k.APIVersion+k.Kind, "{{") || strings.ContainsAny(k.Kind, "*?")
	}))
}

// targetsOf are the targets of a rule: its own, or those of its loops.
func targetsOf(g *policy.Generate) []*policy.GenerateTarget {
	if len(g.ForEach) == 0 {
		return []*policy.GenerateTarget{&g.GenerateTarget}
	}
	var out []*policy.GenerateTarget
	for _, f := range g.ForEach {
		out = append(out, &f.GenerateTarget)
	}
	return out
}

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
	policies   map[string]*preparedPolicy          // by keyOf
	kinds      map[string][]v1alpha1.KindReference // by keyOf: those that its rules match and the cluster serves
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
	next := &policySnapshot{policies: map[string]*preparedPolicy{}, kinds: map[string][]v1alpha1.KindReference{}, exceptions: slices.Clone(set.Exceptions), excluded: slices.Clone(set.ExcludeNamespaces)}
	same := before != nil && slices.Equal(before.exceptions, next.exceptions)
	for _, p := range set.Policies {
		key := keyOf(p.Of)
		if same && before.policies[key] != nil && before.policies[key].Policy == p {
			next.policies[key] = before.policies[key]
		} else {
			engine := interp.New([]*policy.Policy{p.Policy}, next.exceptions, w.options.World, interp.Limits{})
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
		slices.ContainsFunc(s.kinds[key], func(k v1alpha1.KindReference) bool { return !slices.Contains(before.kinds[key], k) })
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
				all[Watched{KindReference: k, Namespace: p.scope()}] = true
			}
			for _, k := range w.copies(r) {
				all[Watched{KindReference: k, Namespace: p.scope(), Sources: true}] = true
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
