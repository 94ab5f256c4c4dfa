package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/vap"
)

// A group is the rules that share a policy object: the same action, failure
// policy and params, and the same text for the same targets.
type group struct {
	base    string // the stem of the objects' names
	units   []unit // one per member, of the first target
	targets []placed

	unguarded bool   // no guard can speak for the members
	alone     bool   // the one member costs too much to share an object
	part      string // which of the parts it is into which a group was split
}

// placed is a target with the operations that a group is about.
type placed struct {
	target
	ops []operation
}

// grouped packs units. First the units of each target and operation are put
// together by what a policy object has once; then targets and operations whose
// lists say the same become one group.
func grouped(units []unit, o *Options) []group {
	if o.Pack == PackMatch {
		return groupedByKind(units, o)
	}
	type cell struct {
		target target
		op     operation
		units  []unit
		key    string
	}
	var cells []*cell
	index := map[string]*cell{}
	for _, u := range units {
		attrs, text := u.attributes(o), u.rule.Name+"\x00"+u.text()
		for _, op := range u.ops {
			key := u.target.key() + "\x00" + string(op) + "\x00" + attrs
			c := index[key]
			if c == nil {
				c = &cell{target: u.target, op: op, key: attrs}
				index[key] = c
				cells = append(cells, c)
			}
			c.units = append(c.units, u)
			c.key += "\x01" + text
		}
	}
	var out []group
	where := map[string]int{}
	for _, c := range cells {
		i, ok := where[c.key]
		if !ok {
			i = len(out)
			where[c.key] = i
			out = append(out, group{units: c.units})
		}
		out[i].place(c.target, c.op)
	}
	return out
}

// groupedByKind packs units of many policies: those of one kind, for new objects and
// updates together. What is about some of a pack's operations asks for them itself.
// So what a policy is about decides which packs it is in, and nothing else does.
func groupedByKind(units []unit, o *Options) []group {
	var out []group
	where := map[string]int{}
	for _, u := range units {
		attrs := u.attributes(o)
		for _, class := range []operation{opCreate, opDelete, opConnect} {
			mine := slices.DeleteFunc(slices.Clone(u.ops), func(op operation) bool { return op.class() != class })
			if len(mine) == 0 {
				continue
			}
			key := u.target.key() + "\x00" + string(class) + "\x00" + attrs
			i, ok := where[key]
			if !ok {
				i = len(out)
				where[key] = i
				out = append(out, group{targets: []placed{{target: u.target}}})
			}
			part := u
			part.ops = mine
			out[i].units = append(out[i].units, part)
			out[i].targets[0].add(mine)
		}
	}
	for _, g := range out {
		g.askForOperations()
	}
	return out
}

// askForOperations has the units that are about some of the group's operations ask.
func (g group) askForOperations() {
	for i, u := range g.units {
		if len(u.ops) < len(g.targets[0].ops) { // of two operations, one
			g.units[i].match = cel.And(cel.Ident("request").Field("operation").Eq(cel.String(string(u.ops[0]))), u.match)
		}
	}
}

// class is the operation under which it is packed with others.
func (op operation) class() operation {
	if op == opUpdate {
		return opCreate
	}
	return op
}

func (p *placed) add(ops []operation) {
	for _, op := range ops {
		if !slices.Contains(p.ops, op) {
			p.ops = append(p.ops, op)
		}
	}
}

func (g *group) place(t target, op operation) {
	for i := range g.targets {
		if g.targets[i].key() == t.key() {
			g.targets[i].ops = append(g.targets[i].ops, op)
			return
		}
	}
	g.targets = append(g.targets, placed{t, []operation{op}})
}

// attributes are what a policy object and its bindings have once.
func (u unit) attributes(o *Options) string {
	parts := []string{u.failurePolicy(), u.actionKey(), fmt.Sprint(u.policy.EmitWarning), u.params.key(), u.native.own()}
	if u.policy.Namespaced() {
		parts = append(parts, "ns:"+u.policy.Namespace)
	}
	for _, c := range u.policy.MatchConditions {
		parts = append(parts, c.Name, c.Expression)
	}
	if o.Pack == PackRule {
		parts = append(parts, u.rule.Name)
	}
	if u.native.own() != "" {
		parts = append(parts, memberName(u.policy), u.rule.Name)
	}
	return strings.Join(parts, "\x02")
}

// named are groups within the budget, with names that differ.
func named(gs []group, o *Options) []group {
	parts := make([][]group, len(gs))
	o.Each(len(gs), func(i int) {
		for _, part := range gs[i].byGuard(o) {
			parts[i] = append(parts[i], part.withinBudget(o)...)
		}
	})
	out := slices.Concat(parts...)
	used := map[string]bool{}
	for i := range out {
		out[i].base = out[i].name(used, o)
		used[out[i].base] = true
	}
	return out
}

// drafts are the policy objects of a group.
func (g group) drafts(o *Options) []*vap.Draft {
	d := g.draft(o)
	d.Base = g.base
	g.withoutCostlyGuard(d, o)
	return g.byAction(d)
}

// policies is how many policies the members are of.
func (g group) policies() int { return len(g.sources()) }

// sources are the policies that the members are of.
func (g group) sources() []*policy.Policy {
	var out []*policy.Policy
	for _, u := range g.units {
		if !slices.Contains(out, u.policy) {
			out = append(out, u.policy)
		}
	}
	return out
}

// draft is the policy object of a group. What all members share of their match
// becomes match conditions; the rest guards their validations.
func (g group) draft(o *Options) *vap.Draft {
	first := g.units[0]
	d := &vap.Draft{
		FailurePolicy: first.failurePolicy(),
		Constraints:   vap.Constraints{Rules: resourceRules(g.targets, first.policy.Namespaced())},
		Bindings:      g.bindings(),
	}
	d.Conditions, _ = policyConditions(first.policy, o, nil) // lowerWhole has seen to the reason
	g.conditions(d)
	first.native.add(d)
	first.params.add(d)
	var members []unit
	for i, u := range g.units {
		u = u.declared(d)
		members = append(members, u)
		d.Members = append(d.Members, vap.Member{Pos: u.rule.Pos, Policy: memberName(u.policy), Rule: u.rule.Name, Origin: u.rule.Origin})
		d.Validations = append(d.Validations, g.validations(i, u)...)
	}
	d.Checkers = g.checkers()
	d.Guard = g.guard(d, members, o)
	g.nameOthers(d, members)
	describe(d, g.sources()...)
	return d
}

// conditions moves what all members share of match and preconditions to the
// policy's match conditions. Those cannot read the namespace, nor variables.
func (g *group) conditions(d *vap.Draft) {
	shared := func(part func(unit) cel.Bool) bool {
		first := part(g.units[0]).String()
		return !slices.ContainsFunc(g.units, func(u unit) bool { return part(u).String() != first })
	}
	match := func(u unit) cel.Bool { return u.match }
	pre := func(u unit) cel.Bool { return u.pre.b }
	u := g.units[0]
	if !shared(match) || u.namespace || !standsAlone(u.match) {
		return
	}
	if !u.match.IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: matchPos(u), Name: "match", Expr: u.match.Rooted(), Sound: true})
	}
	g.units = slices.Clone(g.units)
	for i := range g.units {
		g.units[i].match = cel.True()
	}
	if shared(pre) && !u.pre.b.IsTrue() && standsAlone(u.pre.b) {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: u.rule.Preconditions.Pos, Name: "preconditions", Expr: u.pre.b.Rooted(), Sound: !u.pre.errs})
		for i := range g.units {
			g.units[i].pre = truthValue{b: cel.True()}
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
func (g group) validations(i int, u unit) []vap.Validation {
	if u.native != nil {
		out := make([]vap.Validation, len(u.native.checks))
		for j, c := range u.native.checks {
			out[j] = g.validation(i, u, truthValue{c.Expr, true}, c)
		}
		return out
	}
	holds := truthValue{b: u.holds.b, errs: u.holds.errs}
	if !u.exempt.IsFalse() {
		holds = holds.orElse(truthValue{u.exempt, true})
	}
	v := vap.Validation{Pos: u.rule.Validate.Pos, Message: u.message.text, MessageExpression: u.message.expr}
	v = g.validation(i, u, holds, v)
	v.Expr = v.Expr.Rooted()
	return []vap.Validation{v}
}

// validation is a check of a member, behind what tells whether it counts.
func (g group) validation(i int, u unit, holds truthValue, v vap.Validation) vap.Validation {
	v.Member, v.Expr = i, truthValue{b: u.match}.implies(u.pre.implies(holds)).b
	if len(g.units) == 1 {
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

// resourceRules says the targets as few rules.
func resourceRules(ts []placed, bound bool) []vap.ResourceRule {
	var out []vap.ResourceRule
	scope := "*"
	if bound {
		scope = "Namespaced"
	}
	for _, t := range ts {
		ops := inOrder(t.ops)
		i := slices.IndexFunc(out, func(q vap.ResourceRule) bool {
			return q.Groups[0] == t.group && q.Versions[0] == t.version && slices.Equal(q.Operations, ops)
		})
		if i >= 0 {
			out[i].Resources = append(out[i].Resources, t.resource)
			slices.Sort(out[i].Resources)
			continue
		}
		out = append(out, vap.ResourceRule{Groups: []string{t.group}, Versions: []string{t.version}, Resources: []string{t.resource}, Operations: ops, Scope: scope})
	}
	slices.SortStableFunc(out, func(a, b vap.ResourceRule) int {
		return cmp.Or(strings.Compare(a.Groups[0], b.Groups[0]), strings.Compare(a.Versions[0], b.Versions[0]), strings.Compare(a.Resources[0], b.Resources[0]))
	})
	return out
}

// inOrder are operations in the usual order.
func inOrder(ops []operation) []string {
	var out []string
	for _, op := range []operation{opCreate, opUpdate, opDelete, opConnect} {
		if slices.Contains(ops, op) {
			out = append(out, string(op))
		}
	}
	return out
}
