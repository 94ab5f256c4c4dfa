package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/translate/internal/native"
	"github.com/kvap/kvap/translate/internal/pack"
	"github.com/kvap/kvap/vap"
)

// tooLarge is the refusal of a rule whose trees grow past all bounds.
func tooLarge(at diag.Pos) refusal {
	return refusal{diag.Warnf(at, diag.TooLarge, "the rule would become larger than any that the API server takes; the webhook will judge this rule")}
}

// lowerRule lowers one rule, as written or expanded, for every target and
// operation; a refusal is the reason why it has no native form.
func lowerRule(p *policy.Policy, r *policy.Rule, conditions []vap.Condition, o *Options) (out loweredPart) {
	base := &lowering{opts: o, release: release(o.Release), policy: p, rule: r, policyConditions: conditions, pos: r.Pos, gathered: newGathered(&out.notes), environment: environment{needs: &needs{}}}
	out.why = base.refusalOf(func() {
		base.checkOverrides()
		targets := base.ruleTargets()
		units := base.withoutExcused(base.lowerTargets(targets))
		base.noteUnasked(units)
		base.asTemplates(units)
		base.noteDefaultFilters(targets)
		base.noteOwnObjects(units)
		out.units = units
	})
	if out.why == nil {
		out.why = refusedUnits(out.units, o, &out.notes)
	}
	return out
}

// refusalOf lowers something. It returns why that has no native form, if it has none.
func (l *lowering) refusalOf(lower func()) (why *diag.Diagnostic) {
	defer func() {
		if v := recover(); v != nil {
			ref, ok := v.(refusal)
			if _, grown := v.(cel.TooLarge); grown {
				ref, ok = tooLarge(l.rule.Pos), true
			}
			if !ok {
				panic(v)
			}
			why = &ref.Diagnostic
		}
	}()
	lower()
	return nil
}

// ruleTargets are the targets of all kinds of the match block, each once.
func (l *lowering) ruleTargets() []native.Target {
	var out []native.Target
	seen := map[string]bool{}
	for _, f := range filters(l.rule.Match) {
		for _, k := range f.Kinds {
			for _, t := range l.targets(k) {
				if !seen[t.Key()] {
					seen[t.Key()] = true
					t.Body = l.objectType(t)
					out = append(out, t)
				}
			}
		}
		if len(f.Kinds) == 0 && !isEmpty(f) {
			panic(l.refuse(diag.NoKinds, "a filter without kinds matches every kind, which no narrow resource rule can say"))
		}
	}
	return out
}

// lowerTargets lowers the rule for each target.
func (l *lowering) lowerTargets(targets []native.Target) []pack.Unit {
	var out []pack.Unit
	for _, units := range l.eachByItself(len(targets), func(one *lowering, i int) []pack.Unit { return one.lowerTarget(targets[i]) }) {
		for _, u := range units {
			out = append(out, u.Sharing(out))
		}
	}
	return out
}

// lowerTarget lowers the rule for one target. Operations that it treats alike
// stay together.
func (l *lowering) lowerTarget(t native.Target) []pack.Unit {
	var out []pack.Unit
	operations := l.operations(t)
	for _, units := range l.eachByItself(len(operations), func(one *lowering, i int) []pack.Unit { return one.units(t, operations[i]) }) {
		for _, u := range units {
			if i := slices.IndexFunc(out, func(v pack.Unit) bool { return v.Same(u) }); i >= 0 {
				out[i].Operations = append(out[i].Operations, u.Operations...)
				continue
			}
			out = append(out, u)
		}
	}
	for i := range out {
		l.excuse(&out[i])
	}
	return out
}

// eachByItself lowers n parts, each by a lowering of its own, and tells what they tell in their
// order.
func (l *lowering) eachByItself(n int, lower func(one *lowering, i int) []pack.Unit) [][]pack.Unit {
	of := make([]loweredPart, n)
	last := untilRefused(l.opts, n, func(i int) (refused bool) {
		one := *l
		one.gathered = newGathered(&of[i].notes)
		of[i].why = one.refusalOf(func() { of[i].units = lower(&one, i) })
		return of[i].why != nil
	})
	var out [][]pack.Unit
	for _, f := range of[:last] {
		*l.notes = append(*l.notes, f.notes...)
		out = append(out, f.units)
	}
	if last < n {
		panic(refusal{*of[last].why})
	}
	return out
}

// units are the unit for operations, where the rule does not tell them apart, or
// else one for each; none where it cannot fail.
func (l *lowering) units(t native.Target, ops []native.Operation) []pack.Unit {
	var out []pack.Unit
	stop := l.attempt(func() {
		if u, ok := l.unit(t, ops); ok {
			out = append(out, u)
		}
	})
	switch stop.(type) {
	case nil:
		return out
	case perOperation:
		for _, op := range ops {
			out = append(out, l.units(t, []native.Operation{op})...)
		}
		return out
	}
	panic(stop)
}

// unit lowers the rule for a target and operations; false where it cannot fail.
func (l *lowering) unit(t native.Target, ops []native.Operation) (pack.Unit, bool) {
	w := l.walk(t, ops)
	u := pack.Unit{Policy: l.policy, Rule: l.rule, Conditions: l.policyConditions, Target: t, Operations: ops, Exempt: cel.False(), Reaches: l.opts.reaches(l.policy, l.rule)}
	if w.selected != nil {
		u.NamespaceSelector = native.PlainSelector(w.selected)
	}
	u.Match = w.applies()
	if u.Match.IsFalse() {
		return u, false
	}
	u.Pre = w.simplified(w.conditions(l.rule.Preconditions), w.environment)
	if excepted := w.unlessExcepted(); u.Pre.Errs { // which no exception is from
		u.Pre = u.Pre.AndThen(native.Sure(excepted))
	} else {
		u.Match = cel.And(u.Match, excepted)
	}
	u.ReadsNamespace = w.usesNamespace
	if u.Pre.Expr.IsFalse() && !u.Pre.Errs {
		return u, false
	}
	u.Holds = w.simplified(w.body(&u), w.environment)
	u.Holds.Expr = w.fuse(u.Holds.Expr)
	u.Tells = w.tells
	if u.Holds.Expr.IsTrue() && !u.Holds.Errs && (!u.Pre.Errs || w.isTotal(u.Pre.Expr)) {
		return u, false
	}
	if !w.nameElement(&u) {
		u.Message = w.message(l.rule.Validate.Message)
		if u.CEL == nil {
			w.nameOffenders(&u)
		}
	}
	w.nameControls(&u)
	u.Variables, u.Params = w.variables, w.params
	w.noteCost(u)
	return u, true
}

// walk is a lowering for a target and operations, which has gathered nothing yet.
func (l *lowering) walk(t native.Target, ops []native.Operation) *lowering {
	w := *l
	w.gathered = newGathered(l.notes)
	w.environment = l.environmentOf(t, ops)
	w.selected = w.ownSelector()
	return &w
}

// environmentOf is the environment of a rule, with its objects in place.
func (l *lowering) environmentOf(t native.Target, ops []native.Operation) environment {
	typ := l.objectType(t)
	e := environment{binders: &cel.Scope{}, needs: &needs{}, target: t, ops: ops, context: contextOf(l.rule.Context, context{})}
	e.object, e.old = valueOf(cel.Ident("object"), typ), valueOf(cel.Ident("oldObject"), typ)
	switch {
	case e.on(native.Delete):
		e.object = litOf(nil)
	case !e.on(native.Update):
		e.old = litOf(nil)
	case e.on(native.Create):
		e.old = litOf(nil) // nobody asks: see ofOneOperation
	}
	return e
}

// body is: the rule's validate block does not fail.
func (l *lowering) body(u *pack.Unit) native.Truth {
	v := l.rule.Validate
	l.setPos(v.Pos)
	switch {
	case v.Manifests != nil:
		panic(l.refuse(diag.Manifests, "signed manifests are verified outside the API server"))
	case v.PodSecurity != nil:
		return l.effect(func() cel.Bool { return l.podSecurity(v.PodSecurity) })
	case v.CEL != nil:
		return l.celRule(v.CEL, u)
	case v.Deny != nil:
		return l.conditionsOf(v.Deny).Not()
	case v.Pattern != nil:
		return l.pattern(v.Pattern)
	case v.AnyPattern != nil:
		return l.anyPattern(v.AnyPattern)
	case v.ForEach != nil:
		return l.forEachAll(v.ForEach, 0)
	}
	return native.Sure(cel.True()) // assert has no effect
}

func (l *lowering) conditionsOf(d *policy.Deny) native.Truth {
	l.setPos(d.Pos)
	if l.prior { // an error is no violation of the old object
		return l.preOfElement(d.Conditions)
	}
	return l.conditions(d.Conditions) // no conditions are true: deny always
}

// noteCost tells of a rule that the API server would stop evaluating on an object
// as large as the estimate assumes.
func (l *lowering) noteCost(u pack.Unit) {
	const perExpression = 1_000_000
	if cel.Cost(u.Holds.Expr.Value, nil) > perExpression {
		l.setPos(l.rule.Pos)
		l.note(diag.Costly, "the rule goes through lists inside lists; on a very large object the API server may stop evaluating it, which counts as an error")
	}
}
