package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/mutating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/rule"
	"github.com/kvap/kvap/vap"
)

// A rule with targets is about two objects: the match and the preconditions ask for the trigger, and
// the patch changes another one. In a policy of Kyverno's kinds, an expression of the trigger finds
// what is changed, and everything behind it has that as object:
//
//	match: {any: [{resources: {kinds: [Secret]}}]}       matchConstraints: secrets
//	targets:                                             targetMatchConstraints: resource.List('apps/v1',
//	- {apiVersion: apps/v1, kind: Deployment,              'deployments', object.metadata.namespace)
//	   namespace: "{{request.namespace}}", name: "a*"}   targetMatchConditions: object.metadata.name.startsWith('a')
//	"{{ target.metadata.name }}"                         object.metadata.name
//	"{{ request.object.metadata.name }}"                 request.object.metadata.name
//
// Targets are never named as resources alone: such a policy would change them each hour, whatever
// triggers are there.

// LowerTargets lowers the rules with targets of a policy, which are among rules.
func LowerTargets(p *policy.Policy, rules []api.RuleResult, o *api.Options) {
	for i := range rules {
		r := &rules[i]
		if !r.ChangesOthers() || r.Rule.Invalid {
			continue
		}
		e := targetRule{policy: p, rule: r.Rule, opts: o, among: len(rules) > 1}
		if why := e.lower(&r.Found); why != nil {
			r.Refuse(*why)
			continue
		}
		r.Target, r.Found, r.Existing = api.Native, r.Found.Sort(), e.drafts()
		r.Codes = api.CodesOf(r.Found)
	}
}

// A targetRule is a rule with targets on its way to drafts.
type targetRule struct {
	policy     *policy.Policy
	rule       *policy.Rule
	opts       *api.Options
	among      bool            // other rules of the policy
	conditions []vap.Condition // of the policy
	changes    []targetChange
}

// A targetChange is what a trigger has done to the objects of one target.
type targetChange struct {
	index    int // of the target among those of the rule
	trigger  native.Target
	ops      []native.Operation
	selector vap.Selector
	match    cel.Bool
	pre      partial.Bool
	target   native.Target
	find     cel.Value
	found    cel.Bool // what must hold for find to find what the rule does
	of       []vap.Condition

	mutations []mutating.Mutation
	variables []vap.Variable
	params    *native.Params
}

// text is everything that a change says but its trigger and operations.
func (c targetChange) text() string {
	parts := []string{strconv.Itoa(c.index), native.SelectorKey(c.selector), c.match.String(), c.pre.Expr.String(), c.find.String(), c.found.String(), c.params.Key()}
	for _, o := range c.of {
		parts = append(parts, o.Name, o.Expr.String())
	}
	for _, m := range c.mutations {
		parts = append(parts, string(m.Type), m.Expr.String())
	}
	for _, v := range c.variables {
		parts = append(parts, v.Name, v.Expr.String())
	}
	return strings.Join(parts, "\x00")
}

func (e *targetRule) lower(notes *diag.List) (why *diag.Diagnostic) {
	if why = rule.DependentRules(e.policy); why != nil {
		return why
	}
	if e.conditions, why = celrule.PolicyConditions(e.policy, e.opts, notes); why != nil {
		return why
	}
	base := &read.Lowering{
		Opts: e.opts, Release: read.Release(e.opts.Release), Policy: e.policy, Rule: e.rule, PolicyConditions: e.conditions,
		Pos: e.rule.Pos, Notes: notes, Gathered: read.NewGathered(),
	}
	return rule.RefusalOf(base, func() {
		e.checkFrame(base)
		for i, t := range e.rule.Mutate.Targets {
			of := changedBy(base, t)
			noteCollapsed(base, []native.Target{of})
			for _, trigger := range rule.Targets(base) {
				if e.policy.Namespaced() && trigger.Scope == native.Cluster {
					continue
				}
				for _, ops := range e.operations(base, trigger) {
					e.changes = append(e.changes, rule.ForOperations(base, ops, func(ops []native.Operation) (targetChange, bool) {
						return e.change(base, i, of, trigger, ops)
					})...)
				}
			}
		}
		if len(e.changes) == 0 {
			panic(base.Refuse(diag.NoKyvernoForm, "no request triggers the rule; look for what its match and its preconditions ask"))
		}
		e.tellDifferences(base)
	})
}

// checkFrame refuses what is said of a rule as a whole and has no form.
func (e *targetRule) checkFrame(l *read.Lowering) {
	l.SetPos(e.rule.Mutate.Pos)
	switch {
	case e.policy.Rehearsed():
		panic(l.Refuse(diag.NoKyvernoForm, "nothing is to follow from a policy in shadow, and a MutatingPolicy always changes objects"))
	case len(e.rule.Mutate.Targets) == 0:
		panic(l.Refuse(diag.NoKyvernoForm, "the rule has an empty list of targets, and so changes nothing; name some, or remove targets if the object of the request is to be changed"))
	case len(e.conditions) > 0 && e.onPolicyUpdate():
		panic(l.Refuse(diag.NoKyvernoForm, "with mutateExistingOnPolicyUpdate, what is there triggers the rule whatever the conditions of the webhook say, and a MutatingPolicy asks them; make them preconditions"))
	case !e.policy.Admission && !e.onPolicyUpdate():
		panic(l.Refuse(diag.NoKyvernoForm, "nothing triggers the rule: no request does (admission: false), and no object that is there (mutateExistingOnPolicyUpdate)"))
	case e.hasEntry("random"):
		panic(l.Refuse(diag.NoKyvernoForm, "a random value of a context is one wherever it is read, and CEL makes one for each; write random where the value goes"))
	case rule.Mentions(e.rule.Source.Get("context"), "target"):
		panic(l.Refuse(diag.NoKyvernoForm, "the context of the rule reads target, of which it keeps the first one for all; move the entry into the context of the target"))
	}
	if len(e.rule.Mutate.ForEach) > 1 && rule.Mentions(e.rule.Source, "request.object") {
		l.SetPos(e.rule.Mutate.ForEach[1].Pos)
		panic(l.Refuse(diag.NoKyvernoForm, "behind an entry of a foreach that changes something, request.object is the target to Kyverno, and no longer the trigger; make each entry a rule"))
	}
	for _, x := range e.opts.Exceptions {
		if !x.Invalid && len(x.PodSecurity) > 0 && match.Excepts(l, x) {
			panic(l.Unsupported("an exception for the Pod Security Standards"))
		}
	}
}

// hasEntry tells that a context entry has a name in it.
func (e *targetRule) hasEntry(name string) bool {
	has := rule.Mentions(e.rule.Source.Get("context"), name)
	for _, list := range []string{"targets", "foreach"} {
		if entries := e.rule.Source.Get("mutate").Get(list); entries != nil {
			has = has || slices.ContainsFunc(entries.Items, func(n *policy.Node) bool { return rule.Mentions(n.Get("context"), name) })
		}
	}
	return has
}

// onPolicyUpdate tells that what is there triggers the rule when the policy is created or changed.
func (e *targetRule) onPolicyUpdate() bool {
	if own := e.rule.Mutate.OnPolicyUpdate; own != nil {
		return *own
	}
	return e.policy.MutateExisting
}

// operations are those that a trigger is lowered for at once. A deletion triggers a rule that lists it.
func (e *targetRule) operations(l *read.Lowering, t native.Target) (out [][]native.Operation) {
	var writes []native.Operation
	for _, op := range t.PossibleOperations() {
		switch {
		case !query.SomeFilterHas(l, op), op == native.Delete && !rule.Lists(e.rule, op):
		case op == native.Delete:
			out = append(out, []native.Operation{op})
		default:
			writes = append(writes, op)
		}
	}
	if len(writes) > 0 {
		out = append([][]native.Operation{writes}, out...)
	}
	return out
}

// change lowers a rule for a target, and for what triggers it on operations; false where these do not
// trigger it.
func (e *targetRule) change(l *read.Lowering, index int, of, trigger native.Target, ops []native.Operation) (targetChange, bool) {
	l.SetPos(e.rule.Pos)
	w := rule.Walk(l, trigger, ops)
	out := targetChange{index: index, target: of, trigger: trigger, ops: ops, selector: native.PlainSelector(w.Selected)}
	var asked bool
	if out.match, out.pre, asked = rule.Asked(w); !asked {
		return out, false
	}
	target := e.rule.Mutate.Targets[index]
	behind := besideTrigger(w, of)
	s := selectionOf(w, behind, target, of)
	out.match, out.pre = inlined(w, out.match), out.pre.As(inlined(w, out.pre.Expr))
	out.find, out.found = vap.Inlined(s.find, w.Variables), inlined(w, s.found)
	if slices.Contains(ops, native.Delete) {
		out.find = out.find.Rename("oldObject", "object")
	}
	behind.Context = query.ContextOf(target.Context, behind.Context)
	out.of = s.conditions
	out.patch(behind, target)
	out.variables, out.params = behind.Variables, behind.Params
	return out, true
}

func inlined(w *read.Lowering, b cel.Bool) cel.Bool {
	return vap.Inlined(b.Value, w.Variables).AsBool().Rooted()
}

// besideTrigger is a walk over what a rule says of an object that is changed, for requests about a
// trigger.
func besideTrigger(w *read.Lowering, of native.Target) *read.Lowering {
	out := *w
	out.Gathered = read.NewGathered()
	out.Params = w.Params
	out.Selected = nil
	request := func(name string) read.Operand {
		return read.ValueOf(cel.Ident("request").Field(name), read.ObjectType(w, w.Target))
	}
	trigger := read.Trigger{Target: w.Target, Object: request("object"), Old: read.LitOf(nil)}
	switch {
	case w.On(native.Delete): // in {{ }}, request.object is the old one
		trigger.Object, trigger.Old = read.LitOf(nil), request("oldObject")
	case w.On(native.Update):
		trigger.Old = request("oldObject") // nobody asks on a creation: see ofOneOperation
	}
	out.Environment = read.Environment{
		Binders: &cel.Scope{}, Target: of, Ops: w.Ops, Context: query.ContextOf(w.Rule.Context, read.Context{}),
		Object: read.ValueOf(cel.Ident("object"), of.Body), Old: read.LitOf(nil), Trigger: &trigger,
	}
	return &out
}

// patch is what is asked of an object, and what is changed then. An error changes nothing, as a
// condition that does not hold.
func (c *targetChange) patch(w *read.Lowering, t *policy.MutateTarget) {
	w.SetPos(t.Pos)
	ask := func(name string, is partial.Bool) {
		if is = celrule.Simplified(w, is, w.Environment); is.Expr.IsFalse() {
			panic(w.Refuse(diag.NoKyvernoForm, "no object that is there meets what the target asks; look for its preconditions, and for conditions of the patch"))
		} else if !is.Expr.IsTrue() {
			c.of = append(c.of, vap.Condition{Pos: w.Pos, Name: name, Expr: is.Expr, Sound: !is.Errs})
		}
	}
	ask("preconditions", preconditionsOf(w, t))
	w.SetPos(w.Rule.Mutate.Pos)
	patch := patchOf(w, ofTarget(w, w.Rule.Mutate))
	if patch.filling.Unsure {
		panic(w.Unsupported("a variable in a patch that may be an error"))
	}
	if len(patch.mutations) == 0 {
		panic(w.Refuse(diag.NoKyvernoForm, "the patch changes no object; look for what it writes, and for its conditions"))
	}
	for _, m := range patch.mutations {
		if sets := m.Expr.Sets(); slices.Contains(sets, "metadata/name") || slices.Contains(sets, "metadata/namespace") {
			panic(w.Refuse(diag.NoKyvernoForm, "a patch of the name or the namespace of a target would have Kyverno write another object; take it out of the patch"))
		}
	}
	left, _ := unread(w, patch)
	ask("variables", w.Told(left, cel.True()))
	ask("patch", patch.asked)
	c.mutations = patch.mutations
	if patch.parts != nil {
		c.mutations = patch.parts
	}
}

// drafts are those of the changes; triggers and operations that have the same done share one.
func (e *targetRule) drafts() (out []*mutating.Existing) {
	type shared struct {
		targetChange
		triggers []native.Target
		ops      []native.Operation
	}
	var all []shared
	for _, c := range e.changes {
		i := slices.IndexFunc(all, func(s shared) bool { return s.text() == c.text() })
		if i < 0 {
			i = len(all)
			all = append(all, shared{targetChange: c})
		}
		for _, op := range c.ops {
			all[i].triggers, all[i].ops = append(all[i].triggers, c.trigger), append(all[i].ops, op)
		}
	}
	used := map[string]bool{}
	for _, s := range all {
		d := e.draft(s.targetChange, s.triggers, s.ops)
		if e.among {
			d.Base += "-" + strings.ToLower(e.rule.Name)
		}
		alike := slices.IndexFunc(all, func(o shared) bool { return o.index != s.index }) < 0
		if len(e.rule.Mutate.Targets) > 1 {
			d.Base += "-" + strings.ToLower(e.rule.Mutate.Targets[s.index].Kind.Value)
		}
		if len(all) > 1 && alike || used[d.Base] {
			d.Base += "-" + strings.ToLower(s.trigger.Parent.Kind+"-"+string(s.targetChange.ops[0]))
		}
		base := d.Base
		for n := 2; used[d.Base]; n++ {
			d.Base = base + "-" + strconv.Itoa(n)
		}
		used[d.Base] = true
		out = append(out, d)
	}
	return out
}

// draft is the draft of a change, for triggers and operations.
func (e *targetRule) draft(c targetChange, triggers []native.Target, ops []native.Operation) *mutating.Existing {
	d := &mutating.Existing{
		Draft: mutating.Draft{Mutations: c.mutations, Draft: vap.Draft{
			Base: e.policy.Name, FailurePolicy: string(e.policy.FailurePolicy), Conditions: slices.Clone(e.conditions), Variables: c.variables,
			Members:     []vap.Member{{Pos: e.rule.Pos, Policy: native.MemberName(e.policy), Rule: e.rule.Name, Origin: e.rule.Origin}},
			Constraints: vap.Constraints{Rules: pack.ResourceRules(triggers, ops, e.policy.Namespaced()), NamespaceSelector: c.selector},
		}},
		Status: c.target.Subresource != "", Changed: pack.ResourceRules([]native.Target{c.target}, []native.Operation{native.Update}, e.policy.Namespaced()),
		Find: vap.Expression{Pos: e.rule.Mutate.Targets[c.index].Pos, Expr: c.find}, Of: c.of,
		Idle: !e.policy.Admission, OwnRequests: !e.rule.SkipBackground,
	}
	add := func(name string, at diag.Pos, is cel.Bool, sound bool) {
		if !is.IsTrue() {
			d.Conditions = append(d.Conditions, vap.Condition{Pos: at, Name: name, Expr: is, Sound: sound})
		}
	}
	add("match", e.rule.Match.Pos, c.match, true)
	at := e.rule.Pos
	if e.rule.Preconditions != nil {
		at = e.rule.Preconditions.Pos
	}
	add("preconditions", at, c.pre.Expr, !c.pre.Errs)
	add("targets", d.Find.Pos, c.found, false)
	if neverUpdates(triggers, ops) { // what is there counts as updated when the policy comes
		add("operation", e.rule.Match.Pos, cel.Ident("request").Field("operation").Ne(cel.String(string(native.Update))), true)
	}
	if c.pre.Errs || !c.found.IsTrue() { // a condition that is an error triggers nothing, and denies nothing
		d.FailurePolicy = string(policy.Ignore)
	}
	binding := vap.Binding{}
	if p := c.params; p != nil {
		p.AddTo(&d.Draft.Draft)
		needParams(d, c.match.Value, c.pre.Expr.Value, c.found.Value, c.find)
		binding.Param = &vap.ParamRef{Name: p.Name, Namespace: p.Namespace, NotFound: "Deny"}
	}
	d.Bindings = []vap.Binding{binding}
	nameParts(&d.Draft)
	pack.Describe(&d.Draft.Draft, e.policy)
	return d
}

// needParams has nothing changed while the ConfigMap does not exist that is the params. What asks it of
// the trigger is given.
func needParams(d *mutating.Existing, ofTrigger ...cel.Value) {
	there := vap.Condition{Pos: d.Find.Pos, Name: "params", Expr: cel.Ident("params").Ne(cel.Null())}
	if slices.ContainsFunc(ofTrigger, func(v cel.Value) bool { return native.Mentions(v, "params") }) {
		d.Conditions = append([]vap.Condition{there}, d.Conditions...)
	}
	d.Of = append([]vap.Condition{there}, d.Of...)
}

// neverUpdates tells that no update of an object triggers what is lowered for triggers on operations.
func neverUpdates(triggers []native.Target, ops []native.Operation) bool {
	return !slices.Contains(ops, native.Update) && slices.ContainsFunc(triggers, func(t native.Target) bool { return t.Subresource == "" })
}

// tellDifferences tells what a MutatingPolicy does otherwise when nobody asks.
func (e *targetRule) tellDifferences(l *read.Lowering) {
	l.SetPos(e.rule.Mutate.Pos)
	updates := slices.ContainsFunc(e.changes, func(c targetChange) bool {
		return slices.Contains(c.ops, native.Update) && (c.trigger.Subresource == "" || c.trigger.IsAnyResource())
	})
	switch {
	case !updates:
	case !e.onPolicyUpdate():
		l.Note(diag.ChangedWithPolicy, "when the policy is created or changed, it changes what each trigger that is there would have it change if it were updated; "+
			"the rule does not (mutateExistingOnPolicyUpdate is off)")
	case rule.NamesOperations(e.rule) || rule.AsksUser(e.rule) || rule.AsksRequest(e.rule) || rule.Mentions(e.rule.Source, "request.oldObject"):
		l.Note(diag.ChangedWithPolicy, "when the policy is created or changed, each trigger that is there counts as updated; the rule knows of no request then, and asks for what a request has, or names operations")
	default:
		*l.Notes = append(*l.Notes, diag.Notef(l.Pos, diag.ChangedWithPolicy, "what is there triggers the policy when it is created or changed, and the rule each hour too (mutateExistingOnPolicyUpdate)"))
	}
}
