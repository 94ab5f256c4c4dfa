package translate

import (
	"maps"
	"slices"

	"github.com/kvap/kvap/cel"
	"github.com/kvap/kvap/policy"
	"github.com/kvap/kvap/schema"
	"github.com/kvap/kvap/translate/internal/anchor"
	"github.com/kvap/kvap/translate/internal/scalar"
)

// Kyverno keeps a ledger of the keys with a conditional or existence anchor. Where one
// belongs to a map that was looked at, and was in none of them, a violation is an error.
// What is looked at ends where the pattern is decided: in a list with the first element
// that fails, in a map with the first key that does.

// A sighting is what comes to the ledger of one key: whether a map that it belongs to
// is looked at, and whether the key is in one. Both are asked where a condition holds.
type sighting struct{ where, visited, present cel.Bool }

// complete is: the key makes no error of a violation.
func (s sighting) complete() cel.Bool {
	if cel.Equal(s.visited.Value, s.present.Value) {
		return cel.True()
	}
	return cel.Implies(s.where, cel.Or(s.present, cel.Not(s.visited)))
}

// everywhere is the sighting asked under no condition.
func (s sighting) everywhere() sighting {
	return sighting{cel.True(), cel.And(s.where, s.visited), cel.And(s.where, s.present)}
}

// sightings are those of all keys, as they are written.
type sightings map[string]sighting

// add adds more, for where a condition holds.
func (s sightings) add(more sightings, where cel.Bool) {
	for key, t := range more {
		t.where = cel.And(where, t.where)
		if old, ok := s[key]; ok {
			old, t = old.everywhere(), t.everywhere()
			t.visited, t.present = cel.Or(old.visited, t.visited), cel.Or(old.present, t.present)
		}
		s[key] = t
	}
}

// noError is: no key makes an error of a violation. It is asked where the pattern is
// violated.
func (l *lowering) noError(v place, p *policy.Node) (b cel.Bool) {
	l.collected(func() { b = l.noErrorOf(v, p) }) // the pattern itself asks for it
	return b
}

func (l *lowering) noErrorOf(v place, p *policy.Node) cel.Bool {
	p, ok := l.dereferenced(p)
	if !ok { // an error on every object
		return cel.False()
	}
	p = l.substituted(p)
	seen := l.anchorsSeen(v, p)
	if !seen.IsTrue() && hasNegations(p) { // the violation of a negation is no error whatever is missing
		l.setPos(p.Pos)
		panic(l.unsupported("a negation beside conditions, in a rule that excuses existing violations,"))
	}
	return seen
}

// anchorsSeen is: no key is missing where a violation is found.
func (l *lowering) anchorsSeen(v place, p *policy.Node) cel.Bool {
	seen := l.sightings(v, p)
	var all []cel.Bool
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		all = append(all, seen[key].complete())
	}
	return cel.And(all...)
}

// sightings are those on the way through v, which may be missing.
func (l *lowering) sightings(v place, p *policy.Node) sightings {
	out := sightings{}
	switch {
	case v.never || !tracksAnchors(p):
	case p.Kind == policy.Map && v.dynamic():
		out.add(l.keySightings(v.settled().asMap(), p), cel.And(v.found(), isMap(v.expr)))
	case p.Kind == policy.Map && (v.kind() == schema.Object || v.kind() == schema.Map):
		out.add(l.keySightings(v.settled(), p), v.found())
	case p.Kind == policy.List:
		if list, is, ok := listAt(v); ok {
			out.add(l.listSightings(list, p), is)
		}
	}
	return out
}

// listAt is the list at a place that may be missing, and whether it is there; false
// where there never is one.
func listAt(v place) (list place, is cel.Bool, ok bool) {
	switch {
	case v.never:
		return list, is, false
	case v.dynamic():
		list = v.settled()
		list.typ = &schema.Type{Kind: schema.List, Elem: anyType()}
		return list, cel.And(v.found(), isList(v.expr)), true
	}
	return v.settled(), v.found(), v.kind() == schema.List
}

// keySightings are those of the keys of a map and of what is below them. The ledger
// has the map's own keys before any is decided.
func (l *lowering) keySightings(v place, p *policy.Node) sightings {
	if v.part == inLabels {
		p = textsOnly(p)
	}
	out := sightings{}
	first, second := phases(p)
	for i, f := range first {
		if kind, key := anchor.Split(f.Key); kind == anchor.Conditional || kind == anchor.Existence {
			out.add(sightings{f.Key: {cel.True(), cel.True(), l.carriesKey(v, key)}}, cel.True())
		}
		if tracksAnchors(f.Value) {
			out.add(l.sightingsBelow(v, f), l.anchors(v, first[:i]).admitted())
		}
	}
	for i, f := range second {
		if tracksAnchors(f.Value) {
			reached := cel.And(l.anchors(v, first).ok(), l.plainKeys(v, second[:i]).ok())
			out.add(l.sightingsBelow(v, f), reached)
		}
	}
	return out
}

// carriesKey is: a map has a key, or one like it where keys may hold wildcards.
func (l *lowering) carriesKey(v place, key string) cel.Bool {
	if scalar.IsWild(key) && v.part == inLabels {
		return l.someKey(v, key)
	}
	return v.matched(key).found()
}

func (l *lowering) sightingsBelow(v place, f policy.Field) sightings {
	kind, key := anchor.Split(f.Key)
	switch kind {
	case anchor.Negation: // which looks at no value
		return nil
	case anchor.Existence:
		l.setPos(f.Pos)
		panic(l.unsupported("a condition below an existence anchor, in a rule that excuses existing violations,"))
	}
	return l.sightings(v.matched(key), f.Value)
}

// listSightings are those of a list pattern, of which the first element says how.
func (l *lowering) listSightings(list place, p *policy.Node) sightings {
	if p.Items[0].Kind != policy.Map {
		return nil
	}
	return l.elementSightings(list, p.Items[0])
}

// elementSightings are those of elements that a map is held against, up to the first that
// fails.
func (l *lowering) elementSightings(list place, p *policy.Node) sightings {
	element, release := l.binders.Bind(singular(l.hint(list)))
	defer release()
	x := placeOf(element, list.elem())
	out := sightings{}
	below := l.sightings(x, p)
	for _, key := range slices.Sorted(maps.Keys(below)) {
		s, last := below[key].everywhere(), l.isLast(x, p, key)
		out[key] = sighting{cel.True(), met(list.expr, element, s.visited, last), met(list.expr, element, s.present, last)}
	}
	return out
}

// isLast is: no element after x is looked at. A map whose own condition is on a key is
// decided by nothing else where the key is missing, so that need not be asked.
func (l *lowering) isLast(x place, p *policy.Node, key string) cel.Bool {
	kind, _ := anchor.Split(key)
	own := kind == anchor.Conditional && slices.ContainsFunc(p.Fields, func(f policy.Field) bool { return f.Key == key })
	switch {
	case own && !x.dynamic():
		return cel.False()
	case own:
		return cel.Not(isMap(x.expr))
	}
	return cel.Not(l.match(x, p, "").admitted())
}

// met is: some element satisfies cond, of those up to the first that is the last to be
// looked at.
func met(list, x cel.Value, cond, last cel.Bool) cel.Bool {
	cond, some := cond.Simplify(), list.Size().Ne(cel.Int(0))
	switch {
	case cond.IsFalse():
		return cond
	case cond.IsTrue():
		return some
	case last.IsFalse():
		return cel.ForSome.Of(list, x, cond)
	case cel.Equal(last.Value, cel.Not(cond).Value): // the first element decides
		return cel.And(some, cond.Substitute(x.String(), list.Index(cel.Int(0))).AsBool())
	}
	either := cel.Or(last, cond).Simplify()
	return list.Macro(cel.MacroMap, x, either.Value, cond.Value).OptIndex(cel.Int(0)).OrValue(cel.False().Value).AsBool()
}

// hasNegations tells whether a pattern has a negation anchor.
func hasNegations(p *policy.Node) bool {
	for _, f := range p.Fields {
		if kind, _ := anchor.Split(f.Key); kind == anchor.Negation || hasNegations(f.Value) {
			return true
		}
	}
	return slices.ContainsFunc(p.Items, hasNegations)
}
