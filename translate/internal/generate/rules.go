package generate

import (
	"slices"
	"strings"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/generating"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/api"
	"github.com/kvap/kvap/translate/internal/celrule"
	"github.com/kvap/kvap/translate/internal/condition"
	"github.com/kvap/kvap/translate/internal/match"
	"github.com/kvap/kvap/translate/internal/mutate"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/translate/internal/partial"
	"github.com/kvap/kvap/translate/internal/query"
	"github.com/kvap/kvap/translate/internal/read"
	"github.com/kvap/kvap/translate/internal/rule"
	"github.com/kvap/kvap/vap"
)

// LowerRules lowers the generate rules of a policy, which are among rules.
func LowerRules(p *policy.Policy, rules []api.RuleResult, o *api.Options) {
	for i := range rules {
		r := &rules[i]
		if !r.Generates() || r.Rule.Invalid {
			continue
		}
		g := generation{policy: p, rule: r.Rule, opts: o}
		if why := g.lower(&r.Found); why != nil {
			r.Refuse(*why)
			continue
		}
		r.Target, r.Found, r.Generating = api.Native, r.Found.Sort(), g.drafts(len(rules) > 1)
		r.Codes = api.CodesOf(r.Found)
	}
}

// A generation is a generate rule on its way to drafts.
type generation struct {
	policy     *policy.Policy
	rule       *policy.Rule
	opts       *api.Options
	conditions []vap.Condition // of the policy
	triggers   []trigger
}

// A trigger is a target and operations that trigger a rule, and what that makes then.
type trigger struct {
	target    native.Target
	ops       []native.Operation
	selector  vap.Selector
	match     cel.Bool
	pre       partial.Bool
	entries   []vap.Expression
	mayErr    bool
	variables []vap.Variable
	params    *native.Params
}

// text is everything that a trigger says but its target and operations.
func (t trigger) text() string {
	parts := []string{t.match.String(), t.pre.Expr.String(), native.SelectorKey(t.selector), t.params.Key()}
	for _, e := range t.entries {
		parts = append(parts, e.Expr.String())
	}
	for _, v := range t.variables {
		parts = append(parts, v.Name, v.Expr.String())
	}
	return strings.Join(parts, "\x00")
}

func (g *generation) lower(notes *diag.List) (why *diag.Diagnostic) {
	if why = rule.DependentRules(g.policy); why != nil {
		return why
	}
	if g.conditions, why = celrule.PolicyConditions(g.policy, g.opts, notes); why != nil {
		return why
	}
	base := &read.Lowering{
		Opts: g.opts, Release: read.Release(g.opts.Release), Policy: g.policy, Rule: g.rule, PolicyConditions: g.conditions,
		Pos: g.rule.Pos, Notes: notes, Gathered: read.NewGathered(),
	}
	return rule.RefusalOf(base, func() {
		g.checkFrame(base)
		for _, t := range rule.Targets(base) {
			if g.policy.Namespaced() && t.Scope == native.Cluster {
				continue
			}
			for _, ops := range g.operations(base, t) {
				g.triggers = append(g.triggers, rule.ForOperations(base, ops, func(ops []native.Operation) (trigger, bool) { return g.trigger(base, t, ops) })...)
			}
		}
		if len(g.triggers) == 0 {
			panic(base.Refuse(diag.NoKyvernoForm, "no request triggers the rule; look for what its match and its preconditions ask"))
		}
		g.checkSteps(base)
		g.tellDifferences(base)
	})
}

// checkFrame refuses what is said of a policy as a whole and has another meaning to a
// GeneratingPolicy.
func (g *generation) checkFrame(l *read.Lowering) {
	switch {
	case !g.policy.Admission && !g.existing():
		panic(l.Refuse(diag.NoKyvernoForm, "nothing triggers the rule: no request does (admission: false), and no object that is there (generateExisting)"))
	case g.rule.Generate.Synchronize && len(g.conditions) > 0:
		panic(l.Refuse(diag.NoKyvernoForm, "with synchronize, a GeneratingPolicy deletes what it has made when a match condition no longer holds, and the webhook's conditions keep the rule from that; "+
			"make them preconditions, if that is what is meant"))
	case g.existing() && rule.NamesOperations(g.rule):
		panic(l.Refuse(diag.NoKyvernoForm, "generateExisting has no effect on a rule that names operations, and would have one in a GeneratingPolicy; remove one of the two"))
	case g.existing() && rule.AsksUser(g.rule):
		panic(l.Refuse(diag.NoKyvernoForm, "generateExisting has no effect on a rule that asks who sends a request, and would have one in a GeneratingPolicy; remove one of the two"))
	case g.existing() && rule.AsksRequest(g.rule):
		panic(l.Refuse(diag.NoKyvernoForm, "with generateExisting, a rule knows of no request to objects that are there, and a GeneratingPolicy takes them for being created; "+
			"ask request.object in the place of the operation, the name or what else is the request's, or remove generateExisting"))
	}
	for _, e := range g.opts.Exceptions {
		if !e.Invalid && len(e.PodSecurity) > 0 && match.Excepts(l, e) {
			panic(l.Unsupported("an exception for the Pod Security Standards"))
		}
	}
}

// existing tells that the rule is for objects that are there.
func (g *generation) existing() bool {
	if own := g.rule.Generate.Existing; own != nil {
		return *own
	}
	return g.policy.GenerateExisting
}

// operations are those that a target is lowered for at once. A deletion triggers a rule that lists
// it; to others it is the end of what they have made.
func (g *generation) operations(l *read.Lowering, t native.Target) (out [][]native.Operation) {
	var writes []native.Operation
	for _, op := range t.PossibleOperations() {
		switch {
		case !query.SomeFilterHas(l, op), op == native.Delete && !rule.Lists(g.rule, op):
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

// trigger lowers the rule for a target and operations; false where these do not trigger it.
func (g *generation) trigger(l *read.Lowering, t native.Target, ops []native.Operation) (trigger, bool) {
	l.SetPos(g.rule.Pos)
	w := rule.Walk(l, t, ops)
	if slices.Contains(ops, native.Delete) { // what is deleted is the object of the request
		w.Object = w.Old
	}
	out := trigger{target: t, ops: ops, selector: native.PlainSelector(w.Selected)}
	var asked bool
	if out.match, out.pre, asked = rule.Asked(w); !asked {
		return out, false
	}
	out.make(w)
	out.variables, out.params = w.Variables, w.Params
	return out, true
}

// drafts are those of the triggers; targets and operations that make the same share one.
func (g *generation) drafts(among bool) (out []*generating.Draft) {
	same := map[string]int{}
	var targets [][]native.Target
	var ops [][]native.Operation
	var first []trigger
	for _, t := range g.triggers {
		i, known := same[t.text()]
		if !known {
			i = len(first)
			same[t.text()] = i
			first, targets, ops = append(first, t), append(targets, nil), append(ops, nil)
		}
		for _, op := range t.ops {
			targets[i], ops[i] = append(targets[i], t.target), append(ops[i], op)
		}
	}
	for i, t := range first {
		d := g.draft(t, pack.ResourceRules(targets[i], ops[i], g.policy.Namespaced()))
		if among {
			d.Base += "-" + strings.ToLower(g.rule.Name)
		}
		if len(first) > 1 {
			d.Base += "-" + strings.ToLower(t.target.Parent.Kind+"-"+string(t.ops[0]))
		}
		out = append(out, d)
	}
	return out
}

// draft is the draft of a trigger, for resources.
func (g *generation) draft(t trigger, resources []vap.ResourceRule) *generating.Draft {
	body := g.rule.Generate
	d := &generating.Draft{
		Draft: vap.Draft{
			Base: g.policy.Name, FailurePolicy: string(policy.Ignore), Conditions: slices.Clone(g.conditions), Variables: t.variables,
			Members:     []vap.Member{{Pos: g.rule.Pos, Policy: native.MemberName(g.policy), Rule: g.rule.Name, Origin: g.rule.Origin}},
			Constraints: vap.Constraints{Rules: resources, NamespaceSelector: t.selector},
		},
		Entries: t.entries, MayErr: t.mayErr, Synchronize: body.Synchronize, Existing: g.existing(), Idle: !g.policy.Admission, Orphans: body.Synchronize && body.Orphans(),
		ServerSideApply: g.policy.ServerSideApply, OwnRequests: !g.rule.SkipBackground,
	}
	if !t.match.IsTrue() {
		d.Conditions = append(d.Conditions, vap.Condition{Pos: g.rule.Match.Pos, Name: "match", Expr: vap.Inlined(t.match.Value, t.variables).AsBool().Rooted(), Sound: true})
	}
	if pre := g.rule.Preconditions; !t.pre.Expr.IsTrue() {
		at := g.rule.Pos
		if pre != nil {
			at = pre.Pos
		}
		d.Conditions = append(d.Conditions, vap.Condition{Pos: at, Name: "preconditions", Expr: vap.Inlined(t.pre.Expr.Value, t.variables).AsBool().Rooted(), Sound: !t.pre.Errs})
	}
	binding := vap.Binding{}
	if p := t.params; p != nil {
		p.AddTo(&d.Draft)
		binding.Param = &vap.ParamRef{Name: p.Name, Namespace: p.Namespace, NotFound: "Deny"}
	}
	d.Bindings = []vap.Binding{binding}
	if slices.Contains(t.ops, native.Delete) { // conditions may be asked of an API server, which has no other object then
		d.Variables, d.Entries = slices.Clone(t.variables), slices.Clone(t.entries)
		for i := range d.Variables {
			d.Variables[i].Expr = d.Variables[i].Expr.Rename("oldObject", "object")
		}
		for i := range d.Entries {
			d.Entries[i].Expr = d.Entries[i].Expr.Rename("oldObject", "object")
		}
	}
	pack.Describe(&d.Draft, g.policy)
	return d
}

// checkSteps refuses synchronize where an update of a trigger that is one still would be none to
// the policy: that has what was made deleted.
func (g *generation) checkSteps(l *read.Lowering) {
	if !g.rule.Generate.Synchronize {
		return
	}
	texts := map[string]string{} // by target
	for _, t := range g.triggers {
		at := t.target.Key()
		if said, known := texts[at]; known && said != t.text() {
			panic(l.Refuse(diag.NoKyvernoForm, "with synchronize, a GeneratingPolicy deletes at an update what it has made of the creation, and the rule is another on each operation; "+
				"ask for no operation and no old object, or set synchronize: false"))
		}
		texts[at] = t.text()
	}
	for _, t := range g.triggers {
		updates := false
		for _, u := range g.triggers {
			for _, op := range u.ops {
				updates = updates || u.target.Key() == t.target.Key() && op == native.Update
			}
		}
		for _, op := range t.target.PossibleOperations() {
			if op == native.Update && !updates {
				panic(l.Refuse(diag.NoKyvernoForm, "with synchronize, a GeneratingPolicy that is not about updates deletes what it has made at the first one; "+
					"add UPDATE to the operations, or set synchronize: false"))
			}
		}
	}
}

// tellDifferences tells of what a GeneratingPolicy does otherwise with objects that are there.
func (g *generation) tellDifferences(l *read.Lowering) {
	l.SetPos(g.rule.Generate.Pos)
	note := func(what string) { *l.Notes = append(*l.Notes, diag.Notef(l.Pos, diag.GeneratedAnew, "%s", what)) }
	if !g.rule.Generate.Synchronize {
		note("an update of the trigger writes anew what the policy has made for it, where the rule leaves it alone (synchronize: false)")
		return
	}
	note("an object of the name that somebody else has made is left alone, where the rule takes it over (synchronize: true)")
	if slices.ContainsFunc(g.triggers, func(t trigger) bool { return t.pre.Errs }) {
		note("what was made goes when its trigger stops being one, where the rule keeps it if the preconditions were an error before that")
	}
	if rule.NamesOperations(g.rule) && !rule.Lists(g.rule, native.Delete) {
		l.Note(diag.GeneratedAnew, "what was made goes with its trigger, where the rule keeps it, for it names operations and DELETE is none of them; "+
			"set orphanDownstreamOnPolicyDelete or synchronize: false if it is to stay")
	}
}

// loop is an entry of a foreach. What is an error for one element keeps no other from being made:
// all() goes on behind an error.
//
//	object.data.namespaces.split(',').all(namespace, generator.Apply(namespace, […]))
//
// CEL counts no elements. Where a rule does, it goes through the indexes of the list:
//
//	lists.range(variables.namespaces.size()).all(i, generator.Apply(variables.namespaces[i], […]))
func loop(l *read.Lowering, f *policy.GenerateForEach) partial.Bool {
	l = l.Inside()
	of := mutate.ElementsOf(l, f.List)
	if !strings.Contains(string(policy.Marshal(f.Source)), "elementIndex") {
		return each(l, f, of, of.List, of.Hint, func(x cel.Value) (element cel.Value, index read.Operand) { return x, rule.NoIndex(l) })
	}
	list := read.Let(l, of.Hint+"s", of.List)
	indexes := cel.Ident("lists").Call("range", list.Size())
	return each(l, f, of, indexes, "i", func(i cel.Value) (element cel.Value, index read.Operand) { return list.Index(i), read.IntOf(i) })
}

// each is an entry for each of what a list has.
func each(l *read.Lowering, f *policy.GenerateForEach, of mutate.Elements, list cel.Value, hint string, enter func(x cel.Value) (cel.Value, read.Operand)) partial.Bool {
	if hint == "generator" || hint == "resource" { // it would hide what makes and reads objects
		hint = "element"
	}
	x, release := l.Binders.Bind(hint)
	defer release()
	element, index := enter(x)
	in := rule.Entered(l, &policy.ForEach{Pos: f.Pos, List: f.List, Context: f.Context, Preconditions: f.Preconditions},
		read.OperandAt(read.PlaceOf(element, of.Elem)), index, 0)
	in.SetPos(f.Pos)
	when := celrule.Simplified(in, condition.Conditions(in, f.Preconditions), in.Environment)
	one := when.Implies(made(in, &f.GenerateTarget))
	out := l.Told(of.Reading, list.Macro(cel.MacroAll, x, one.Expr.Value).AsBool())
	if one.Errs {
		out = out.ErrsInCEL()
	}
	return out
}
