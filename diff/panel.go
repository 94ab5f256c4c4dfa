package diff

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/kvap/kvap/internal/judge"
	"github.com/kvap/kvap/interp"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/vap"
	"github.com/kvap/kvap/vap/apiserver"
	"github.com/kvap/kvap/verify"
)

// A ruleName names a rule of a group.
type ruleName struct{ group, rule string }

// A panel asks what some groups of a side say of a request.
type panel struct {
	side     *Side
	groups   []*group
	schemas  *schema.Set
	words    writer
	written  []*written
	natives  map[string]nativeOf // by policy
	watcher  *watcher
	worlds   []world
	observed []*verify.Coverage // of the policies as written
}

// written is a policy as it is written.
type written struct {
	*policy.Policy
	group   string
	origins map[string]string       // names of rules as written, by those of the interpreter
	rules   map[string]*policy.Rule // by their names as written
}

// nativeOf is a native policy with its bindings, by name.
type nativeOf struct {
	native
	actions map[string][]string
	known   bool     // what follows from a violation
	leftOut []string // of the namespaces that Kyverno's configuration leaves out
}

// A world is what judges with some objects to look up.
type world struct {
	interpreters []*interp.Interpreter // of each of the written policies
	mutators     []*interp.Interpreter // nil of those that mutate nothing
	natives      *apiserver.Judge
	mutations    []mutationsOf
	watched      *apiserver.Judge
}

type mutationsOf struct {
	group string
	*judge.Mutator
}

func newPanel(side *Side, groups []*group, schemas *schema.Set, worlds [][]map[string]any) (*panel, error) {
	p := &panel{side: side, groups: groups, schemas: schemas, words: newWriter(), natives: map[string]nativeOf{}, watcher: newWatcher()}
	for _, g := range groups {
		for _, one := range g.policies {
			p.write(g, one)
		}
		for _, n := range g.natives {
			p.natives[n.Name] = p.native(n)
		}
	}
	for _, objects := range worlds {
		if err := p.world(slices.Concat(side.Params, objects)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// write adds a policy as it is written.
func (p *panel) write(g *group, one *policy.Policy) {
	w := &written{one, g.name, map[string]string{}, map[string]*policy.Rule{}}
	var covered []verify.CoveredRule
	for _, r := range policy.Expand(one) {
		w.origins[r.Name] = r.Origin
		if r.Expansion == "" {
			w.rules[r.Name] = r
		}
		if r.Validate != nil {
			covered = append(covered, verify.CoveredRule{Name: r.Name, Source: r})
		}
	}
	if one.Validating != nil && one.Validating.Images == nil {
		p.watcher.watchPolicy(one)
	}
	p.written = append(p.written, w)
	p.observed = append(p.observed, verify.NewCoverage(covered))
}

func (p *panel) native(n native) nativeOf {
	bindings := p.side.Deployed.BindingsOf(n.Name)
	out := nativeOf{native: n, actions: map[string][]string{}, known: !slices.Contains(p.side.Unbound, n.Name), leftOut: p.side.Deployed.LeftOut(n.Name)}
	out.leftOut = slices.DeleteFunc(out.leftOut, func(name string) bool { return !slices.Contains(vap.DefaultExcludedNamespaces(), name) })
	for _, b := range bindings {
		for _, a := range b.Spec.ValidationActions {
			out.actions[b.Name] = append(out.actions[b.Name], string(a))
		}
	}
	if _, have := p.natives[n.Name]; !have {
		p.watcher.watch(n.ValidatingAdmissionPolicy, bindings)
	}
	return out
}

// world makes what judges with some objects to look up.
func (p *panel) world(objects []map[string]any) (err error) {
	state := judge.ClusterState{Objects: objects, Schemas: p.schemas, AllNamespaces: true}
	asked := judge.World(objects, p.schemas)
	var w world
	for _, one := range p.written {
		var mutator *interp.Interpreter
		if one.Mutating != nil || slices.ContainsFunc(one.Rules, func(r *policy.Rule) bool { return r.Mutate != nil }) {
			mutator = interp.New([]*policy.Policy{one.Policy}, p.side.Exceptions, asked, interp.Limits{})
		}
		w.mutators = append(w.mutators, mutator)
		w.interpreters = append(w.interpreters, interp.New([]*policy.Policy{one.Policy}, p.side.Exceptions, asked, interp.Limits{}))
	}
	var policies []*admissionregistrationv1.ValidatingAdmissionPolicy
	var bindings []*admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, n := range p.side.Deployed.Policies {
		if _, of := p.natives[n.Name]; of {
			policies, bindings = append(policies, n), append(bindings, p.side.Deployed.BindingsOf(n.Name)...)
		}
	}
	if len(p.worlds) > 0 { // nothing is compiled again
		w.natives, err = p.worlds[0].natives.With(state.Options())
	} else {
		w.natives, err = apiserver.NewJudge(policies, bindings, state.Options())
	}
	if err != nil {
		return err
	}
	for _, g := range p.groups {
		if len(g.mutations.Policies) == 0 {
			continue
		}
		mutator, err := g.mutations.Mutator(state)
		if err != nil {
			return err
		}
		w.mutations = append(w.mutations, mutationsOf{g.name, mutator})
	}
	if err := p.watcher.in(state.Options()); err != nil {
		return err
	}
	w.watched = p.watcher.judge
	p.worlds = append(p.worlds, w)
	return nil
}

// ask is what the side says of a request, by rule; fresh tells that some question came out in a way
// that was not seen before.
func (p *panel) ask(ctx context.Context, asked *verify.Request, watch bool) (said map[ruleName]Answer, fresh bool, err error) {
	w := p.worlds[asked.World(len(p.worlds))]
	r := asked.Recorded()
	mutated := r // each policy that mutates goes on from what those before made
	said = map[ruleName]Answer{}
	for i, one := range p.written {
		coverage := p.observed[i]
		coverage.Begin()
		observed := ctx
		if watch {
			observed = interp.Observed(ctx, coverage.Observe)
		}
		for _, result := range w.interpreters[i].Judge(observed, r.Interp()) {
			name := ruleName{one.group, cmp.Or(one.origins[result.Rule], one.Name)}
			add(said, name, p.ofWritten(one, one.rules[name.rule], result, asked))
		}
		fresh = fresh || coverage.Fresh()
		if m := w.mutators[i]; m != nil && r.Object() != nil {
			answer := ofMutations(one, m.Mutate(ctx, mutated.Interp()))
			add(said, ruleName{one.group, mutations}, answer)
			if mutated, err = answer.goOn(mutated); err != nil {
				return nil, false, err
			}
		}
	}
	verdicts, err := r.Review(ctx, w.natives)
	if err != nil {
		return nil, false, err
	}
	for _, v := range verdicts {
		n := p.natives[v.Policy]
		for i, result := range answered(v, n.text) {
			m := n.text.Members[i]
			add(said, ruleName{m.Policy, cmp.Or(m.Origin, m.Rule)}, p.ofNative(n, v.Binding, result, asked.Namespace))
		}
	}
	for _, m := range w.mutations {
		if r.Object() == nil {
			continue
		}
		answer, err := ofMutator(ctx, m.Mutator, mutated)
		if err != nil {
			return nil, false, err
		}
		add(said, ruleName{m.group, mutations}, answer)
		if mutated, err = answer.goOn(mutated); err != nil {
			return nil, false, err
		}
	}
	if watch && p.watcher.see(ctx, w.watched, r) {
		fresh = true
	}
	return said, fresh, nil
}

// answered is what a native policy says by member of its source map. A violation or an error that
// the map gives to no member that the request is about is one of all: whoever wrote the map, it
// hides nothing.
func answered(v apiserver.Verdict, text vap.Translation) []apiserver.ValidationResult {
	out := v.Members(text)
	answers := func(r apiserver.ValidationResult) bool { return !v.Outcome.Graver(r.Outcome) }
	if (v.Outcome == apiserver.Deny || v.Outcome == apiserver.Error) && !slices.ContainsFunc(out, answers) {
		for i := range out {
			out[i].Outcome, out[i].Message = v.Outcome, v.Message
		}
	}
	return out
}

func add(said map[ruleName]Answer, name ruleName, a Answer) {
	if have, ok := said[name]; ok {
		a = have.with(a)
	}
	said[name] = a
}

// ofWritten is what the interpreter says.
func (p *panel) ofWritten(of *written, rule *policy.Rule, result interp.RuleResult, r *verify.Request) Answer {
	out := Answer{Outcome: Admits, Open: of.FailurePolicy == policy.Ignore, Actions: actionsOf(of.Policy, rule, r), Written: true}
	switch result.Status {
	case interp.Fail:
		out.Outcome = Violated
	case interp.Error:
		out.Outcome = Errs
	case interp.None:
		out.Outcome = Silent
	case interp.Pass, interp.Skip, interp.Unknown:
	}
	if !out.notes() {
		return out
	}
	out.Messages = []string{result.Message}
	switch {
	case rule == nil:
		out.Words = p.words.ofNative(result.Message, false)
	case rule.Validate != nil && rule.Validate.Message.Value != "":
		out.tells = conditionsTell(rule.Validate)
		out.Words = p.words.ofKyverno(result.Message)
	}
	return out
}

// notes tells that there is a message.
func (a Answer) notes() bool { return a.Outcome == Violated || a.Outcome == Errs }

// ofNative is what the API server says.
func (p *panel) ofNative(n nativeOf, binding string, result apiserver.ValidationResult, namespace string) Answer {
	open := n.Spec.FailurePolicy != nil && *n.Spec.FailurePolicy == admissionregistrationv1.Ignore
	out := Answer{Outcome: Silent, Open: open, LeftOut: slices.Contains(n.leftOut, namespace)}
	switch result.Outcome {
	case apiserver.Deny:
		out.Outcome = Violated
	case apiserver.Error:
		out.Outcome = Errs
	case apiserver.Allow:
		out.Outcome = Admits
	case apiserver.NoMatch, apiserver.Unknown:
		return out
	}
	if n.known {
		out.Actions = n.actions[binding]
	}
	if out.notes() {
		out.Messages = []string{result.Message}
		out.Words = p.words.ofNative(result.Message, n.made)
		out.made = n.made
	}
	return out
}

// ofMutations is what the interpreter makes of the object.
func ofMutations(of *written, done *interp.MutationResult) Answer {
	out := Answer{Outcome: Silent, Open: of.FailurePolicy == policy.Ignore}
	if done.Changed() {
		out.After = done.After
	}
	for _, r := range done.Rules {
		switch r.Status {
		case interp.None:
			continue
		case interp.Error, interp.Fail:
			out.Outcome, out.Messages = Errs, append(out.Messages, r.Message)
		case interp.Pass, interp.Skip, interp.Unknown:
			if out.Outcome == Silent {
				out.Outcome = Admits
			}
		}
	}
	return out
}

// ofMutator is what native policies make of the object.
func ofMutator(ctx context.Context, m *judge.Mutator, r *judge.Request) (Answer, error) {
	after, verdicts, err := m.Mutate(ctx, r)
	out := Answer{Outcome: Silent, Open: true}
	if !reflect.DeepEqual(after, r.Object()) {
		out.After = after
	}
	for _, v := range verdicts {
		switch {
		case v.Outcome == apiserver.Error:
			out.Outcome, out.Messages = Errs, append(out.Messages, v.Message)
			out.Open = out.Open && !v.Refused
		case v.Outcome != apiserver.NoMatch && out.Outcome == Silent:
			out.Outcome = Admits
		}
	}
	return out, err
}

// goOn is the request with what mutations made of its object.
func (a Answer) goOn(r *judge.Request) (*judge.Request, error) {
	if a.After == nil {
		return r, nil
	}
	return r.With(a.After)
}

// covers counts what the side asks of requests, and what of it was seen both ways.
func (p *panel) covers() (seen, all int) {
	seen, all = p.watcher.bothWays()
	for i := range p.observed {
		for place := range p.observed[i].Rules() {
			s, a := p.observed[i].BothWays(place)
			seen, all = seen+s, all+a
		}
	}
	return seen, all
}

// unseen are the questions that were not seen both ways.
func (p *panel) unseen() (out []string) {
	out = []string{}
	for _, c := range p.observed {
		for place := range c.Rules() {
			for _, u := range c.OneWay(place) {
				out = append(out, cmp.Or(strings.TrimSpace(u.At), "the rule's match"))
			}
		}
	}
	return append(out, p.watcher.unseen()...)
}
