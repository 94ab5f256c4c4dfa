package pack

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/vap"
)

// Options are the choices of packing.
type Options struct {
	Apart     bool // no rules share an object
	ByKind    bool // rules of all policies do; else those of one policy
	Unguarded bool // no object has a guard
}

// A Packed is a policy object with the rules that it enforces, one for each member.
type Packed struct {
	Draft *vap.Draft
	Rules []*policy.Rule
}

// Drafts are the policy objects of units. They share what the options let them share.
func Drafts(units []Unit, o Options) []Packed {
	groups := named(grouped(units, o), o)
	var out []Packed
	for _, g := range groups {
		var rules []*policy.Rule
		for _, u := range g.units {
			for _, f := range u.forms() {
				rules = append(rules, f.rule)
			}
		}
		for _, d := range g.drafts(o) {
			out = append(out, Packed{d, rules})
		}
	}
	return out
}

// Alone is the policy object of one unit, without a name.
func (u Unit) Alone(o Options) *vap.Draft {
	g := group{units: []Unit{u}, targets: []placed{{Target: u.Target, ops: u.Operations}}}
	return g.draft(o)
}

// A group is the rules that share a policy object: the same action, failure
// policy and params, and the same text for the same targets.
type group struct {
	base    string // the stem of the objects' names
	units   []Unit // one per member, of the first target
	targets []placed

	byKind    bool   // named after the kind: only its messages name the policies
	family    string // the kinds that it is named after; empty where that is one
	unguarded bool   // no guard can speak for the members
	alone     bool   // the one member costs too much to share an object
	part      string // which of the parts it is into which a group was split

	made *vap.Draft // what finding out whether it fits left; nil where that took none
}

// with is the group with other units.
func (g group) with(units []Unit) group {
	g.units, g.made = units, nil
	if g.byKind {
		g.ofUnits()
	}
	return g
}

// placed is a target with the operations that a group is about.
type placed struct {
	native.Target
	ops []native.Operation
	// deletes tells that the group says of deletions what it says of ops.
	deletes bool
}

// neverHappens reports whether no request is what the target is about: ephemeral containers are
// added to a Pod by an update.
func (t placed) neverHappens() bool {
	return t.Subresource == "ephemeralcontainers" && slices.Equal(t.ops, []native.Operation{native.Create}) && !t.deletes
}

// grouped packs units. First the units of each target and operation are put
// together by what a policy object has once; then targets and operations whose
// lists say the same become one group.
func grouped(units []Unit, o Options) []group {
	if o.ByKind {
		return asPods(units, func(units []Unit) []group { return byFamily(units, o) })
	}
	return asPods(units, func(units []Unit) []group { return byTarget(units, o) })
}

func byTarget(units []Unit, o Options) []group {
	type cell struct {
		target native.Target
		op     native.Operation
		units  []Unit
		says   []string // the attributes, and the text of each unit
	}
	var cells []*cell
	index := map[string]*cell{}
	for _, u := range units {
		attrs, text := u.attributes(o), u.name()+"\x00"+u.Text()
		if u.pods { // which one that stays as it is shares no object with, though it says the same
			text = "pods\x00" + text
		}
		for _, op := range u.Operations {
			key := u.Target.Key() + "\x00" + string(op) + "\x00" + attrs
			c := index[key]
			if c == nil {
				c = &cell{target: u.Target, op: op, says: []string{attrs}}
				index[key] = c
				cells = append(cells, c)
			}
			c.units = append(c.units, u)
			c.says = append(c.says, text)
		}
	}
	var out []group
	where := map[string]int{}
	for _, c := range cells {
		key := strings.Join(c.says, "\x01")
		i, ok := where[key]
		if !ok {
			i = len(out)
			where[key] = i
			out = append(out, group{units: slices.Clone(c.units)})
		}
		out[i].place(c.target, c.op)
		for j, u := range c.units {
			out[i].units[j].addForm(u)
		}
	}
	return withoutCreatedParts(withDeletions(out))
}

// withoutCreatedParts are the groups without what no request is. Ephemeral containers are among what is created where that makes one resource rule
// with the Pods. A rule that is about nothing else keeps its object.
func withoutCreatedParts(groups []group) []group {
	var out []group
	for _, g := range groups {
		rest := slices.DeleteFunc(slices.Clone(g.targets), placed.neverHappens)
		elsewhere := func(u Unit) bool {
			return slices.ContainsFunc(groups, func(other group) bool {
				return slices.ContainsFunc(other.targets, func(t placed) bool { return !t.neverHappens() }) &&
					slices.ContainsFunc(other.units, func(v Unit) bool { return v.Rule == u.Rule })
			})
		}
		switch {
		case len(rest) > 0:
			g.targets = rest
		case !slices.ContainsFunc(g.units, func(u Unit) bool { return !elsewhere(u) }):
			continue
		}
		out = append(out, g)
	}
	return out
}

func (g *group) place(t native.Target, op native.Operation) {
	if i := g.placeOf(t); i >= 0 {
		g.targets[i].ops = append(g.targets[i].ops, op)
		return
	}
	g.targets = append(g.targets, placed{Target: t, ops: []native.Operation{op}})
}

// named are groups within the budget, with names that differ.
func named(gs []group, o Options) []group {
	var out []group
	for _, g := range gs {
		for _, part := range g.byGuard(o) {
			out = append(out, part.withinBudget(o)...)
		}
	}
	used := map[string]group{}
	for i, g := range out {
		out[i].base = g.name(used, o)
		used[out[i].base] = g
	}
	return out
}

// drafts are the policy objects of a group.
func (g group) drafts(o Options) []*vap.Draft {
	d := g.made
	if d == nil {
		d = g.draft(o)
	}
	d.Base = g.base
	g.withoutCostlyGuard(d)
	return g.byAction(d)
}

// sources are the policies that the members are of.
func (g group) sources() []*policy.Policy {
	var out []*policy.Policy
	for _, u := range g.units {
		if !slices.Contains(out, u.Policy) {
			out = append(out, u.Policy)
		}
	}
	return out
}

// draft is the policy object of a group. What all members share of their match
// becomes match conditions; the rest guards their validations.
func (g group) draft(o Options) *vap.Draft {
	first := g.units[0]
	d := &vap.Draft{
		Deletes:       slices.ContainsFunc(g.targets, func(t placed) bool { return t.deletes }),
		Pods:          first.pods,
		CronJobs:      first.pods && slices.ContainsFunc(g.targets, func(t placed) bool { return t.Parent.Kind == "CronJob" }),
		FailurePolicy: first.failurePolicy(),
		Constraints:   vap.Constraints{Rules: resourceRules(g.targets, first.Policy.Namespaced()), NamespaceSelector: first.NamespaceSelector},
		Bindings:      g.bindings(),
	}
	d.Conditions = slices.Clone(first.Conditions)
	match := first.Match
	g.excuseGivenMatch()
	g.conditions(d)
	first.CEL.AddTo(d)
	first.Params.AddTo(d)
	var members []Unit
	for i, u := range g.units {
		u = u.declared(d)
		members = append(members, u)
		d.Validations = append(d.Validations, g.validations(i, u, g.watch(d.Variables))...)
	}
	addMembers(d, members)
	d.Authored, d.Checkers = first.CEL != nil, g.checkers()
	d.Guard = g.guard(d, members, o)
	g.sayOnce(d, members)
	g.askBoth(d, members, match)
	g.askOnce(d)
	askNoLess(d)
	g.nameOthers(d, members)
	nameMembers(d, members)
	Describe(d, g.sources()...)
	return d
}

// excuseGivenMatch has no excuse ask what the match of its rule has asked: of the old object the
// match asks the same, but for what an update changes.
func (g *group) excuseGivenMatch() {
	g.units = slices.Clone(g.units)
	for i, u := range g.units {
		if u.Exempt = u.Exempt.Given(u.applies()); !u.Before.IsZero() {
			u.Before = u.Before.Given(u.applies())
		}
		g.units[i] = u
	}
}

// conditions moves what all members share of match and preconditions to the
// policy's match conditions. Those cannot read the namespace, nor variables.
func (g *group) conditions(d *vap.Draft) {
	shared := func(part func(Unit) cel.Bool) bool {
		first := part(g.units[0]).String()
		return !slices.ContainsFunc(g.units, func(u Unit) bool { return part(u).String() != first })
	}
	match := Unit.applies
	pre := func(u Unit) cel.Bool { return u.Pre.Expr }
	u := g.units[0]
	if !shared(match) || u.ReadsNamespace || !standsAlone(u.applies()) {
		return
	}
	if !u.applies().IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: matchPos(u), Name: "match", Expr: u.applies().Searching().Rooted(), Sound: true})
	}
	for i := range g.units {
		g.units[i].Match, g.units[i].asks = cel.True(), cel.True()
	}
	if shared(pre) && !u.Pre.Expr.IsTrue() && standsAlone(u.Pre.Expr) {
		asked := u.Pre.Expr
		if !u.Pre.Errs {
			asked = asked.Searching()
		}
		d.Conditions = append(d.Conditions, vap.Condition{Pos: u.Rule.Preconditions.Pos, Name: "preconditions", Expr: asked.Rooted(), Sound: !u.Pre.Errs})
		for i := range g.units {
			g.units[i].Pre = partial.Sure(cel.True())
		}
	}
}

// standsAlone tells that a match condition may say b: it knows neither variables
// nor the namespace, which is null there.
func standsAlone(b cel.Bool) bool {
	return b.Count("variables") == 0 && b.Count("namespaceObject") == 0
}

// validations are one member's checks: those of a CEL rule, or the one that a
// rule of any other kind has.
func (g group) validations(i int, u Unit, w watch) []vap.Validation {
	if u.CEL != nil {
		out := make([]vap.Validation, len(u.CEL.Checks))
		for j, c := range u.CEL.Checks {
			out[j] = g.validation(i, u, partial.MayErr(c.Expr), c)
		}
		return out
	}
	holds := u.Holds
	if !u.Exempt.IsFalse() {
		holds = holds.Else(partial.MayErr(u.Exempt))
	}
	v := vap.Validation{Pos: u.Rule.Validate.Pos, Message: u.Message.Text, MessageExpression: u.Message.Expr}
	v = g.validation(i, u, holds, v)
	if u.failurePolicy() == string(policy.Fail) && !u.Tells {
		v.Expr = v.Expr.Denying(w.around...)
	}
	v.Expr = v.Expr.Rooted()
	return []vap.Validation{v}
}

// validation is a check of a member, behind what tells whether it counts.
func (g group) validation(i int, u Unit, holds partial.Bool, v vap.Validation) vap.Validation {
	v.Member, v.Expr = i, partial.Sure(u.applies()).Implies(u.Pre.Implies(holds)).Expr
	if len(g.units) == 1 && !g.byKind {
		return v
	}
	prefix := "[" + g.label(u) + "] "
	v.Message = prefix + v.Message
	if v.MessageExpression != nil {
		m := cel.String(prefix).Plus(*v.MessageExpression)
		v.MessageExpression = &m
	}
	return v
}

// ResourceRules says targets, each with an operation, as few rules. bound tells that these
// are of a policy of a namespace.
func ResourceRules(targets []native.Target, ops []native.Operation, bound bool) []vap.ResourceRule {
	var g group
	for i, t := range targets {
		g.place(t, ops[i])
	}
	return resourceRules(g.targets, bound)
}

// resourceRules says the targets as few rules.
func resourceRules(ts []placed, bound bool) []vap.ResourceRule {
	var out []vap.ResourceRule
	scope := "*"
	if bound {
		scope = "Namespaced"
	}
	for _, t := range ts {
		ops := inOrder(t.ops)
		if t.deletes {
			ops = append(ops, string(native.Delete))
		}
		of := t.VersionsOf()
		for _, group := range slices.Sorted(maps.Keys(of)) {
			versions := of[group]
			i := slices.IndexFunc(out, func(q vap.ResourceRule) bool {
				return q.Groups[0] == group && slices.Equal(q.Versions, versions) && slices.Equal(q.Operations, ops)
			})
			if i < 0 {
				out = append(out, vap.ResourceRule{Groups: []string{group}, Versions: versions, Resources: []string{t.Resource}, Operations: ops, Scope: scope})
				continue
			}
			out[i].Resources = append(out[i].Resources, t.Resource)
			slices.Sort(out[i].Resources)
			out[i].Resources = slices.Compact(out[i].Resources)
		}
	}
	slices.SortStableFunc(out, func(a, b vap.ResourceRule) int {
		return cmp.Or(strings.Compare(a.Groups[0], b.Groups[0]), strings.Compare(a.Versions[0], b.Versions[0]), strings.Compare(a.Resources[0], b.Resources[0]))
	})
	return out
}

// inOrder are operations in the usual order.
func inOrder(ops []native.Operation) []string {
	var out []string
	for _, op := range []native.Operation{native.Create, native.Update, native.Delete, native.Connect} {
		if slices.Contains(ops, op) {
			out = append(out, string(op))
		}
	}
	return out
}
