package translate

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
)

// excuse adds what excuses a violation: under Enforce, an update of an object
// that violated the rule already is admitted. Kyverno never excuses rules with
// preconditions and rules that match users, and judges the old object as if it
// were being created.
func (l *lowering) excuse(u *unit) {
	if !l.excusable() || !contains(u.ops, "UPDATE") {
		return
	}
	w := l.walk(u.target, []string{"CREATE"})
	w.prior, w.notes = true, nil
	w.object = w.old2()
	w.old = litOf(map[string]any{})
	match := w.applies()
	if match.IsFalse() {
		return
	}
	violated := w.body(&unit{}).not()
	if violated.b.IsFalse() {
		return
	}
	if p := l.rule.Validate.Pattern; p != nil {
		v, _ := w.patternSubject()
		violated.b = cel.And(w.anchorsSeen(v, p), violated.b)
	}
	u.exempt = cel.And(match, violated.b)
	if len(u.ops) > 1 {
		update := cel.Ident("request").Field("operation").Eq(cel.String("UPDATE"))
		u.exempt = cel.And(update, u.exempt)
	}
}

func (l *lowering) excusable() bool {
	v := l.rule.Validate
	return l.opts.Existing != DenyExisting && l.action() == policy.Enforce && v.AllowExisting && v.CEL == nil &&
		l.rule.Preconditions == nil && !matchesUser(l.rule.Match)
}

// action is the rule's own action; overrides do not count for excuses.
func (l *lowering) action() policy.Action {
	if a := l.rule.Validate.Action; a != "" {
		return a
	}
	return l.policy.Action
}

// old2 is the old object as a root, though the walk is for a creation.
func (l *lowering) old2() jval { return valOf(at(cel.Ident("oldObject"), l.rootType(l.target))) }

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// anchorsSeen is: every key with a conditional or existence anchor is somewhere in
// the object. Otherwise Kyverno calls a violation an error, which excuses nothing.
func (l *lowering) anchorsSeen(v val, p *policy.Node) cel.Bool {
	seen := map[string][]cel.Bool{}
	l.anchorPlaces(v, p, cel.True(), seen, func(c cel.Bool) cel.Bool { return c })
	var all []cel.Bool
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, cel.Or(seen[k]...))
	}
	return cel.And(all...)
}

// anchorPlaces collects, by anchored key, the conditions under which the key is
// there; some puts a condition about an element into the quantifiers around it.
func (l *lowering) anchorPlaces(v val, p *policy.Node, here cel.Bool, seen map[string][]cel.Bool, some func(cel.Bool) cel.Bool) {
	switch p.Kind {
	case policy.Map:
		if v.dynamic() {
			here = cel.And(here, v.found(), isMap(v.expr))
			v = v.settled().asMap()
		}
		for _, f := range p.Fields {
			kind, key := splitAnchor(f.Key)
			child := v.field(key)
			if kind == conditional || kind == existence {
				seen[f.Key] = append(seen[f.Key], some(cel.And(here, child.found())))
			}
			l.anchorPlaces(child, f.Value, here, seen, some)
		}
	case policy.List:
		for _, item := range p.Items {
			l.elementPlaces(v, item, here, seen, some)
		}
	}
}

func (l *lowering) elementPlaces(v val, p *policy.Node, here cel.Bool, seen map[string][]cel.Bool, some func(cel.Bool) cel.Bool) {
	if !hasAnchors(p) || v.never || v.kind() != schema.List && !v.dynamic() {
		return
	}
	here = cel.And(here, v.found())
	if v.dynamic() {
		here = cel.And(here, isList(v.expr))
	}
	list := v.settled()
	name := l.b.take(singular(l.hint(list)))
	defer delete(l.b.taken, name)
	l.anchorPlaces(at(cel.Ident(name), list.elem()), p, cel.True(), seen, func(c cel.Bool) cel.Bool {
		return some(cel.And(here, list.expr.Macro("exists", name, c.Value).AsBool()))
	})
}
