package translate

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// excuse adds what excuses a violation: under Enforce, an update of an object
// that violated the rule already is admitted. Kyverno never excuses rules with
// preconditions, and judges the old object as if it were being created by nobody:
// where only a filter on users matches, the old object does not.
func (l *lowering) excuse(u *unit) {
	if !l.excusable() || !slices.Contains(u.ops, opUpdate) {
		return
	}
	w := l.walk(u.target, []operation{opCreate})
	now := l.environmentOf(u.target, []operation{opUpdate})
	w.prior, w.now, w.notes = true, &now, nil
	w.variables, w.params = slices.Clone(u.variables), u.params // a name means one thing
	w.object = w.priorObject()
	w.old = litOf(map[string]any{})
	match := w.applies()
	if match.IsFalse() {
		return
	}
	violated := w.body(&unit{}).not()
	violated.b = w.fuse(violated.b.Simplify())
	if violated.b.IsFalse() {
		return
	}
	if p := l.rule.Validate.Pattern; p != nil {
		now, _ := w.ofNewObject().patternSubject()
		before, _ := w.patternSubject()
		violated.b = cel.And(w.anchorsSeen(now, p), w.anchorsSeen(before, p), violated.b)
	}
	if w.rule.Validate.ForEach != nil {
		violated.b = cel.And(w.failsFirstNow(), violated.b)
	}
	u.exempt, u.excused = cel.And(match, violated.b), u.alwaysExcused(match, violated.b)
	u.variables, u.params = w.variables, w.params
	if len(u.ops) > 1 {
		update := cel.Ident("request").Field("operation").Eq(cel.String(string(opUpdate)))
		u.exempt = cel.And(update, u.exempt)
	}
}

// failsFirstNow is failsFirst of the new object, while the old one is judged.
func (l *lowering) failsFirstNow() cel.Bool {
	defer l.restore(l.environment)
	l.environment = l.ofNewObject()
	return l.failsFirst(l.rule.Validate.ForEach)
}

func (l *lowering) excusable() bool {
	v := l.rule.Validate
	enforced := l.action() == policy.Enforce || l.policy.Rehearses(l.rule)
	return l.opts.Existing != DenyExisting && enforced && v.AllowExisting && v.CEL == nil &&
		l.rule.Preconditions == nil
}

// action is the rule's own action; overrides do not count for excuses.
func (l *lowering) action() policy.Action {
	if a := l.rule.Validate.Action; a != "" {
		return a
	}
	return l.policy.Action
}

// priorObject is the old object, though the walk is for a creation.
func (l *lowering) priorObject() operand {
	return valueOf(cel.Ident("oldObject"), l.objectType(l.target))
}

// anchorsSeen is: every key with a conditional or existence anchor is somewhere in
// the object, if the maps that it belongs to are. Otherwise Kyverno calls a
// violation an error, which excuses nothing.
func (l *lowering) anchorsSeen(v place, p *policy.Node) cel.Bool {
	places := anchorPlaces{l: l, visited: map[string][]cel.Bool{}, present: map[string][]cel.Bool{}}
	places.collect(v, p, cel.True(), func(c cel.Bool) cel.Bool { return c })
	var all []cel.Bool
	for _, k := range slices.Sorted(maps.Keys(places.present)) {
		all = append(all, cel.Or(cel.Or(places.present[k]...), cel.Not(cel.Or(places.visited[k]...))))
	}
	return cel.And(all...)
}

// anchorPlaces are the conditions, by anchored key, under which a map that the
// key belongs to is there, and under which the key is.
type anchorPlaces struct {
	l                *lowering
	visited, present map[string][]cel.Bool
}

// collect goes down a pattern. here is the condition under which v is looked at;
// some puts a condition about an element into the quantifiers around it.
func (a *anchorPlaces) collect(v place, p *policy.Node, here cel.Bool, some func(cel.Bool) cel.Bool) {
	switch p.Kind {
	case policy.Map:
		here = cel.And(here, v.found())
		v = v.settled()
		if v.dynamic() {
			here = cel.And(here, isMap(v.expr))
			v = v.asMap()
		}
		a.keys(v, p, here, some)
	case policy.List:
		for _, item := range p.Items {
			a.elements(v, item, here, some)
			// an existence anchor goes on to its next map where some element satisfies this one
			if len(p.Items) > 1 && item.Kind == policy.Map {
				here = cel.And(here, a.satisfied(v, item))
			}
		}
	}
}

// keys goes through the keys of a map. What is below a key is looked at where the keys
// before it are satisfied.
func (a *anchorPlaces) keys(v place, p *policy.Node, here cel.Bool, some func(cel.Bool) cel.Bool) {
	first, second := phases(p)
	for _, f := range first {
		kind, key := splitAnchor(f.Key)
		child := v.matched(key)
		found := child.found()
		if scalar.IsWild(key) && v.part == inLabels { // which stands for a key that matches
			found = a.l.someKey(v, key)
		}
		if kind == conditional || kind == existence {
			a.visited[f.Key] = append(a.visited[f.Key], some(here))
			a.present[f.Key] = append(a.present[f.Key], some(cel.And(here, found)))
		}
		a.collect(child, f.Value, here, some)
	}
	for i, f := range second {
		_, key := splitAnchor(f.Key)
		reached := here
		if i > 0 && tracksAnchors(f.Value) && !hasVariables(p) {
			reached = cel.And(here, a.l.plainKeys(v, second[:i]).ok())
		}
		a.collect(v.matched(key), f.Value, reached, some)
	}
}

func (a *anchorPlaces) satisfied(v place, p *policy.Node) cel.Bool {
	if v.never || v.kind() != schema.List && !v.dynamic() {
		return cel.False()
	}
	list := v.settled()
	return a.l.b.exists(list.expr, singular(a.l.hint(list)), func(x cel.Value) cel.Bool {
		return a.l.match(placeOf(x, list.elem()), p, "").ok()
	})
}

func (a *anchorPlaces) elements(v place, p *policy.Node, here cel.Bool, some func(cel.Bool) cel.Bool) {
	if !hasAnchors(p) || v.never || v.kind() != schema.List && !v.dynamic() {
		return
	}
	here = cel.And(here, v.found())
	if v.dynamic() {
		here = cel.And(here, isList(v.expr))
	}
	list := v.settled()
	b := a.l.b
	name := b.take(singular(a.l.hint(list)))
	defer delete(b.taken, name)
	a.collect(placeOf(cel.Ident(name), list.elem()), p, cel.True(), func(c cel.Bool) cel.Bool {
		if c.IsTrue() {
			return some(cel.And(here, list.expr.Size().Compare(">", cel.Int(0))))
		}
		return some(cel.And(here, list.expr.Macro("exists", name, c.Value).AsBool()))
	})
}
