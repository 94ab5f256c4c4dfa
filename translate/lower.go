package translate

import (
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/policy"
)

// tooLarge is the refusal of a rule whose trees grow past all bounds.
func tooLarge(at diag.Pos) refusal {
	return refusal{diag.Warnf(at, diag.TooLarge, "the rule would become larger than any that the API server takes; the webhook will judge this rule")}
}

// lowerRule lowers one rule, as written or expanded, for every target and
// operation; a refusal is the reason why it has no native form.
func lowerRule(p *policy.Policy, r *policy.Rule, o *Options) (units []unit, notes diag.List, why *diag.Diagnostic) {
	defer func() {
		if v := recover(); v != nil {
			ref, ok := v.(refusal)
			if _, grown := v.(cel.TooLarge); grown {
				ref, ok = tooLarge(r.Pos), true
			}
			if !ok {
				panic(v)
			}
			why = &ref.Diagnostic
		}
	}()
	base := &lowering{opts: o, release: release(o.Release), policy: p, rule: r, pos: r.Pos, gathered: newGathered(&notes)}
	base.checkOverrides()
	targets := base.ruleTargets()
	for _, t := range targets {
		units = append(units, base.lowerTarget(t)...)
	}
	units = base.withoutExcused(units)
	base.noteUnasked(units)
	base.noteDefaultFilters(targets)
	return units, notes, refusedUnits(units, o, &notes)
}

// ruleTargets are the targets of all kinds of the match block, each once.
func (l *lowering) ruleTargets() []target {
	var out []target
	seen := map[string]bool{}
	for _, f := range filters(l.rule.Match) {
		for _, k := range f.Kinds {
			for _, t := range l.targets(k) {
				if !seen[t.key()] {
					seen[t.key()] = true
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

// lowerTarget lowers the rule for one target. Operations that it treats alike
// stay together.
func (l *lowering) lowerTarget(t target) []unit {
	var out []unit
	for _, ops := range l.operations(t) {
		for _, u := range l.units(t, ops) {
			if i := slices.IndexFunc(out, func(v unit) bool { return v.same(u) }); i >= 0 {
				out[i].ops = append(out[i].ops, u.ops...)
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

// units are the unit for operations, where the rule does not tell them apart, or
// else one for each; none where it cannot fail.
func (l *lowering) units(t target, ops []operation) []unit {
	var out []unit
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
			out = append(out, l.units(t, []operation{op})...)
		}
		return out
	}
	panic(stop)
}

// unit lowers the rule for a target and operations; false where it cannot fail.
func (l *lowering) unit(t target, ops []operation) (unit, bool) {
	w := l.walk(t, ops)
	u := unit{policy: l.policy, rule: l.rule, target: t, ops: ops, exempt: cel.False()}
	u.match = w.applies()
	if u.match.IsFalse() {
		return u, false
	}
	u.pre = w.conditions(l.rule.Preconditions)
	if excepted := w.unlessExcepted(); u.pre.errs { // which no exception is from
		u.pre = u.pre.andThen(truthValue{b: excepted})
	} else {
		u.match = cel.And(u.match, excepted)
	}
	u.namespace = w.usesNamespace
	if u.pre.b.IsFalse() && !u.pre.errs {
		return u, false
	}
	u.holds = w.body(&u)
	u.holds.b = w.fuse(u.holds.b.Simplify())
	if u.holds.b.IsTrue() && !u.holds.errs && (!u.pre.errs || w.isTotal(u.pre.b)) {
		return u, false
	}
	u.message = w.message(l.rule.Validate.Message)
	if u.native == nil {
		w.nameOffenders(&u)
	}
	w.nameControls(&u)
	u.variables, u.params = w.variables, w.params
	w.noteCost(u)
	return u, true
}

// walk is a lowering for a target and operations, which has gathered nothing yet.
func (l *lowering) walk(t target, ops []operation) *lowering {
	w := *l
	w.gathered = newGathered(l.notes)
	w.environment = l.environmentOf(t, ops)
	return &w
}

// environmentOf is the environment of a rule, with its objects in place.
func (l *lowering) environmentOf(t target, ops []operation) environment {
	typ := l.objectType(t)
	e := environment{binders: &cel.Scope{}, target: t, ops: ops, context: contextOf(l.rule.Context, nil)}
	e.object, e.old = valueOf(cel.Ident("object"), typ), valueOf(cel.Ident("oldObject"), typ)
	switch {
	case e.on(opDelete):
		e.object = litOf(nil)
	case !e.on(opUpdate):
		e.old = litOf(nil)
	case e.on(opCreate):
		e.old = litOf(nil) // nobody asks: see ofOneOperation
	}
	return e
}

// body is: the rule's validate block does not fail.
func (l *lowering) body(u *unit) truthValue {
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
		return l.conditionsOf(v.Deny).not()
	case v.Pattern != nil:
		return l.pattern(v.Pattern)
	case v.AnyPattern != nil:
		return l.anyPattern(v.AnyPattern)
	case v.ForEach != nil:
		return l.forEachAll(v.ForEach, 0)
	}
	return truthValue{b: cel.True()} // assert has no effect
}

func (l *lowering) conditionsOf(d *policy.Deny) truthValue {
	l.setPos(d.Pos)
	if l.prior { // an error is no violation of the old object
		return l.preOfElement(d.Conditions)
	}
	return l.conditions(d.Conditions) // no conditions are true: deny always
}
